"""Hot memory (tier A): two small files of entries, always written in one form (docs/writing.md)."""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.domain.privacy import strip
from cortex_tools.domain.text import trim
from cortex_tools.governance import corpus, frontmatter
from cortex_tools.governance.items import ENTRY_PREFIXES
from cortex_tools.governance.places import MEMORY_LOG
from cortex_tools.governance.refusal import EAT_CAP, ESUSPECT_EROSION, ESUSPECT_SHRINK, Refusal, write_failed
from cortex_tools.governance.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = dict[str, Any]

BEGIN = "<!-- BEGIN ENTRIES -->"
END = "<!-- END ENTRIES -->"
WRITER = "MemorySystem.add"
_STAMPS = ("last_updated:", "last_updated_by:")
# From this many entries on a loss is looked at.
_GUARDED = 10
_FEWEST_LEFT = 3


class Hot:
    """A hot file in its parts: front matter lines without the stamp, body lines, entries.  Lines have no ends.

    `stamp_at` is where among the front matter lines the stamp stands.
    """

    __slots__ = ("body", "entries", "eol", "head", "mark", "stamp_at")

    def __init__(self) -> None:
        self.mark = ""
        self.eol = "\n"
        self.head: list[str] = []
        self.stamp_at = 0
        self.body: list[str] = []
        self.entries: list[str] = []

    def text(self, now: str) -> str:
        """The one form in which a hot file is written; parsing it again gives the same parts."""
        head = [*self.head[: self.stamp_at], *_stamp(now), *self.head[self.stamp_at :]]
        before = [line + self.eol for line in ("---", *head, "---")]
        after = [line + self.eol for line in ("", BEGIN, *self.entries, END)]
        return self.mark + "".join([*before, *(line + "\n" for line in self.body), *after])


def _stamp(now: str) -> list[str]:
    return [f"last_updated: {now}", f"last_updated_by: {WRITER}"]


def parse(text: str) -> Hot:
    """The parts of a hot file, however damaged.

    Markers are structure; a line that begins with a known prefix is an entry wherever it stands, the first
    of equal ones kept; all else is body.  What a private span covers beyond its own line is body, unseen:
    no part of it is ever moved out of the span.
    """
    hot = Hot()
    hot.mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text[len(hot.mark) :]
    hot.eol = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    where = frontmatter.bounds(text)
    if where is not None:
        head = text[where[0] : where[1]].split("\n")[:-1]
        if any(_marker(line) for line in head):
            where = None
        else:
            hot.head, hot.stamp_at = _without_stamp([line.removesuffix("\r") for line in head])
    start = 0
    if where is not None:
        start = text.find("\n", where[1]) + 1 or len(text)
    _sort_lines(hot, text, start)
    return hot


def _without_stamp(head: list[str]) -> tuple[list[str], int]:
    kept = [line for line in head if not line.startswith(_STAMPS)]
    first = next((number for number, line in enumerate(head) if line.startswith(_STAMPS)), len(head))
    return kept, first


def _sort_lines(hot: Hot, text: str, start: int) -> None:
    """Tell entries, markers and body apart in `text` from `start` on."""
    # Spans that leave their line, last first: those that end before a line are never looked at again.
    crossing = [span for span in reversed(strip(text).spans) if "\n" in text[span[0] : span[1]]]
    seen: set[str] = set()
    at = start
    for line in text[start:].split("\n"):
        end = at + len(line)
        while crossing and crossing[-1][1] <= at:
            crossing.pop()
        covered = bool(crossing) and crossing[-1][0] < end
        plain = line.removesuffix("\r")
        at = end + 1
        if covered:
            hot.body.append(line)
        elif plain.startswith(ENTRY_PREFIXES):
            if plain not in seen:
                seen.add(plain)
                hot.entries.append(plain)
        elif not _marker(line):
            hot.body.append(line)
    while hot.body and not trim(hot.body[-1]):
        hot.body.pop()


def _marker(line: str) -> bool:
    return trim(line) in (BEGIN, END)


def write(session: Session, item: Item) -> tuple[str, Item]:
    """Add one entry, or set all; the answer is the file's path and the result's detail."""
    place = session.layout.hot(item["actor"])
    session.layout.check_tier("memory", place)
    folder, name = session.take(place)
    path = folder.shown(name)
    old = session.store.read(folder, name)
    text = "" if old is None else decoded(path, old.data)
    hot = parse(text)
    detail, entries = _change(hot, item)
    row = {"type": "memory", "actor": item["actor"], "op": item["op"], "path": path} | detail
    row |= {"provenance": item.get("provenance"), "confidence": item.get("confidence")}
    refusal = judge_loss(hot.entries, entries)
    if refusal is not None:
        session.audit(MEMORY_LOG, row | {"rejected": True, "rejection_code": refusal.code}, keep=True)
        raise refusal
    hot.entries = entries
    data = hot.text(session.now).encode()
    check_privacy(path, text, data.decode(), item["entries"], session.now)
    if session.layout.is_note(place):
        corpus.check_bytes(path, data)
        session.check_note(path, len(data))
    session.replace(folder, name, old, data, MEMORY_LOG, row | {"rejected": False}, snapshot=True)
    return path, detail


def decoded(path: str, data: bytes) -> str:
    """The text of an existing hot file; raises EWRITE_FAILED for what cannot be rewritten safely."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise write_failed(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    if strip(text).cut is not None:
        raise write_failed(
            f"{path} has a private tag that is malformed or never closed: what is added after it would be lost, and "
            "what it hides could come out; close the tag"
        )
    return text


def _change(hot: Hot, item: Item) -> tuple[Item, list[str]]:
    """The result's detail, and the entries as they will be; raises EAT_CAP."""
    base = hot.entries if item["op"] == "add" else []
    new = [entry for entry in dict.fromkeys(item["entries"]) if entry not in base]
    entries = [*base, *new]
    if len(entries) > limits.HOT_ENTRIES:
        over = len(entries) - limits.HOT_ENTRIES
        raise Refusal(
            EAT_CAP,
            f"the file would hold {len(entries)} entries, more than {limits.HOT_ENTRIES}; trim {over} first "
            "(by op set with the entries that are to stay, or by hand)",
        )
    detail = {
        "prior_count": len(hot.entries),
        "new_count": len(entries),
        "accepted": len(new),
        "dropped_duplicates": len(item["entries"]) - len(new),
    }
    return detail, entries


def judge_loss(before: list[str], after: list[str]) -> Refusal | None:
    """The shrink guard: what is suspect about going from `before` to `after`, None where nothing is."""
    prior, left = len(before), len(after)
    if prior < _GUARDED:
        return None
    gone = len(set(before) - set(after))
    added = len(set(after) - set(before))
    counts = f"{prior} entries were there, {left} would be left ({gone} gone, {added} new)"
    if left < _FEWEST_LEFT or (2 * gone > prior and added == 0):
        return Refusal(
            ESUSPECT_SHRINK,
            f"{counts}; {_way_out(prior)}",
        )
    if 10 * (prior - left) > max(20, prior):
        return Refusal(
            ESUSPECT_EROSION,
            f"{counts}; {_way_out(prior)}",
        )
    return None


def _way_out(prior: int) -> str:
    """How to proceed where a loss is meant: in steps that are not suspect, if the cap lets any such step through."""
    step = max(2, prior // 10)
    if prior - step > limits.HOT_ENTRIES:
        return f"a file of more than {limits.HOT_ENTRIES} entries is trimmed by hand: delete lines from it"
    return f"if that is meant, take it in smaller steps, at most {step} in one write"


def check_privacy(path: str, old: str, new: str, entries: list[str], now: str) -> None:
    """See that the privacy boundary takes nothing away from what is written, and that nothing it took away before
    comes out: the stamp's old lines may have held one end of a span.  Raises EWRITE_FAILED."""
    left = strip(new)
    lines = _shown_lines(left.text)
    if left.cut is not None or not lines.issuperset(entries):
        raise write_failed(f"{path} would have private markup where there was none; put the entry another way")
    ours = {"", "---", BEGIN, END, *entries, *_stamp(now)}
    if not lines <= _shown_lines(strip(old).text) | ours:
        raise write_failed(
            f"{path} has a private span that begins or ends in its last_updated lines, which are written anew, so that "
            "what it hides could come out; move the tag to another line"
        )


def _shown_lines(text: str) -> set[str]:
    return {line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")}
