"""An expansion as a graph in the language of Graphviz (cortex-expand --dot)."""

from __future__ import annotations

import re

_LABEL = 80  # characters of a title or an ID that a node shows
_LINE_ENDS = re.compile("\r\n|[\n\r\u2028\u2029]")
# What XML, and so an SVG, cannot hold; a title that is a path may.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"}

_ROOT = ", penwidth=2"
_LEFT_OUT = ", style=dashed"
_UNKNOWN = ", shape=plaintext, fontcolor=gray40"


def render(root: str, reached: list[str], links: dict[str, list[str]], titles: dict[str, str]) -> str:
    """The records that were reached, root first, their links, and where these lead.

    `links` and `titles` are those of all records of the stream.  A record that a budget left out is dashed
    and its own links are not drawn; an ID that no record of the stream has stands without a box.
    """
    names: dict[str, str] = {}
    nodes: list[str] = []
    edges: list[str] = []

    def name_of(identifier: str, look: str) -> str:
        if identifier not in names:
            names[identifier] = f"n{len(names) + 1}"
            nodes.append(f'  {names[identifier]} [label="{_label(identifier, titles.get(identifier))}"{look}];')
        return names[identifier]

    for identifier in reached:
        name_of(identifier, _ROOT if identifier == root else "")
    if not reached:
        name_of(root, _ROOT + _LEFT_OUT)
    for identifier in reached:
        for link in dict.fromkeys(links[identifier]):
            target = name_of(link, _LEFT_OUT if link in links else _UNKNOWN)
            edges.append(f"  {names[identifier]} -> {target};")
    return "\n".join(["digraph expansion {", "  node [shape=box];", *nodes, *edges, "}"]) + "\n"


def _label(identifier: str, title: str | None) -> str:
    """What a quoted string must hold to show title and ID, each on a line of its own, as they are."""
    lines = [identifier or '""'] if title is None or title == identifier else [title, identifier]
    return "\\n".join(_escaped(line if len(line) <= _LABEL else line[:_LABEL] + "…") for line in lines)


def _escaped(text: str) -> str:
    """Graphviz resolves escapes and, within them, entities: neither may come of the text itself."""
    visible = _UNSHOWN.sub("\ufffd", _LINE_ENDS.sub("\n", text))
    return "".join(_ESCAPES.get(char, char) for char in visible).replace("\n", "\\n")
