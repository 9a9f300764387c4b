"""Text for man(7): escaped so that every character comes out as it stands, on groff and on mandoc."""

from __future__ import annotations

import re
import textwrap

# A bare hyphen, quote, caret, tilde or grave may be typeset as another character, which could not be pasted.
_NAMED = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
_WIDTH = 72


def text(string: str) -> str:
    """`string` as roff input that typesets exactly it; a line of its own may begin with it."""
    escaped = "".join(_NAMED.get(char, char if char.isascii() else f"\\[u{ord(char):04X}]") for char in string)
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


def bold(string: str) -> str:
    return rf"\fB{text(string)}\fR"


def italic(string: str) -> str:
    return rf"\fI{text(string)}\fR"


def paragraph(string: str) -> str:
    """Prose, wrapped in the source; what stands in `backquotes` comes out bold."""
    # Marked before wrapping and escaped after it, so that no line begins with what roff would obey.
    lines = textwrap.wrap(string, _WIDTH, break_long_words=False, break_on_hyphens=False)
    result, within = [], False
    for line in lines:
        parts = []
        for number, part in enumerate(line.split("`")):
            if number:
                parts.append(r"\fR" if within else r"\fB")
                within = not within
            parts.append(text(part))
        result.append(re.sub(r"^(?=[.'])", r"\\&", "".join(parts)))
    return "\n".join(result) + "\n"


def section(title: str) -> str:
    return f".SH {title}\n"


def tagged(tag: str, string: str) -> str:
    """An entry of a list: `tag` is roff already, `string` is prose."""
    return f".TP\n{tag}\n{paragraph(string)}"


def example(code: str) -> str:
    """Code as it is typed, indented and unfilled."""
    return f".RS 4\n.EX\n{text(code)}\n.EE\n.RE\n"


def sentence(string: str) -> str:
    """A summary as a sentence."""
    return string[0].upper() + string[1:] + "."
