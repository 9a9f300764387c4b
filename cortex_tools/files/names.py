"""File names: bytes on disk, UTF-8 in answers, stripped and shortened in messages."""

from __future__ import annotations

import os

from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.text import without_surrogates

_SHOWN = 300


def utf8(name: bytes) -> str | None:
    """The name as text, None where it is not strict UTF-8."""
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def shown(text: str) -> str:
    """`text` fit for a message: no private span, no lone surrogate, not endlessly long."""
    clean = strip_private(without_surrogates(text))
    return clean if len(clean) <= _SHOWN else clean[:_SHOWN] + "…"


def shown_path(path: bytes) -> str:
    """The same for a path."""
    return shown(os.fsencode(path).decode("utf-8", "replace"))
