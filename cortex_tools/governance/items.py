"""Typed items: known types, their fields, and what each value must be (docs/writing.md).

`sanitize` gives a new item in which every text has lost its private spans and passed every check.
Messages name the field, never what it holds.
"""

from __future__ import annotations

import math
import re

from cortex_tools.contract import limits
from cortex_tools.domain import privacy
from cortex_tools.domain.markdown import links, unquote
from cortex_tools.domain.text import LINE_ENDS, is_blank, text_fault, trim, utf16_length
from cortex_tools.files.names import shown
from cortex_tools.governance.refusal import EUNKNOWN_TYPE, Refusal, invalid_item
from cortex_tools.governance.scalars import yaml_reads_otherwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = dict[str, Any]

FIELDS = {
    "memory": ("type", "actor", "op", "content", "entries", "provenance", "confidence"),
    "idea": ("type", "title", "content", "source_session", "confidence", "related"),
    "knowledge": ("type", "entity_type", "name", "content", "source_session", "confidence", "related"),
    "proposal": (
        "type",
        "target_file",
        "target_kind",
        "edit",
        "confidence",
        "rationale",
        "observed_across_sessions",
        "source_session",
    ),
}
ACTORS = ("principal", "assistant")
OPERATIONS = ("add", "set")
PROVENANCES = ("explicit", "deduced", "inferred")
ENTITY_TYPES = ("person", "company", "research")
RELATIONS = (
    "supports",
    "contradicts",
    "extends",
    "part-of",
    "instance-of",
    "caused-by",
    "preceded-by",
    "related",
)
TARGET_KINDS = (
    "identity",
    "style",
    "definition",
    "canonical-content",
    "resume",
    "operational-rule",
    "projects",
    "contacts",
)
ENTRY_PREFIXES = ("NAME: ", "ROLE: ", "RELATION: ", "PREFERENCE: ", "RULE: ")

_LINES = re.compile(f"[{LINE_ENDS}]")
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def sanitize(item: object) -> Item:
    """The item as it may be written.

    Raises EINVAL_ITEM for what is no item or holds a bad value, EUNKNOWN_TYPE for an unknown type.
    """
    kind = _kind(item)
    assert isinstance(item, dict)
    extra = sorted(shown(str(key)) for key in item if key not in FIELDS[kind])
    if extra:
        allowed = ", ".join(FIELDS[kind])
        raise invalid_item(f"{', '.join(extra[:10])}: no field of the type {kind}, which has {allowed}")
    clean: Item = {"type": kind}
    _SANITIZERS[kind](item, clean)
    return clean


def _kind(item: object) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise invalid_item(f"an item is an object with a type, one of {', '.join(FIELDS)}")
    kind: str = item["type"]
    if kind not in FIELDS:
        raise Refusal(EUNKNOWN_TYPE, f"the type is not one of {', '.join(FIELDS)}")
    return kind


def _memory(item: Item, clean: Item) -> None:
    clean["actor"] = _choice(item, "actor", ACTORS)
    clean["op"] = _choice(item, "op", OPERATIONS) if "op" in item else "add"
    wanted, other = ("content", "entries") if clean["op"] == "add" else ("entries", "content")
    if wanted not in item:
        raise invalid_item(f"op {clean['op']} needs {wanted}")
    if other in item:
        raise invalid_item(f"op {clean['op']} takes {wanted}, not {other}; leave {other} out")
    if clean["op"] == "add":
        content = _text(item["content"], "content", limits.CONTENT_UNITS)
        _refuse_links(content)
        clean["entries"] = [_entry(content, "content")]
    else:
        clean["entries"] = _entries(item["entries"])
    if "provenance" in item:
        clean["provenance"] = _choice(item, "provenance", PROVENANCES)
    _confidence(item, clean)


def _idea(item: Item, clean: Item) -> None:
    _note(item, clean, "title")


def _knowledge(item: Item, clean: Item) -> None:
    clean["entity_type"] = _choice(item, "entity_type", ENTITY_TYPES)
    _note(item, clean, "name")


def _note(item: Item, clean: Item, title: str) -> None:
    clean["title"] = trim(_line(_required(item, title), title, limits.TITLE_UNITS))
    content = _text(_required(item, "content"), "content", limits.CONTENT_UNITS)
    _refuse_links(content)
    clean["content"] = trim(content)
    _session(item, clean)
    _confidence(item, clean)
    clean["related"] = _related(item["related"]) if "related" in item else []


def _proposal(item: Item, clean: Item) -> None:
    clean["target_file"] = _target_file(_required(item, "target_file"))
    if "target_kind" in item:
        clean["target_kind"] = _choice(item, "target_kind", TARGET_KINDS)
    clean["edit"] = _text(_required(item, "edit"), "edit", limits.CONTENT_UNITS)
    clean["rationale"] = _text(_required(item, "rationale"), "rationale", limits.CONTENT_UNITS)
    _required(item, "confidence")
    _confidence(item, clean)
    clean["observed_across_sessions"] = _observed(item.get("observed_across_sessions", 1))
    _session(item, clean)


_SANITIZERS = {"memory": _memory, "idea": _idea, "knowledge": _knowledge, "proposal": _proposal}


def _required(item: Item, field: str) -> Any:
    if field not in item:
        raise invalid_item(f"{field} is required")
    return item[field]


def _choice(item: Item, field: str, choices: tuple[str, ...]) -> str:
    value = _required(item, field)
    if not isinstance(value, str) or value not in choices:
        raise invalid_item(f"{field} must be one of {', '.join(choices)}")
    return value


def _text(value: Any, field: str, limit: int, *, blank: bool = False) -> str:
    """A text without its private spans; `limit` in UTF-16 code units."""
    if not isinstance(value, str):
        raise invalid_item(f"{field} must be a text")
    if text_fault(value) == "a lone surrogate":
        raise invalid_item(f"{field} holds a lone surrogate; send it as UTF-8")
    text = _stripped(value, field)
    length = utf16_length(text)
    if length > limit:
        raise invalid_item(f"{field} has {length} characters, more than {limit}; shorten it")
    if not blank and is_blank(text):
        emptied = " once private text is removed" if text != value else ""
        raise invalid_item(f"{field} is blank{emptied}")
    if text_fault(text):
        raise invalid_item(f"{field} holds a control character; remove it")
    if any(trim(line) == "---" for line in _LINES.split(text)):
        raise invalid_item(f"{field} has a line that is only ---, which would end front matter; remove it")
    if "<!--" in text or "-->" in text:
        raise invalid_item(f"{field} holds <!-- or -->, which would open or close a comment; remove it")
    return text


def _stripped(value: str, field: str) -> str:
    """What the privacy boundary leaves; refuses where it cut the text off at what only looks like an opener."""
    stripped = privacy.strip(value)
    # `malformed` also inside an open span, whose own reason would be that it never closes.
    if stripped.malformed is not None or stripped.reason == privacy.REMNANT:
        raise invalid_item(
            f"{field} would be cut off where something that looks like a private tag is not a well-formed one; "
            "correct the tag, or put a space or another word after the bracket"
        )
    return stripped.text


def _line(value: Any, field: str, limit: int, *, blank: bool = False) -> str:
    text = _text(value, field, limit, blank=blank)
    if _LINES.search(text):
        raise invalid_item(f"{field} must be a single line")
    return text


def _refuse_links(content: str) -> None:
    # The word after it stands for whatever may follow the content one day.
    if links(content + "\nx"):
        raise invalid_item("content has a line that begins with slug:, which would be read as a link; use related")


def clean_reason(value: str | None) -> str | None:
    """A person's reason for a rejection: one line, stripped and checked like any text; raises EINVAL_ITEM."""
    return None if value is None else trim(_line(value, "the reason", limits.TITLE_UNITS))


def _entries(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise invalid_item("entries must be a list of texts")
    if len(value) > limits.HOT_ENTRIES:
        over = len(value) - limits.HOT_ENTRIES
        raise invalid_item(f"entries has {len(value)}, more than {limits.HOT_ENTRIES}; trim {over}")
    return [_set_entry(one, f"entries[{number}]") for number, one in enumerate(value)]


def _set_entry(value: Any, field: str) -> str:
    return _entry(_text(value, field, limits.CONTENT_UNITS), field)


def _entry(text: str, field: str) -> str:
    """One entry of hot memory: a single line with a known prefix and not too much after it."""
    entry = trim(text)
    if _LINES.search(entry):
        raise invalid_item(f"{field} must be a single line: one entry")
    prefix = next((prefix for prefix in ENTRY_PREFIXES if entry.startswith(prefix)), None)
    if prefix is None:
        known = " ".join(prefix.strip() for prefix in ENTRY_PREFIXES)
        raise invalid_item(f"{field} must begin with one of {known} and a space, and say something after it")
    length = utf16_length(entry) - len(prefix)
    if length > limits.ENTRY_UNITS:
        raise invalid_item(
            f"{field} has {length} characters after its prefix, more than {limits.ENTRY_UNITS}; shorten it"
        )
    return entry


def _confidence(item: Item, clean: Item) -> None:
    if "confidence" not in item:
        return
    value = item["confidence"]
    if type(value) not in (int, float) or not 0 <= value <= 1 or not math.isfinite(value):
        raise invalid_item("confidence must be a number from 0 to 1")
    clean["confidence"] = int(value) if value in (0, 1) else value


def _observed(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 1 <= value <= limits.PAGE:
        raise invalid_item("observed_across_sessions must be a whole number of at least 1")
    return value


def _related(value: Any) -> list[dict[str, str]]:
    """Links by slug in first-seen order; of a slug given twice the later type counts."""
    if not isinstance(value, list) or len(value) > limits.RELATED:
        raise invalid_item(f"related must be a list of at most {limits.RELATED} links")
    merged: dict[str, str] = {}
    for number, link in enumerate(value):
        where = f"related[{number}]"
        if not isinstance(link, dict) or set(link) != {"slug", "type"}:
            raise invalid_item(f"{where} must be an object of exactly slug and type")
        slug = _line(link["slug"], f"{where}.slug", limits.SLUG_UNITS)
        if not _SLUG.fullmatch(slug):
            raise invalid_item(f"{where}.slug must be ASCII letters, digits, . _ or -, a letter or digit first")
        kind = link["type"]
        if not isinstance(kind, str) or kind not in RELATIONS:
            raise invalid_item(f"{where}.type must be one of {', '.join(RELATIONS)}")
        merged[slug] = kind
    return [{"slug": slug, "type": kind} for slug, kind in merged.items()]


def _target_file(value: Any) -> str:
    if isinstance(value, str) and not text_fault(value) and privacy.strip_private(value) != value:
        raise invalid_item("target_file holds private markup; name the file plainly")
    return _line(value, "target_file", limits.TARGET_UNITS)


def _session(item: Item, clean: Item) -> None:
    if "source_session" not in item:
        return
    session = trim(_line(item["source_session"], "source_session", limits.TITLE_UNITS, blank=True))
    if not session:
        return
    if yaml_reads_otherwise(session) or unquote(session) != session:
        raise invalid_item(
            "source_session would be read from front matter as something else than this text; "
            "use letters, digits and dashes, with a letter"
        )
    clean["source_session"] = session
