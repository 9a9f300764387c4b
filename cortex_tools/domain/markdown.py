"""Markdown notes: front matter and links, one record a file (section 6)."""

from __future__ import annotations

import re

from cortex_tools.contract.errors import refuse
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import BLANK_CLASS, BLANKS, LINE_ENDS, trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cortex_tools.domain.records import Report

# The names under which a note may give the fields that are judged, the first that has a value winning.
NAMES = {
    "id": ("id",),
    "created": ("created", "date", "ts"),
    "updated": ("updated", "last_updated"),
    "valid_from": ("valid_from",),
    "valid_until": ("valid_until",),
}

EPOCH = "1970-01-01T00:00:00.000Z"
_QUOTES = "\"'"
_OPENING = re.compile(r"---\r?\n")
_CLOSING = re.compile(r"\r?\n---(?:\r?\n|\Z)")
_LINE_END = re.compile(r"\r?\n")
_FIELD = re.compile(rf"([A-Za-z0-9_]+):[{BLANK_CLASS}]*+([^\r\u2028\u2029]*+)\Z")
_LINK_VALUE = re.compile(rf"[{BLANK_CLASS}]*+([^{BLANK_CLASS}#]++)[^\n\r\u2028\u2029]*+")


def parse_markdown(text: str, path: str, report: Report = refuse) -> Record:
    """The record of a note whose decoded text, without BOM, is `text`; `path` is relative to the root.

    Raises integrity_error for what section 6 refuses.
    """
    content = strip_private(text)
    fields = front_matter(content)

    def first(*names: str) -> str | None:
        return next((fields[name] for name in names if fields.get(name)), None)

    created = first(*NAMES["created"]) or EPOCH
    return Record(
        first("id") or path_id(path),
        first("type") or ("work" if "WORK/" in path else "memory"),
        first("title", "name") or path,
        created,
        first(*NAMES["updated"]) or created,
        first("source_kind", "source") or "canonical",
        first("source_session"),
        path,
        content,
        links(content),
        first("valid_from"),
        first("valid_until"),
        path,
        report,
    )


def path_id(path: str) -> str:
    """The ID of a note that names none: stable under any alias of the root."""
    import hashlib  # only notes without an ID pay for it

    return "path:" + hashlib.sha256(path.encode()).hexdigest()[:16]


def front_matter(content: str) -> dict[str, str]:
    """The fields of the front matter, the last of a name winning; empty where there is none."""
    bounds = front_matter_bounds(content)
    if bounds is None:
        return {}
    fields: dict[str, str] = {}
    for line in _LINE_END.split(content[bounds[0] : bounds[1]]):
        field = _FIELD.match(line)
        if field is not None:
            fields[field[1]] = unquote(trim(field[2]))
    return fields


def front_matter_bounds(content: str) -> tuple[int, int] | None:
    """Where the lines of the front matter begin and end; None where there is none."""
    opening = _OPENING.match(content)
    if opening is None:
        return None
    # The search may begin at the first line's own end only if the closing line is the third or later.
    closing = _CLOSING.search(content, opening.end())
    return None if closing is None else (opening.end(), closing.start())


def front_matter_places(content: str) -> list[tuple[str, int]]:
    """The names in the front matter in their order, repeats too, each with the offset of its line."""
    bounds = front_matter_bounds(content)
    if bounds is None:
        return []
    starts = [bounds[0], *(end.end() for end in _LINE_END.finditer(content, *bounds))]
    lines = _LINE_END.split(content[bounds[0] : bounds[1]])
    fields = ((_FIELD.match(line), start) for line, start in zip(lines, starts, strict=True))
    return [(field[1], start) for field, start in fields if field is not None]


def opens_front_matter(content: str) -> bool:
    """Whether the first line is `---`, be it closed or not."""
    return _OPENING.match(content) is not None


def unquote(value: str) -> str:
    """`value` without one leading and one trailing quote character, of either kind and even unpaired."""
    if value[:1] and value[0] in _QUOTES:
        value = value[1:]
    if value and value[-1] in _QUOTES:
        value = value[:-1]
    return value


def links(content: str) -> list[str]:
    """The values of `slug:` at the start of lines, in order, repeats and empty ones kept."""
    found: list[str] = []
    done = 0  # what lies before it is spoken for: by a link's line, or by an earlier `slug:` that was none
    at = content.find("slug:")
    while at >= 0:
        value = _LINK_VALUE.match(content, at + 5) if _starts_line(content[done:at], at_start=done == 0) else None
        if value is None:
            done = at + 5
        else:
            found.append(unquote(value[1]))
            done = value.end()
        at = content.find("slug:", done)
    return found


def _starts_line(before: str, *, at_start: bool) -> bool:
    """Whether `before`, the text up to `slug:`, ends in a line's start, blanks, an optional dash and blanks.

    Runs of blanks may cross line ends.  Looking backwards keeps a note of a million blank lines linear.
    """
    for _ in range(2):
        rest = before.rstrip(BLANKS)
        if any(end in before[len(rest) :] for end in LINE_ENDS) or (at_start and not rest):
            return True
        if not rest.endswith("-"):
            return False
        before = rest[:-1]
    return False
