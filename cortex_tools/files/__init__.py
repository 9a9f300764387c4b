"""The memory root on disk: resolving and walking it, opening notes, standard descriptors, spools."""
