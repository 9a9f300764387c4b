"""Help for people, rendered by Typer from the declarations in `contract.options`.

Never imported on the path of a successful call: importing Typer costs more than a whole search.
"""
