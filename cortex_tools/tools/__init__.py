"""The executables that are no stages: each reads its arguments, calls what it stands for, and prints."""
