"""The eight contract commands: parsing, the plan as data, running and rendering it."""
