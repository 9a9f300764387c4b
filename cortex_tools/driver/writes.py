"""remember and propose: permission and payload, before anything is touched (section 10)."""

from __future__ import annotations

import json
import os

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError, invalid_input
from cortex_tools.domain.envelope import Raw
from cortex_tools.domain.records import json_text
from cortex_tools.driver.request import Request
from cortex_tools.driver.runtime import Runtime
from cortex_tools.files.root import pin_root, requested_root
from cortex_tools.files.stdio import STDIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TYPES = {"remember": ("memory", "idea", "knowledge"), "propose": ("proposal",)}


def run_write(request: Request, runtime: Runtime) -> Raw:
    """The data of the write's envelope; raises CortexError in the order of section 4."""
    adapter = permitted(request)
    item = _payload(request)
    check_type(request.command.name, item)
    requested = requested_root(runtime.memory_root, request.arguments.text("--memory-root"))
    root = pin_root(requested)
    root.close()
    if runtime.memory_add is None:
        raise CortexError("governance_refused", "EWRITE_FAILED: this release has no writer; nothing was written")
    result = runtime.memory_add(item, root.text)
    if not isinstance(result, dict) or not isinstance(result.get("ok"), bool):
        raise CortexError("internal_error", "the writer gave no result; look whether the item was written")
    if not result["ok"]:
        raise CortexError("governance_refused", f"{result.get('code')}: {result.get('message')}")
    return Raw(
        f'{{"adapter":{json_text(adapter)},"result":{json.dumps(result, ensure_ascii=False, separators=(",", ":"))}}}'
    )


def permitted(request: Request) -> str:
    """The adapter's name; raises write_refused unless this call names one and grants permission."""
    adapter = request.arguments.text("--adapter")
    if adapter is None or not request.arguments.flag("--allow-write"):
        raise CortexError(
            "write_refused", f"{request.command.name} writes only with both --adapter NAME and --allow-write"
        )
    return adapter


def check_type(command: str, item: Any) -> None:
    """Raise write_refused unless the item's type belongs to the command."""
    if not isinstance(item, dict) or item.get("type") not in TYPES[command]:
        raise CortexError(
            "write_refused", f"{command} takes an object whose type is one of {', '.join(TYPES[command])}"
        )


def _payload(request: Request) -> Any:
    positionals = request.arguments.positionals
    if len(positionals) != 1:
        raise invalid_input(f"{request.command.name} takes exactly one JSON payload, {len(positionals)} given")
    data = _read_input() if positionals[0] == "-" else positionals[0].encode("utf-8", "surrogateescape")
    return parse_payload(data)


def _read_input() -> bytes:
    """Standard input up to one byte more than a payload may have, and no further."""
    data = b""
    wanted = limits.PAYLOAD_BYTES + 1
    try:
        while len(data) < wanted:
            more = os.read(STDIN, wanted - len(data))
            if not more:
                break
            data += more
    except OSError as error:
        raise invalid_input(f"the payload cannot be read from standard input: {error.strerror}") from None
    return data


def parse_payload(data: bytes) -> Any:
    """The payload's value; raises invalid_input for its size, its encoding and its JSON, in that order."""
    if len(data) > limits.PAYLOAD_BYTES:
        raise invalid_input(f"the payload is larger than {limits.PAYLOAD_BYTES} bytes; shorten it")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise invalid_input(f"the payload is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise invalid_input("the payload nests too deeply") from None
    except ValueError:
        raise invalid_input("the payload is not one valid JSON value") from None


def _no_constant(name: str) -> object:
    raise ValueError(name)
