"""Notes (tier B): ideas and knowledge, created or appended to (docs/writing.md)."""

from __future__ import annotations

import codecs
import hashlib
import re
import unicodedata

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.markdown import front_matter
from cortex_tools.domain.numbers import js_number
from cortex_tools.domain.privacy import strip, strip_private
from cortex_tools.domain.records import Record
from cortex_tools.domain.text import trim, utf16_length
from cortex_tools.governance import corpus, frontmatter
from cortex_tools.governance.folders import File, Folder
from cortex_tools.governance.layout import Place
from cortex_tools.governance.places import KNOWLEDGE, NOTE_FOLDERS, NOTE_LOG
from cortex_tools.governance.refusal import ESOURCE_OWNED, Refusal, invalid_item, write_failed
from cortex_tools.governance.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = dict[str, Any]

_NOT_SLUG = re.compile("[^a-z0-9]+")
_SLUG_LENGTH = 64
_SHORT_UNITS = 400


def write(session: Session, item: Item) -> tuple[str, Item]:
    """Create or extend the note of a sanitized item; the answer is its path and the result's detail."""
    kind = item.get("entity_type", "idea")
    title = item["title"]
    names = file_names(title)
    place = Place("root", (KNOWLEDGE, NOTE_FOLDERS[kind]), names[0])
    session.layout.check_tier(item["type"], place)
    folder, name = session.take(place, lambda folder: _choose(session, folder, title, names))
    path = folder.shown(name)
    old = session.store.read(folder, name)
    left_alone: list[str] = []
    if old is None:
        data, links = new_note(item, kind, path, session.now), len(item["related"])
        _check_new(path, data, item)
    else:
        data, links = _appended(item, path, old, session, left_alone)
    session.check_note(path, len(data))
    how = "created" if old is None else "appended"
    detail: Item = {"bytes_written": len(data), "created_or_appended": how, "related_links": links}
    row = {"type": item["type"], "path": path} | detail
    row |= {"source_session": item.get("source_session"), "confidence": item.get("confidence")}
    session.replace(folder, name, old, data, NOTE_LOG, row)
    if left_alone:
        detail["left_alone"] = left_alone
    return path, detail


# Which file.


def file_names(title: str) -> list[str]:
    """The files that a title's note may be: the plain one, where the title survives in it, then one with a hash.

    The hash is that of the title, so that two titles never share a note.
    """
    lower = title.lower()
    slug = _NOT_SLUG.sub("-", lower).strip("-")[:_SLUG_LENGTH]
    hashed = f"{slug}-{hashlib.sha256(title.encode()).hexdigest()[:8]}".lstrip("-")
    lost = any(not char.isascii() and unicodedata.category(char)[0] in "LN" for char in lower)
    return [f"{hashed}.md"] if lost or not slug else [f"{slug}.md", f"{hashed}.md"]


def _choose(session: Session, folder: Folder, title: str, names: list[str]) -> str:
    """The name under which the title's note is, or is to be."""
    there = {name: _title_in(session, folder, name) for name in names}
    for name in names:
        if there[name] == title:
            return name
    free = next((name for name in names if there[name] is None), None)
    if free is None:
        raise write_failed(f"{folder.shown(names[-1])} has another title; rename that note, or put the title otherwise")
    return free


def _title_in(session: Session, folder: Folder, name: str) -> str | None:
    """The title of an existing note as it was before it was escaped; None where there is no such note."""
    file = session.store.read(folder, name)
    if file is None:
        return None
    path = folder.shown(name)
    record = _sound(path, file.data)
    raw = frontmatter_title(strip_private(_decoded(path, file.data.removeprefix(codecs.BOM_UTF8))))
    return record.title if raw is None else raw


def frontmatter_title(text: str) -> str | None:
    """The title that section 4 wrote, without its escapes; None where there is none in double quotes."""
    where = frontmatter.bounds(text)
    if where is None:
        return None
    lines = [line for line in text[where[0] : where[1]].split("\n") if line.startswith("title:")]
    value = trim(lines[-1].removeprefix("title:")) if lines else ""
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return None
    return re.sub(r"\\(.)", r"\1", value[1:-1])


def _sound(path: str, data: bytes) -> Record:
    """The record of an existing note; raises EWRITE_FAILED where the reader does not take it."""
    try:
        return corpus.read(path, data)
    except CortexError as error:
        raise write_failed(f"{error.message}; nothing is added to a note that cannot be read") from None


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise write_failed(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None


# A new note.


def new_note(item: Item, kind: str, path: str, now: str) -> bytes:
    """The bytes of a new note; `now` is ISO time, `path` relative to the root."""
    title, content = item["title"], item["content"]
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        "---",
        f"id: kb_{hashlib.sha256(f'{path} {now}'.encode()).hexdigest()[:12]}",
        f"type: {kind}",
        f'title: "{escaped}"',
        "tags: [untagged]",
        "status: seedling",
        f"quality: {2 if utf16_length(content) < _SHORT_UNITS else 5}",
        "quality_inferred: true",
    ]
    if "confidence" in item:
        lines.append(f"confidence: {js_number(item['confidence'])}")
    lines.append("source_kind: internal")
    if "source_session" in item:
        lines.append(f"source_session: {item['source_session']}")
    lines += [f"created: {now}", f"updated: {now}"]
    if item["related"]:
        lines.append("related:")
        for link in item["related"]:
            lines += [f"  - slug: {link['slug']}", f"    type: {link['type']}"]
    else:
        lines.append("related: []")
    lines += ["convention: kb-v3", "---", "", f"# {title}", "", content]
    return ("\n".join(lines) + "\n").encode()


def _check_new(path: str, data: bytes, item: Item) -> None:
    """See that the reader gives back exactly what was written; raises EINVAL_ITEM."""
    try:
        record = corpus.read(path, data)
    except CortexError as error:
        raise invalid_item(f"the reader would refuse the note: {error.message}") from None
    same = record.content.encode() == data and record.session == item.get("source_session")
    if not same or record.related != [link["slug"] for link in item["related"]]:
        raise invalid_item("title and content together would be read as something else, private markup perhaps")


# An existing note.


def _appended(item: Item, path: str, old: File, session: Session, left_alone: list[str]) -> tuple[bytes, int]:
    """The note's bytes with the item added, and how many of its links now stand in the front matter."""
    record = _sound(path, old.data)
    text = _decoded(path, old.data.removeprefix(codecs.BOM_UTF8))
    mark = codecs.BOM_UTF8 if old.data.startswith(codecs.BOM_UTF8) else b""
    stripped = strip(text)
    if stripped.cut is not None:
        raise write_failed(f"{path} has a private tag that is malformed or never closed; what is added would be lost")
    owner = front_matter(stripped.text).get("source_kind")
    if owner and owner != "internal":
        raise Refusal(
            ESOURCE_OWNED,
            f"{path} belongs to the source that its source_kind names, whose next import would overwrite the addition; "
            "use another title",
        )
    where = frontmatter.bounds(text)
    head, links = _new_head(item, text, where, stripped.spans, record, session, left_alone)
    body = text if where is None else text[where[1] :]
    section = _section(item, session.now)
    data = mark + (head + body + ("" if body.endswith("\n") or not body else "\n") + section).encode()
    _check_appended(path, data, record, section, item, links)
    return data, links


def _section(item: Item, now: str) -> str:
    confidence = js_number(item.get("confidence", 1))
    comment = f"<!-- source_session: {item.get('source_session', 'none')} · confidence: {confidence} -->"
    return f"\n## Appended {now}\n{comment}\n\n{item['content']}\n"


def _new_head(
    item: Item,
    text: str,
    where: tuple[int, int] | None,
    spans: list[tuple[int, int]],
    record: Record,
    session: Session,
    left_alone: list[str],
) -> tuple[str, int]:
    """The front matter, its first line included, with `updated` set and links merged as far as it is ours to change."""
    if where is None:
        left_alone.append("updated and related: the note has no front matter")
        return "", 0
    first, inner = text[: where[0]], text[where[0] : where[1]]
    if "\r" in first or "\r" in inner:
        left_alone.append("updated and related: the front matter has CR LF line ends")
        return first + inner, 0
    if any(start < where[1] for start, _ in spans):
        left_alone.append("updated and related: the front matter holds private text")
        return first + inner, 0
    lines = inner.split("\n")[:-1]
    if record.updated_ms > session.now_ms:
        left_alone.append("updated: it lies in the future")
    else:
        lines = frontmatter.set_updated(lines, session.now)
    links = 0
    if item["related"]:
        lines, reason = frontmatter.merge_related(lines, item["related"])
        if reason is None:
            links = len(item["related"])
        else:
            left_alone.append(f"related: {reason}")
    return first + "\n".join(lines) + "\n", links


def _check_appended(path: str, data: bytes, old: Record, section: str, item: Item, links: int) -> None:
    """See that the reader finds the old note with the addition, and nothing else changed; raises EWRITE_FAILED."""
    new = corpus.check_bytes(path, data)
    wanted = [link["slug"] for link in item["related"]] if links else []
    kept = (new.id, new.type, new.title, new.created, new.source, new.session, new.valid_from, new.valid_until)
    was = (old.id, old.type, old.title, old.created, old.source, old.session, old.valid_from, old.valid_until)
    if (
        kept != was
        or not new.content.endswith(section)
        or not {*wanted, *old.related} <= set(new.related)
        or len(new.related) > len(old.related) + len(wanted)
    ):
        raise write_failed(f"{path} would be read otherwise than before with the addition; edit it by hand")
