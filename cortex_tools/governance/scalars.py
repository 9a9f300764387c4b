"""What a reader of YAML makes of a plain scalar."""

from __future__ import annotations

import re

_YAML_NUMBER = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-f_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:e[-+]?[0-9]+)?|\.inf)|\.nan"
)
_YAML_TIME = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:t|\s+)[0-9]{1,2}:[0-9]{2}.*)?")
_YAML_WORDS = frozenset(("null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "="))
_YAML_SYNTAX = re.compile(r"[,\[\]{}#&*!|>'\"%@`]|[-?:](?:\s|\Z)|(?:---|\.\.\.)(?:\s|\Z)")
_YAML_INSIDE = re.compile(r":(?:\s|\Z)|\s#|\t")


def yaml_reads_otherwise(text: str) -> bool:
    """Whether a plain scalar of this text is something else than the text to a reader of YAML (1.1 or 1.2)."""
    lower = text.lower()
    return bool(
        lower in _YAML_WORDS
        or _YAML_NUMBER.fullmatch(lower)
        or _YAML_TIME.fullmatch(lower)
        or _YAML_SYNTAX.match(text)
        or _YAML_INSIDE.search(text)
    )
