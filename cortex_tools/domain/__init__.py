"""The contract's rules as pure functions: no files, no streams, no clocks of their own."""
