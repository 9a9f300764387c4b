"""Rows of the JSONL logs and of the queue."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def row_line(row: dict[str, Any]) -> bytes:
    """One row as a line of compact JSON, line feed included."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
