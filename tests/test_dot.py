"""cortex-expand --dot: the walk as a graph that Graphviz takes, whatever titles and IDs hold (docs/streams.md)."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_tools.stages.graph import render
from tests.support import SAMPLE, note, row, run, shell, write_corpus

# Titles and IDs that a careless quoting would break.
AWKWARD = [
    'say "so"', "back\\slash", "ends in \\", '\\"', "two\nlines", "CR\r\nLF", "\\n \\l \\N \\G", "<b>bold</b>",
    "<html>", "R&amp;D", "&lt;private&gt;", "&#65;", "a & b", "日本語", "Ünïcode 🧵", "نول", "a]b[c", "x -> y; z",
    "// no comment", "/* none */", "# none", "{a|b}", "tab\tbed", "line\u2028separator", "%s", "-1.5", "node", "it's",
]  # fmt: skip


class Graph(NamedTuple):
    """What a reader of the language finds: labels and other attributes by node, edges."""

    labels: dict[str, str]
    looks: dict[str, dict[str, str]]
    edges: list[tuple[str, str]]

    @property
    def by_id(self) -> dict[str, str]:
        """The name of a node by the last line of its label."""
        return {label.rpartition("\n")[2]: name for name, label in self.labels.items()}

    def dashed(self) -> set[str]:
        return {identifier for identifier, name in self.by_id.items() if self.looks[name].get("style") == "dashed"}

    def unknown(self) -> set[str]:
        return {identifier for identifier, name in self.by_id.items() if self.looks[name].get("shape") == "plaintext"}


_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\[\s\S])*)"|(->|[{}\[\];,=])|([A-Za-z_]\w*|-?[0-9.]+))')


def parsed(text: str) -> Graph:
    """Read by the grammar of Graphviz, as far as a plain directed graph needs it; fails on anything else."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        assert match, text[at : at + 40]
        quoted, mark, word = match.groups()
        tokens.append(("word", _resolved(quoted)) if quoted is not None else ("mark", mark) if mark else ("word", word))
        at = match.end()
    assert tokens[:3] == [("word", "digraph"), ("word", "expansion"), ("mark", "{")] and tokens[-1] == ("mark", "}")
    graph = Graph({}, {}, [])
    statement: list[tuple[str, str]] = []
    for token in tokens[3:-1]:
        if token != ("mark", ";"):
            statement.append(token)
            continue
        _statement(statement, graph)
        statement = []
    assert not statement
    return graph


def _statement(tokens: list[tuple[str, str]], graph: Graph) -> None:
    kinds = [kind for kind, _ in tokens]
    assert kinds[0] == "word"
    name = tokens[0][1]
    if tokens[1] == ("mark", "->"):
        assert len(tokens) == 3 and kinds[2] == "word"
        graph.edges.append((name, tokens[2][1]))
        return
    assert tokens[1] == ("mark", "[") and tokens[-1] == ("mark", "]")
    looks: dict[str, str] = {}
    inside = tokens[2:-1]
    for place in range(0, len(inside), 4):
        (_, key), equals, (kind, value), *comma = inside[place : place + 4]
        assert equals == ("mark", "=") and kind == "word" and comma in ([], [("mark", ",")])
        looks[key] = value
    if name != "node":
        assert name not in graph.labels
        graph.labels[name] = looks.pop("label")
        graph.looks[name] = looks


def _resolved(quoted: str) -> str:
    """What Graphviz shows for the inside of a quoted string: escapes resolved, then entities."""
    assert not re.search(r"[\x00-\x08\x0a-\x1f]", quoted)
    unescaped = re.sub(r"\\(.)", lambda match: {"n": "\n", "\\": "\\", '"': '"'}[match[1]], quoted)
    return html.unescape(unescaped)


def as_shown(text: str) -> str:
    """Any line end is one, and what XML cannot hold is U+FFFD."""
    lined = re.sub("\r\n|[\r\n\u2028\u2029]", "\n", text)
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", lined)


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ring of records with awkward titles and IDs; each links to an awkward ID that is none, too."""
    rows = [
        row(f"id {one}", title=one, related=[f"id {other}", f"no {one}", f"id {other}"])
        for one, other in zip(AWKWARD, AWKWARD[1:] + AWKWARD[:1], strict=True)
    ]
    root = write_corpus(tmp_path_factory.mktemp("dot"), {"a.jsonl": "".join(rows)})
    done = shell(
        f"cortex-scan --memory-root '{root}' | cortex-strip | "
        "cortex-expand 'id say \"so\"' --dot --max-nodes 100 --max-tokens 50000"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_awkward_titles_and_ids(awkward: str) -> None:
    graph = parsed(awkward)
    shown = set(graph.labels.values())
    for one in AWKWARD:
        assert as_shown(f"{one}\nid {one}") in shown
        assert as_shown(f"no {one}") in shown
    assert len(shown) == 2 * len(AWKWARD)
    assert len(graph.edges) == len(set(graph.edges)) == 2 * len(AWKWARD)  # a repeated link is one edge
    assert {name for edge in graph.edges for name in edge} == set(graph.labels)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_what_is_meant(awkward: str) -> None:
    done = subprocess.run(["dot", "-Tsvg"], input=awkward.encode(), capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    texts = [
        element.text or "" for element in ElementTree.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")
    ]
    drawn = {" ".join(text.split()) for text in texts}
    for one in AWKWARD:
        for line in as_shown(f"{one}\nid {one}\nno {one}").split("\n"):
            assert " ".join(line.split()) in drawn


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12),
        st.tuples(st.text(max_size=12), st.lists(st.text(max_size=6), max_size=3)),
        min_size=1,
    )
)
def test_any_titles_and_ids(records: dict[str, tuple[str, list[str]]]) -> None:
    links = {identifier: related for identifier, (_, related) in records.items()}
    titles = {identifier: title for identifier, (title, _) in records.items()}
    graph = parsed(render(next(iter(links)), list(links), links, titles))
    expected = [
        as_shown(identifier)
        if titles[identifier] == identifier
        else f"{as_shown(titles[identifier])}\n{as_shown(identifier)}"
        for identifier in links
    ]
    assert list(graph.labels.values())[: len(links)] == expected
    assert len(graph.edges) == sum(len(set(related)) for related in links.values())


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """root -> a, b, nowhere, itself; a -> c; b -> c, gone; c -> d; gone is not valid any more, alone links to none."""
    rows = [
        row("a", related=["c", "root"], content="x" * 400),
        row("b", related=["c", "gone"]),
        row("c", related=["d"]),
        row("d", title="d"),
        row("gone", valid_until="2020-01-01"),
        row("alone"),
    ]
    links = "".join(f"- slug: {link}\n" for link in ("a", "b", "nowhere", "root", '""'))
    files = {"a.jsonl": "".join(rows), "root.md": note("root", links, title="Root")}
    root = write_corpus(tmp_path_factory.mktemp("dot"), files)
    return shell(f"cortex-scan --memory-root '{root}' | cortex-strip | cortex-select --valid").stdout


def drawn(records: bytes, *arguments: str) -> Graph:
    done = run("cortex-expand", *arguments, "--dot", input=records)
    assert (done.returncode, done.stderr) == (0, b""), done
    return parsed(done.stdout.decode())


@pytest.mark.parametrize(
    ("budget", "reached", "left_out"),
    [
        ([], ["root", "a", "b", "c", "d"], set()),
        (["--max-nodes", "4"], ["root", "a", "b", "c"], {"d"}),
        (["--max-nodes", "2"], ["root", "a"], {"b", "c"}),
        (["--max-nodes", "1"], ["root"], {"a", "b"}),
        (["--max-tokens", "50"], ["root"], {"a", "b"}),
        (["--max-tokens", "1"], [], {"root"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_is_reached_left_out_and_unknown(
    budget: list[str], reached: list[str], left_out: set[str], records: bytes
) -> None:
    graph = drawn(records, "root", *budget)
    lines = [json.loads(line) for line in run("cortex-expand", "root", *budget, input=records).stdout.splitlines()]
    (expansion,) = (line for line in lines if line["kind"] == "expansion")
    assert [card["id"] for card in expansion["items"]] == reached  # the same walk as without --dot
    assert expansion["truncated"] == bool(left_out)
    unknown = ({"nowhere", '""'} if reached else set()) | ({"gone"} if "b" in reached else set())
    assert (graph.dashed(), graph.unknown()) == (left_out, unknown)
    assert set(graph.by_id) == {*reached, *left_out, *unknown}
    assert [label.rpartition("\n")[2] for label in graph.labels.values()][: len(reached)] == reached
    starts = {graph.labels[start].rpartition("\n")[2] for start, _ in graph.edges}
    assert starts == set(reached) - {"d"}  # what was left out shows no links of its own
    assert graph.looks[graph.by_id["root"]].get("penwidth") == "2"
    root = graph.by_id["root"]
    assert ((root, root) in graph.edges) == bool(reached)


def test_labels(records: bytes) -> None:
    graph = drawn(records, "root")
    assert graph.labels["n1"] == "Root\nroot"
    assert graph.labels[graph.by_id["d"]] == "d"  # a title that is the ID stands once
    assert graph.labels[graph.by_id["gone"]] == "gone"  # its title is not in the stream
    long = render("x" * 100, ["x" * 100], {"x" * 100: []}, {"x" * 100: "t" * 81})
    assert parsed(long).labels["n1"] == "t" * 80 + "…\n" + "x" * 80 + "…"


def test_private_text_is_not_drawn(tmp_path: Path) -> None:
    write_corpus(
        tmp_path, {"a.md": note("a", "- slug: b\n<private>- slug: secret</private>\n", title="x <private>y</private>")}
    )
    done = shell(f"cortex-scan --memory-root '{tmp_path}' | cortex-strip | cortex-expand a --dot")
    assert done.returncode == 0 and b"secret" not in done.stdout
    assert set(parsed(done.stdout.decode()).by_id) == {"a", "b"}


@pytest.mark.parametrize(
    ("stream", "arguments", "status", "code"),
    [
        (lambda records: records[:-30], ["root"], 4, "integrity_error"),
        (lambda records: records.replace(b'"id":"d"', b'"id":"e"', 1), ["root"], 4, "integrity_error"),
        (lambda records: b"", ["root"], 4, "integrity_error"),
        (lambda records: records, ["nobody"], 3, "not_found"),
        (lambda records: records, ["root", "--max-nodes", "0"], 4, "invalid_input"),
        (lambda records: records, [], 4, "invalid_input"),
    ],
)
def test_nothing_is_drawn_where_it_fails(
    stream: object, arguments: list[str], status: int, code: str, records: bytes
) -> None:
    assert callable(stream)
    done = run("cortex-expand", *arguments, "--dot", input=stream(records))
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.startswith(f"cortex-expand: {code}: ".encode()) and done.stderr.count(b"\n") == 1


def test_upstream_errors_are_obeyed_in_silence(records: bytes) -> None:
    failed = run("cortex-window", "--anchor", "nobody", input=records).stdout
    done = run("cortex-expand", "root", "--dot", input=failed)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
    listing = shell(f"cortex-scan --memory-root '{SAMPLE}'").stdout
    assert b"cortex-strip" in run("cortex-expand", "root", "--dot", input=listing).stderr


def test_duplicate_ids_are_judged(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("a"), "b.md": note("a")})
    parts = f"cortex-scan --parts 2 --memory-root '{tmp_path}' | "
    split = "cortex-strip --unsealed 2>/dev/null | cortex-expand a --dot"
    done = shell(parts + split)
    assert (done.returncode, done.stdout) == (4, b"")


def test_the_sample(tmp_path: Path) -> None:
    stream = shell(f"cortex-scan --memory-root '{SAMPLE}' | cortex-strip").stdout
    graph = drawn(stream, "idea-tension-logger", "--max-nodes", "6")
    assert len(graph.labels) > 6 and graph.dashed() and "idea-tension-logger" in graph.by_id
