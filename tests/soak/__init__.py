"""Long searches for a counterexample, each bounded in time: `make soak`.

One module is one kind of soak.  It has a docstring that says what it searches for, SHARE (its part of the
whole time, beside the others' shares) and ends in `kit.main(search)`, so that

    python -m tests.soak.KIND --seconds N --seed S

runs it alone.  `search(budget)` works until `budget.over()`, takes every choice from `budget.random`, and
raises `kit.Finding` with a case that can be repeated.  `python -m tests.soak` runs them one after the other.
A finding is to become a case of the ordinary tests.
"""
