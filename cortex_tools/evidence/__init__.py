"""Evidence: operational health, the retrieval log and the retrieval benchmark (docs/evidence.md).

Everything here measures and nothing guesses: missing evidence never produces green.
"""
