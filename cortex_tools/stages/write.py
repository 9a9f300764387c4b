"""cortex-write: governed persistence of one typed item, and what remember and propose share with it (section 10).

It reads no stream but the item itself, and writes a corpus line, which tells below which root, and a result line.
"""

from __future__ import annotations

import json
import os

from cortex_tools.contract import limits
from cortex_tools.contract.errors import SUCCESS, CortexError, invalid_input
from cortex_tools.contract.grammar import Arguments, check_adapter, count_positionals, parse
from cortex_tools.contract.options import STAGES
from cortex_tools.domain.jsontext import json_text, json_value
from cortex_tools.files.root import pin_root, requested_root
from cortex_tools.files.stdio import (
    STDIN,
    run,
    say,
)
from cortex_tools.streams.items import Corpus, Result
from cortex_tools.streams.lines import failure
from cortex_tools.streams.segments import SegmentWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    # Takes the item and the pinned root's path; gives {"ok": True, ...} or {"ok": False, "code", "message"}.
    MemoryAdd = Callable[[dict[str, Any], str], dict[str, Any]]

NAME = "cortex-write"
TYPES = {"remember": ("memory", "idea", "knowledge"), "propose": ("proposal",)}


def permitted(command: str, arguments: Arguments) -> str:
    """The adapter's name; raises write_refused unless this call names one and grants permission."""
    adapter = arguments.text("--adapter")
    if adapter is None or not arguments.flag("--allow-write"):
        raise CortexError("write_refused", f"{command} writes only with both --adapter NAME and --allow-write")
    return adapter


def read_payload() -> bytes:
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
        return json_value(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid_input(f"the payload is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise invalid_input("the payload nests too deeply") from None
    except ValueError:
        raise invalid_input("the payload is not one valid JSON value") from None


def check_type(command: str, item: Any) -> None:
    """Raise write_refused unless the item's type belongs to the command."""
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in TYPES[command]:
        raise CortexError(
            "write_refused", f"{command} takes an object whose type is one of {', '.join(TYPES[command])}"
        )


def perform(
    command: str,
    adapter: str,
    payload: bytes,
    requested: bytes,
    memory_add: MemoryAdd | None = None,
    now_ms: int | None = None,
) -> tuple[str, Result]:
    """Judge the payload, pin the root and write; the answer is the pinned root and the result.

    `memory_add` stands in for governance.  Raises CortexError in the order of section 4.
    """
    item = parse_payload(payload)
    check_type(command, item)
    root = pin_root(requested)
    try:
        if memory_add is not None:
            answer = memory_add(item, root.text)
        else:
            from cortex_tools.governance.add import add_below

            answer = add_below(item, root, requested, now_ms)
    finally:
        root.close()
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise CortexError("internal_error", "the writer gave no result; look whether the item was written")
    if not answer["ok"]:
        raise CortexError("governance_refused", f"{answer.get('code')}: {answer.get('message')}")
    return root.text, Result(adapter, answer)


def data(result: Result) -> str:
    """The data of the envelope that a result becomes, as JSON; raises ValueError or TypeError for what is none."""
    text = json.dumps(result.result, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f'{{"adapter":{json_text(result.adapter)},"result":{text}}}'


# The executable.


def main() -> NoReturn:
    """Run cortex-write and exit with its status."""
    run(NAME, _answer)


def _answer(argv: list[str]) -> int:
    from cortex_tools.files import interrupts  # not above: the library imports this module, and leaves signals alone

    interrupts.raise_on_interrupt()  # it writes, and cleans up after itself
    if "--help" in argv or "--version" in argv:
        from cortex_tools.manual.help import show

        return show(NAME, argv)
    return _run(argv)


def _run(argv: list[str]) -> int:
    writer = SegmentWriter(NAME)
    try:
        root, result = _write(argv)
    except CortexError as error:
        return _fail(error, writer)
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        # By its type alone: its words may quote the item.
        return _fail(CortexError("internal_error", f"an unexpected {type(error).__name__} stopped the write"), writer)
    # No file is listed: the line is there for the root, and because every segment has one.
    writer.write(Corpus(root, "0" * 16, 1, 1, 0, 0))
    writer.write(result)
    writer.seal()
    return SUCCESS


def _fail(error: CortexError, writer: SegmentWriter) -> int:
    line = failure(error, NAME)
    say(f"{NAME}: {line.code}: {line.message}")
    writer.write(line)
    writer.seal()
    return error.status


def _write(argv: list[str]) -> tuple[str, Result]:
    declared = STAGES[NAME]
    arguments = parse(declared, argv)
    count_positionals(declared, arguments.positionals)
    command = arguments.positionals[0]
    if command not in TYPES:
        raise invalid_input(f"{NAME} takes one of {', '.join(TYPES)} as its argument")
    check_adapter(arguments.text("--adapter"))
    adapter = permitted(command, arguments)
    if os.isatty(STDIN):
        raise invalid_input(
            f"{NAME} reads {declared.reads} from standard input, which is a terminal; "
            f"for example: {declared.examples[0]}"
        )
    return perform(command, adapter, read_payload(), requested_root(None, arguments.text("--memory-root")))
