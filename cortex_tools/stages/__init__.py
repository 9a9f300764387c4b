"""The stages: one module each.  A stage is the same object in a shell pipeline, the driver and the library.

To add one: declare it in `contract.options.STAGES`, write its module here as a `Stage`, name it in
`stages.registry`, and give it a launcher in `bin/`.
"""
