"""Markdown notes: front matter and links, one record a file (section 6)."""

from __future__ import annotations

from cortex_tools.contract.errors import refuse
from cortex_tools.domain.privacy import strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import ASCII_BLANKS, BLANK_SET, BLANKS, LINE_ENDS

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

# Names that need no second look: all that a record is made of.
_USUAL = {"type", "title", "name", "source_kind", "source", "source_session"}.union(*NAMES.values())

EPOCH = "1970-01-01T00:00:00.000Z"
_QUOTES = "\"'"


def parse_markdown(text: str, path: str, report: Report = refuse) -> Record:
    """The record of a note whose decoded text, without BOM, is `text`; `path` is relative to the root.

    Raises integrity_error for what section 6 refuses.
    """
    content = strip_private(text)
    given = front_matter(content).get

    def first(*names: str) -> str | None:
        for name in names:
            value = given(name)
            if value:
                return value
        return None

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
    head = content[bounds[0] : bounds[1]].replace("\r\n", "\n")
    odd = not head.isascii() or "\r" in head  # else no value can hold a line end, and need not be looked at for one
    blanks = BLANKS if odd else ASCII_BLANKS
    for line in head.split("\n"):
        name, colon, value = line.partition(":")
        if colon and (name in _USUAL or _is_name(name)) and not (odd and _holds_line_end(value)):
            value = value.strip(blanks)
            fields[name] = unquote(value) if value and (value[0] in _QUOTES or value[-1] in _QUOTES) else value
    return fields


def _is_name(name: str) -> bool:
    return name.replace("_", "a").isalnum() and name.isascii()


def _holds_line_end(value: str) -> bool:
    """Whether a line end other than LF stands in the value, behind its leading blanks: none may."""
    value = value.lstrip(BLANKS)
    return any(line_end in value for line_end in LINE_ENDS)


def front_matter_bounds(content: str) -> tuple[int, int] | None:
    """Where the lines of the front matter begin and end; None where there is none."""
    start = _opening(content)
    end = _closing(content, start) if start else None
    return None if end is None else (start, end)


def front_matter_places(content: str) -> list[tuple[str, int]]:
    """The names in the front matter in their order, repeats too, each with the offset of its line."""
    bounds = front_matter_bounds(content)
    if bounds is None:
        return []
    places = []
    start = bounds[0]
    for line in content[bounds[0] : bounds[1]].replace("\r\n", "\n").split("\n"):
        name, colon, value = line.partition(":")
        if colon and _is_name(name) and not _holds_line_end(value):
            places.append((name, start))
        start += len(line)
        start += 2 if content.startswith("\r\n", start) else 1
    return places


def opens_front_matter(content: str) -> bool:
    """Whether the first line is `---`, be it closed or not."""
    return _opening(content) > 0


def _opening(content: str) -> int:
    """Where the first line of front matter begins; 0 where the text does not open with `---`."""
    return 4 if content.startswith("---\n") else 5 if content.startswith("---\r\n") else 0


def _closing(content: str, start: int) -> int | None:
    """Where the line end before the closing `---` begins.

    The search begins past the first line's own end, so that the closing line is the third or later.
    """
    at = content.find("\n---", start)
    while at >= 0:
        after = content[at + 4 : at + 6]
        if not after or after[0] == "\n" or after == "\r\n":
            return at - 1 if at > start and content[at - 1] == "\r" else at
        at = content.find("\n---", at + 1)
    return None


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
    lines = _LineEnds(content)
    at = content.find("slug:")
    while at >= 0:
        value = _link_value(content, at + 5) if _starts_line(content, done, at) else ""
        if value:
            found.append(unquote(value))
            done = lines.next(content.index(value, at + 5) + len(value))
        else:
            done = at + 5
        at = content.find("slug:", done)
    return found


def _link_value(content: str, at: int) -> str:
    """What stands from `at` on, behind blanks, up to a blank or `#`: empty where nothing does."""
    while content[at : at + 1] in BLANK_SET:
        at += 1
    end = at
    while end < len(content) and content[end] != "#" and content[end] not in BLANK_SET:
        end += 1
    return content[at:end]


class _LineEnds:
    """The line ends of a text, asked for at rising offsets: each is looked for once, however often it is asked for."""

    __slots__ = ("_ends", "_next")

    def __init__(self, content: str) -> None:
        self._ends = content
        if not content.isascii() or "\r" in content:
            for end in LINE_ENDS:
                self._ends = self._ends.replace(end, "\n")
        self._next = -1

    def next(self, at: int) -> int:
        """Where the line that `at` lies in ends."""
        if self._next < at:
            found = self._ends.find("\n", at)
            self._next = len(self._ends) if found < 0 else found
        return self._next


def _starts_line(content: str, done: int, at: int) -> bool:
    """Whether the text from `done` to `at` ends in a line's start, blanks, an optional dash and blanks.

    Runs of blanks may cross line ends.  Looking backwards keeps a note of a million blank lines linear.
    """
    line_end = content.rfind("\n", done, at)
    if line_end >= 0 and content[line_end + 1 : at].strip(ASCII_BLANKS) in ("", "-"):
        return True  # as nearly always
    before = content[done:at]
    for _ in range(2):
        rest = before.rstrip(BLANKS)
        if any(end in before[len(rest) :] for end in LINE_ENDS) or (done == 0 and not rest):
            return True
        if not rest.endswith("-"):
            return False
        before = rest[:-1]
    return False
