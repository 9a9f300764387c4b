"""A corpus with a canary, a word of its own, in every kind of private text, for tests that nothing leaks.

`sound()` is a corpus that the contract accepts; `broken()` gives corpora that it refuses, each fault right
beside a canary.  A canary begins with STEM, which stands nowhere else: `leaks(output)` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.support import note, row

STEM = "zqx"
COMMON = "loom"  # a term in the public part of (nearly) every record
HUB = "hub"  # the ID of a record that links to every other note of a known ID

Files = dict[str, str | bytes]

# What hides: `{}` stands for text to hide.  After these the text goes on.
SPANS = {
    "plain": "<private>{}</private>",
    "attributes": '<private reason="{}" level=3 {}>{}</private {}>',
    "slash": "<private /{}>{}</private>",
    "nested": "<private>{} <private>{}</private> {}</private>",
    "siblings": "<private>{}</private><private>{} <private>{}</private><private>{}</private></private>",
    "deep": "<private>" * 300 + "{}" + "</private>" * 299 + " {} </private>",
    "upper": "<PRIVATE>{}</PRIVATE>",
    "mixed": "<PriVate {}>{}</pRIVATE>",
    "crlf": "<\r\nprivate\r\n{}>{}<\r\n/\r\nprivate\r\n>",
    "lines": "<private>\n{}\n\n---\n{}\n</private>",
    "blanks": "<\u00a0private\u3000{}>{}</\ufeffprivate\u2028>",
    "orphan": "</private {}>",
    "orphans": "</private></private {}><private>{}</private></private {}>",
    "markup": "<private><b>{}</b> & </private-x> {} </private>",
    "code": "`<private>{}</private>`",
}
# After these nothing is public any more.
CUTS = {
    "unclosed": "<private>{}",
    "unclosed-nested": "<private><private>{}</private> {}",
    "unclosed-attributes": "<private {}>",
    "no-bracket": "<private {}",
    "bracket-inside": "<private <b>{}</b></private>",
    "privateer": "<privateer>{}</privateer>",
    "dash": "<private-note {}>{}</private-note>",
    "self-closing": "<private/>{}",
    "comparison": "if a < private_count then {}",
    "space-inside": "<pri vate>{}</private>",
    "line-inside": "<pri\nvate>{}</private>",
    "zero-width": "<pri\u200bvate>{}</private>",
    "zero-width-first": "<\u200bprivate {}>{}</private>",
    "soft-hyphen": "<pri\u00advate>{}</private>",
    "word-joiner": "<\u2060private>{}</private>",
    "direction": "<pri\u202evate>{}</private>",
    "full-width": "<\uff50\uff52\uff49\uff56\uff41\uff54\uff45>{}</private>",
    "mathematical": "<\U0001d429\U0001d42b\U0001d422\U0001d42f\U0001d41a\U0001d42d\U0001d41e>{}</private>",
    "outlined": "<\U0001cce5\U0001cce7\U0001ccde\U0001cceb\U0001ccd6\U0001cce9\U0001ccda>{}</private>",
    "egyptian-control": "<pri\U00013439vate>{}</private>",
    "ligature": "<\u33daivate>{}</private>",
    "accent": "<private\u200b\u0301>{}</private>",
    "wide-brackets": "\uff1cprivate\uff1e{}\uff1c/private\uff1e",
    "wide-opener": "\uff1cprivate>{}</private>",
    "wide-closer": "<private\uff1e{}</private>",
    "wide-closer-inside": "<private \uff1e{}>{}</private>",
    "small-brackets": "\ufe64private\ufe65{}</private>",
    "formed": "<pri<private>{}</private>vate>{}</private>",
    "formed-by-orphan": "<pri</private>vate>{}</private>",
    "formed-closer": "</pri<private>{}</private>vate>{}",
    "formed-lookalike": "<</private>privateer>{}",
    "in-a-span": "<private>{}<privateer>{}</private>{}",
}

# Fields of a row that answers show, and how its value is built around the markup.
_ROW_FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "title": lambda text: {"title": text},
    "content": lambda text: {"content": text},
    "type": lambda text: {"type": text},
    "source_kind": lambda text: {"source_kind": text},
    "source": lambda text: {"source": text},
    "source_session": lambda text: {"source_session": text},
    "related": lambda text: {"related": ["a", text]},
}


class Corpus:
    """`files` for write_corpus; `canaries` maps each word that must not come out to where it was planted;
    `public` each word that must to the path of its note; `ids` the IDs that are known beforehand."""

    def __init__(self) -> None:
        self.files: Files = {}
        self.canaries: dict[str, str] = {}
        self.public: dict[str, str] = {}
        self.ids: list[str] = []

    def hide(self, place: str) -> str:
        """A new canary."""
        word = f"{STEM}{len(self.canaries):04d}"
        self.canaries[word] = place
        return word

    def show(self, path: str) -> str:
        """A new public word of the title or content of a record in `path`."""
        word = f"vis{len(self.public):04d}"
        self.public[word] = path
        return word

    def planted(self, markup: str, place: str) -> str:
        """`markup` with a new canary in each of its places."""
        return re.sub(r"\{\}", lambda _: self.hide(place), markup)


def leaks(output: bytes) -> list[str]:
    """The canaries in `output`, whatever their case; a piece of one counts."""
    return [word.decode() for word in re.findall(rb"%b[0-9]*" % STEM.encode(), output.lower())]


def escaped(text: str) -> str:
    """`text` as JSON string content in which every character is an escape."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def escaped_row(id: str, **fields: Any) -> str:
    """A row whose ID and given fields are written in escapes alone, so that the raw line shows no tag."""
    marks: dict[str, str] = {}

    def mark(value: Any) -> Any:
        if isinstance(value, list):
            return [mark(part) for part in value]
        marks[f"@{len(marks)}@"] = value
        return f"@{len(marks) - 1}@"

    line = row(mark(id), **{name: mark(value) for name, value in fields.items()})
    for name, value in marks.items():
        line = line.replace(name, escaped(value))
    return line


def sound() -> Corpus:
    """A corpus without fault.  Its records' public text is in title and content, and holds COMMON."""
    corpus = Corpus()
    _plant_bodies(corpus)
    _plant_front_matter(corpus)
    _plant_across_front_matter(corpus)
    _plant_rows(corpus)
    links = "".join(f"- slug: {id}\n" for id in corpus.ids)
    corpus.files["KNOWLEDGE/hub.md"] = note(HUB, f"{COMMON} hub\n{links}<private>{corpus.hide('hub')}</private>")
    corpus.ids.append(HUB)
    corpus.files["KNOWLEDGE/.hidden/skipped.md"] = f"never read {corpus.hide('skipped')}"
    corpus.files["KNOWLEDGE/_draft.md"] = f"never read {corpus.hide('skipped')}"
    corpus.files["KNOWLEDGE/other.txt"] = f"never read {corpus.hide('skipped')}"
    return corpus


def _plant_bodies(corpus: Corpus) -> None:
    """One note for each kind of markup, in its body."""
    for name, markup in {**SPANS, **CUTS}.items():
        id = f"body-{name}"
        path = f"KNOWLEDGE/bodies/{name}.md"
        before, hidden = corpus.show(path), corpus.planted(markup, id)
        after = corpus.show(path) if name in SPANS else corpus.hide(id)
        body = f"{COMMON} {before} {hidden} {after}"
        corpus.files[path] = note(id, body, source_session="s1", source_kind="notes")
        corpus.ids.append(id)
    path = "PRINCIPAL_MEMORY.md"
    hidden = corpus.planted(SPANS["plain"], "root file")
    corpus.files[path] = note("root-file", f"{COMMON} {hidden} {corpus.show(path)}")
    corpus.ids.append("root-file")


def _plant_front_matter(corpus: Corpus) -> None:
    """One note for each field of the front matter and each kind of span; and one that is cut in each field."""
    fields = ("title", "name", "id", "type", "source_kind", "source", "source_session", "slug", "secret")
    for field in fields:
        for kind in ("plain", "attributes", "nested", "crlf"):
            id = f"front-{field}-{kind}"
            path = f"KNOWLEDGE/front/{field}-{kind}.md"
            public = corpus.show(path) if field in ("title", "name") else "seen"
            value = id if field == "id" else public
            hidden = corpus.planted(SPANS[kind], id)
            lines = {"id": id, "created": "2024-02-01", field: value + hidden}
            corpus.files[path] = _front(lines, f"{COMMON} {corpus.show(path)}")
            corpus.ids.append(id)
        path = f"KNOWLEDGE/front/{field}-cut.md"
        hidden = corpus.planted(CUTS["privateer"], path)
        corpus.files[path] = _front(
            {"note": f"{COMMON} {corpus.show(path)}", field: hidden}, f"{COMMON} {corpus.hide(path)}"
        )
    for field, time in (("created", "2024-02-03"), ("updated", "2024-02-03"), ("valid_from", "2024-02-03")):
        path = f"KNOWLEDGE/front/{field}.md"
        hidden = corpus.planted(SPANS["plain"], path)
        corpus.files[path] = _front(
            {"id": f"front-{field}", "created": "2024-02-03", field: time + hidden}, f"{COMMON} {corpus.show(path)}"
        )
        corpus.ids.append(f"front-{field}")


def _front(lines: dict[str, str], body: str) -> str:
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in lines.items()) + f"---\n{body}\n"


def _plant_across_front_matter(corpus: Corpus) -> None:
    """Spans that swallow a fence of the front matter, both, or a name."""
    shapes = {
        "closing-fence": "---\nid: x\ntitle: a <private>{}\n---\n{}</private> {common} {public}\n",
        "both-fences": "<private>---\nid: {}\n---\n{}</private>{common} {public}\n",
        "moved-fence": "---\nid: across-moved\n<private>{}\n---\nid: {}\n</private>\n---\n{common} {public}\n",
        "field-name": "---\nid: across-name\nti<private>{}</private>tle: {common} {public}\n---\n{common}\n",
        "field-hidden": "---\nid: across-hidden\n<private>title: {}</private>\n---\n{common} {public}\n",
        "opening-fence": "-<private>{}</private>--\nid: across-opening\n---\n{common} {public}\n",
        "crlf": "---\r\nid: across-crlf\r\ntitle: t <private>{}\r\n{}</private>\r\n---\r\n{common} {public}\r\n",
        "unclosed": "---\nid: x\nsource: {common} {public}\ntitle: <private>{}\n---\n{}\n",
    }
    for name, shape in shapes.items():
        path = f"KNOWLEDGE/across/{name}.md"
        text = corpus.planted(shape, f"across {name}")
        corpus.files[path] = text.replace("{common}", COMMON).replace("{public}", corpus.show(path))


def _plant_rows(corpus: Corpus) -> None:
    """Rows with spans as they stand, and with spans and cuts in escapes, in every field that is shown."""
    raw, written = "KNOWLEDGE/rows/raw.jsonl", "KNOWLEDGE/rows/escaped.jsonl"
    rows: dict[str, list[str]] = {raw: [], written: []}
    for field, build in _ROW_FIELDS.items():
        for kind, markup in {**SPANS, **CUTS}.items():
            for path, make in ((raw, row), (written, escaped_row)):
                if path == raw and kind in CUTS:
                    continue  # it would cut the line off, and with it the object
                id = f"row-{make.__name__}-{field}-{kind}"
                hidden = corpus.planted(markup, id)
                searched = field in ("title", "content")
                public = f"{COMMON} {corpus.show(path)}" if searched else "seen"
                after = " end" if kind in SPANS else corpus.hide(id)
                rows[path].append(make(id, **build(f"{public} {hidden}{after}")))
                corpus.ids.append(id)
    for kind in ("plain", "attributes", "nested"):
        for path, make in ((raw, row), (written, escaped_row)):
            id = f"row-{make.__name__}-id-{kind}"
            rows[path].append(make(id + corpus.planted(SPANS[kind], id)))
            corpus.ids.append(id)
    # Only one character of the tag escaped; and a content that is nothing but a span.
    half = corpus.hide("half escaped")
    rows[written].append(row("row-half", content="@").replace("@", f"{COMMON} <pri\\u0076ate>{half}</private> x"))
    rows[written].append(escaped_row("row-empty", content=corpus.planted(SPANS["plain"], "empty content")))
    corpus.ids += ["row-half", "row-empty"]
    for path, lines in rows.items():
        corpus.files[path] = "".join(lines)
    path = "KNOWLEDGE/rows/times.jsonl"
    hidden = corpus.planted(SPANS["plain"], "times")
    corpus.files[path] = row("row-times", created=f"2024-01-01{hidden}", content=f"{COMMON} {corpus.show(path)}")
    corpus.ids.append("row-times")


def broken() -> dict[str, Files]:
    """Corpora that are refused, by the name of their fault.

    The fault is in KNOWLEDGE/bad.md or bad.jsonl (row 2), right beside a canary, and is found on
    reading; a sound note with a canary stands before it.
    """
    words = iter(range(9_000, 10_000))

    def hidden() -> str:
        return f"<private>{STEM}{next(words)}</private>"

    def spot() -> str:
        return f"{STEM}{next(words)}"

    def markdown(text: str | bytes) -> Files:
        return {"KNOWLEDGE/a.md": note("a", f"{COMMON} {hidden()}"), "KNOWLEDGE/bad.md": text}

    def rows(line: str | bytes) -> Files:
        data = line.encode() if isinstance(line, str) else line
        head = row("a", title=f"A {hidden()}").encode()
        return {
            "KNOWLEDGE/bad.jsonl": head + data.rstrip(b"\n") + b"\n" + row("z", content=f"{COMMON} {hidden()}").encode()
        }

    def inside(data: bytes) -> bytes:
        return f"{COMMON} <private>{spot()}".encode() + data + f"{spot()}</private>\n".encode()

    def line(**fields: str) -> str:
        """A row from the JSON texts of its values, by name."""
        texts = {
            "id": '"b"',
            "type": '"log"',
            "title": '"T"',
            "created": '"2024-01-01"',
            "updated": '"2024-01-02"',
            "content": f'"{hidden()} {escaped(hidden())}"',
            **fields,
        }
        return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"

    return {
        "created": markdown(note("b", hidden(), created=f"2024-13-01{hidden()}")),
        "created-only-hidden": markdown(note("b", created=f"x{hidden()}")),
        "created-cut": markdown(f"---\nid: b\ncreated: soon\n---\n<privateer>{spot()}"),
        "updated": markdown(note("b", hidden(), updated=f"2023-01-01{hidden()}")),
        "window": markdown(note("b", hidden(), valid_from=f"2024-02-01{hidden()}", valid_until="2024-02-01")),
        "window-text": markdown(note("b", hidden(), valid_until=f"never{hidden()}")),
        "blank-id": markdown(note(f'" {hidden()}"')),
        "duplicate-id": markdown(note(f"a{hidden()}", hidden())),
        "control": markdown(inside(b"\x01")),
        "delete": markdown(inside(b"\x7f")),
        "c1-control": markdown(inside(b"\xc2\x85")),
        "not-utf-8": markdown(inside(b"\xff")),
        "surrogate-bytes": markdown(inside(b"\xed\xa0\x80")),
        "row-is-a-span": rows(hidden()),
        "row-unclosed": rows(line(content=f'"<private>{spot()}"')),
        "row-cut": rows(line(content=f'"<privateer>{spot()}"')),
        "row-span-across-fields": rows(line(title=f'"<private>{spot()}"', content=f'"{spot()}</private>"')),
        "row-text": rows(f"{hidden()} {escaped(hidden())}"),
        "row-string": rows(f'"{hidden()}{escaped(hidden())}"'),
        "row-list": rows(f'["{hidden()}","{escaped(hidden())}"]'),
        "row-trailing": rows(line() + f'"{escaped(hidden())}"'),
        "row-nan": rows(line(content="NaN", title=f'"{escaped(hidden())}"')),
        "row-deep": rows(line(related="[" * 100_000 + f'"{escaped(hidden())}"' + "]" * 100_000)),
        "row-number": rows(line(content="1" * 5_000, title=f'"{escaped(hidden())}"')),
        "row-name": rows(line(**{escaped(hidden()): f'"{escaped(hidden())}"'})),
        "row-name-hidden": rows(line(**{hidden(): f'"{escaped(hidden())}"'})),
        "row-missing": rows("{" + f'"id":"{escaped(hidden())}","content":"{hidden()}"' + "}"),
        "row-type-of-id": rows(line(id=f'["{escaped(hidden())}"]')),
        "row-type-of-title": rows(line(title=f'{{"{escaped(hidden())}":1}}')),
        "row-type-of-session": rows(line(source_session=f'["{escaped(hidden())}"]')),
        "row-type-of-related": rows(line(related=f'"{escaped(hidden())}"')),
        "row-type-of-link": rows(line(related=f'["{escaped(hidden())}",1]')),
        "row-blank-title": rows(line(title=f'" {hidden()} "')),
        "row-blank-source": rows(line(source=f'"{hidden()}"')),
        "row-blank-link": rows(line(related=f'["{hidden()}"]')),
        "row-blank-id": rows(line(id=f'"{hidden()}"')),
        "row-blank-id-escaped": rows(line(id=f'" {escaped(hidden())}"')),
        "row-created": rows(line(created=f'"{escaped(hidden())}"')),
        "row-created-raw": rows(line(created=f'"soon{hidden()}"')),
        "row-updated": rows(line(updated=f'"2023-12-31{escaped(hidden())}"')),
        "row-valid-from": rows(line(valid_from=f'"2024-01-01{escaped(hidden())}"')),
        "row-window": rows(line(valid_from='"2024-01-02"', valid_until=f'"2024-01-01{hidden()}"')),
        "row-control": rows(line(title=f'"{escaped("<private>")}\\u0001{spot()}{escaped("</private>")}"')),
        "row-surrogate": rows(line(title=f'"{escaped("<private>")}{spot()}\\ud800{escaped("</private>")}"')),
        "row-surrogate-link": rows(line(related=f'["{escaped(hidden())}\\udc00"]')),
        "row-raw-control": rows(line(title=f'"<private>{spot()}\x02</private>"')),
        "row-raw-control-outside": rows(line(title='"a\x02"', content=f'"{escaped(hidden())}"')),
        "row-raw-tab": rows(line(title=f'"a\t{escaped(hidden())}"')),
        "row-not-utf-8": rows(line(title='"T"').encode().replace(b"T", b"<private>" + spot().encode() + b"\xfe")),
        "row-duplicate-id": rows(line(id=f'"a{escaped(hidden())}"')),
    }
