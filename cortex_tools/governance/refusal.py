"""The one exception of governance: a code, words for people, and never any text of the item."""

from __future__ import annotations

EINVAL_ITEM = "EINVAL_ITEM"
EUNKNOWN_TYPE = "EUNKNOWN_TYPE"
EWRITE_FAILED = "EWRITE_FAILED"
ETIER_MISMATCH = "ETIER_MISMATCH"
ESOURCE_OWNED = "ESOURCE_OWNED"
EAT_CAP = "EAT_CAP"
ESUSPECT_SHRINK = "ESUSPECT_SHRINK"
ESUSPECT_EROSION = "ESUSPECT_EROSION"


class Refusal(Exception):
    """Nothing was written, and why: `code` is one of this module's, `message` one clear sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid_item(message: str) -> Refusal:
    return Refusal(EINVAL_ITEM, message)


def write_failed(message: str) -> Refusal:
    return Refusal(EWRITE_FAILED, message)
