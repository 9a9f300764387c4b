"""Editing a note's front matter line by line, every other byte left as it is (docs/writing.md).

Where it begins and ends, and which line of a name counts, is the reader's rule; whatever is written is
read back by the reader before it is put in place.
"""

from __future__ import annotations

import re

from cortex_tools.domain.markdown import front_matter_bounds, unquote
from cortex_tools.domain.text import trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    Links = list[dict[str, str]]

_ITEM = re.compile(r"( *)- slug:[ \t]*([^\s#]+)[ \t]*")
_TYPE = re.compile(r"( +)type:[ \t]*([^\s#]*)[ \t]*")
_KEY = re.compile(r"[A-Za-z0-9_]+:")


def bounds(text: str) -> tuple[int, int] | None:
    """Where the lines between the two `---` lines begin and end in `text`; None where there is no front matter."""
    found = front_matter_bounds(text)
    return None if found is None else (found[0], text.index("\n", found[1]) + 1)


def set_updated(head: list[str], now: str) -> list[str]:
    """Lines (without ends) in which `updated` is `now`: the last such line, which counts, else a new one."""
    for number in range(len(head) - 1, -1, -1):
        if head[number].startswith("updated:"):
            return [*head[:number], f"updated: {now}", *head[number + 1 :]]
    return [*head, f"updated: {now}"]


def merge_related(head: list[str], links: Links) -> tuple[list[str], str | None]:
    """Lines in which the block list `related` also has `links`, by slug; a type given now wins.

    The second answer says why the lines were left alone, None where they were not.
    """
    places = [number for number, line in enumerate(head) if line.startswith("related:")]
    if not places:
        return [*head, "related:", *_lines(links, "  ")], None
    if len(places) > 1:
        return head, "related stands there twice"
    at = places[0]
    value = trim(head[at].removeprefix("related:"))
    end = next((n for n in range(at + 1, len(head)) if _KEY.match(head[n])), len(head))
    block = head[at + 1 : end]
    if value == "[]" and not any(map(trim, block)):
        return [*head[:at], "related:", *_lines(links, "  "), *head[at + 1 :]], None
    if value:
        return head, "related is an inline list"
    merged = _merge(block, links)
    if merged is None:
        return head, "related holds more than slug and type"
    return [*head[: at + 1], *merged, *head[end:]], None


def _lines(links: Links, indent: str) -> list[str]:
    return [line for link in links for line in (f"{indent}- slug: {link['slug']}", f"{indent}  type: {link['type']}")]


def _merge(block: list[str], links: Links) -> list[str] | None:
    """The lines of a block list with `links` merged in; None where it holds anything else than slug and type."""
    lines = list(block)
    while lines and not trim(lines[-1]):
        lines.pop()
    blank = block[len(lines) :]
    items = _items(lines)
    if items is None:
        return None
    new: Links = []
    for link in links:
        found = next((item for item in items if item.slug == link["slug"]), None)
        if found is None:
            new.append(link)
        elif found.kind != link["type"]:
            found.kind = link["type"]
            found.lines[1:] = [f"{found.indent}  type: {link['type']}"]
    indent = items[0].indent if items else "  "
    return [*(line for item in items for line in item.lines), *_lines(new, indent), *blank]


class _Item:
    """One link of a block list, in its own lines."""

    __slots__ = ("indent", "kind", "lines", "slug")

    def __init__(self, indent: str, slug: str, line: str) -> None:
        self.indent = indent
        self.slug = slug
        self.kind = ""
        self.lines = [line]


def _items(lines: list[str]) -> list[_Item] | None:
    items: list[_Item] = []
    for line in lines:
        if (slug := _ITEM.fullmatch(line)) is not None and (not items or items[0].indent == slug[1]):
            items.append(_Item(slug[1], unquote(slug[2]), line))
        elif (kind := _TYPE.fullmatch(line)) is not None and items and len(items[-1].lines) == 1:
            if len(kind[1]) != len(items[-1].indent) + 2:
                return None
            items[-1].kind = unquote(kind[2])
            items[-1].lines.append(line)
        else:
            return None
    return items
