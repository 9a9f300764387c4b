"""The envelope: built, checked and printed in one place (section 3)."""

from __future__ import annotations

from cortex_tools.contract.errors import EXIT_STATUS, SUCCESS, CortexError
from cortex_tools.domain.jsontext import json_text, json_value
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.text import without_surrogates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "lifeos-cortex/v1"
FIELDS = ("schema", "ok", "command", "data", "error")


class Raw:
    """JSON text of an envelope's data, printed as it stands: numbers in it are already the contract's."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Answer:
    """An exit status and the envelope that goes with it."""

    __slots__ = ("line", "status")

    def __init__(self, status: int, line: str) -> None:
        self.status = status
        self.line = line

    @property
    def envelope(self) -> dict[str, Any]:
        """The envelope as a value."""
        envelope: dict[str, Any] = json_value(self.line)
        return envelope


def success(command: str, data: Raw) -> Answer:
    return _checked(SUCCESS, command, data.text, "null", {"ok": True, "data": data, "error": None})


def failed(command: str, error: CortexError) -> Answer:
    body = {"code": error.code, "message": safe_message(error)}
    return _checked(error.status, command, "null", json_text(body), {"ok": False, "data": None, "error": body})


def safe_message(error: CortexError) -> str:
    """The error's message behind the privacy boundary, as the last guard: what it quotes should be stripped already."""
    message = without_surrogates(error.message)
    stripped = strip_private(message)
    return (
        stripped
        if stripped.strip() or stripped == message
        else f"{error.code}: the message held private markup and was removed"
    )


def _checked(status: int, command: str, data: str, error: str, envelope: dict[str, Any]) -> Answer:
    command = without_surrogates(command)
    envelope |= {"schema": SCHEMA, "command": command}
    check(envelope)
    ok = "true" if envelope["ok"] else "false"
    line = f'{{"schema":"{SCHEMA}","ok":{ok},"command":{json_text(command)},"data":{data},"error":{error}}}\n'
    return Answer(status, line)


def check(envelope: dict[str, Any]) -> None:
    """Raise ValueError unless the envelope is exactly what section 3 allows; made before every print."""
    if set(envelope) != set(FIELDS) or envelope["schema"] != SCHEMA or not isinstance(envelope["command"], str):
        raise ValueError("envelope: wrong fields, schema or command")
    data, error = envelope["data"], envelope["error"]
    if envelope["ok"] is True:
        if data is None or error is not None:
            raise ValueError("envelope: a success has data and no error")
    elif envelope["ok"] is False:
        if data is not None or not isinstance(error, dict) or set(error) != {"code", "message"}:
            raise ValueError("envelope: a failure has no data, and an error of code and message")
        if not isinstance(error["code"], str) or error["code"] not in EXIT_STATUS:
            raise ValueError("envelope: an error has a known code")
        if not isinstance(error["message"], str) or not error["message"]:
            raise ValueError("envelope: an error has a message")
    else:
        raise ValueError("envelope: ok is a boolean")
