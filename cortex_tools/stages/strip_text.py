"""cortex-strip --text: any text through the privacy boundary, standard input to standard output (section 7).

Plain text on both sides: no lines of a stream, no seals; a failure is said on standard error alone.
"""

from __future__ import annotations

import codecs
import os

from cortex_tools.contract import limits
from cortex_tools.contract.errors import SUCCESS, integrity_error, invalid_input
from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain.privacy import MALFORMED, REMNANT, UNCLOSED
from cortex_tools.domain.stripping import UNDECIDED, Stripper
from cortex_tools.files.stdio import STDIN, say, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "cortex-strip"
FLAG = "--text"
_PIECE = 1 << 16
_WHY = {
    MALFORMED: "at what looks like an opening tag but is none; write &lt; where a bracket is meant",
    UNCLOSED: "at a private span that nothing closes; close it with </private>",
    REMNANT: "at a tag that only forms where a private span was removed",
    UNDECIDED: f"at a tag that is not whole after {limits.UNDECIDED} characters",
}


def run(arguments: Arguments) -> int:
    """Filter standard input; the answer is the exit status.

    Raises invalid_input for options that have no meaning here and for a terminal as standard input,
    integrity_error for bytes that are not UTF-8: nothing from there on has been written then.
    """
    others = [option for option in arguments.options if option != FLAG]
    if others:
        raise invalid_input(f"{others[0]} has no meaning beside {FLAG}")
    if os.isatty(STDIN):
        raise invalid_input(
            f"{NAME} {FLAG} reads text from standard input, which is a terminal; for example: {NAME} {FLAG} < notes.txt"
        )
    stripper = Stripper()
    for text in _texts():
        write_all(stripper.feed(text).encode())
    write_all(stripper.finish().encode())
    for cut in stripper.cuts:
        say(f"{NAME}: warning: the text is cut off in line {cut.line} (byte {cut.byte}), {_WHY[cut.reason]}")
    return SUCCESS


def _texts() -> Iterator[str]:
    """Standard input as it comes, decoded; what precedes bytes that are not UTF-8 still comes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0  # bytes before those that the decoder is given or still holds
    while True:
        data = _read()
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode()
            raise integrity_error(
                f"the text is not UTF-8 at byte {done - held + error.start}, and nothing from there on was written; "
                "convert it first, for example with iconv"
            ) from None
        yield text
        if not data:
            return
        done += len(data)


def _read() -> bytes:
    try:
        return os.read(STDIN, _PIECE)
    except OSError as error:
        raise integrity_error(f"standard input cannot be read: {error.strerror}") from None
