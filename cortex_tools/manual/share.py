"""Everything that an installation puts below its `share` folder, generated: manual pages and completion scripts."""

from __future__ import annotations

import os

from cortex_tools.manual import completion, pages


def files() -> dict[str, str]:
    """All generated files by path below `share`."""
    return pages.files() | completion.files()


def write(folder: str) -> list[str]:
    """Write all below `folder`; gives the paths below it."""
    for path, text in files().items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return list(files())
