"""Expansion (sections 10 and 14.6): a naive breadth-first walk as reference, budgets, cycles, unknown IDs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.domain.expansion import expand
from cortex_tools.domain.records import Card
from cortex_tools.library import Runtime, run_cortex
from tests.support import row, write_corpus

Graph = dict[str, tuple[int, list[str]]]
NOW = 1_750_000_000_000


def walk(graph: Graph, root: str, max_nodes: int = 100, max_tokens: int = 50_000) -> tuple[list[str], int, bool]:
    """The IDs, tokens and `truncated` of an expansion; `graph` maps an ID to its tokens and links."""
    nodes = {
        name: (Card(name, "t", "2024-01-01", "2024-01-01", "s", None, "p", tokens), links)
        for name, (tokens, links) in graph.items()
    }
    found = expand(root, nodes, max_nodes, max_tokens)
    return [card.id for card in found.items], found.est_tokens, found.truncated


def naive(graph: Graph, root: str, max_nodes: int, max_tokens: int) -> tuple[list[str], int, bool]:
    """All that can be reached, level by level; then as many of them, from the front, as the budgets allow."""
    order, level = [root], [root]
    while level:
        following: list[str] = []
        for name in level:
            following += [link for link in graph[name][1] if link in graph and link not in order + following]
        # A link that stands twice in one record is still one node.
        level = list(dict.fromkeys(following))
        order += level
    kept: list[str] = []
    for name in order:
        if len(kept) == max_nodes or sum(graph[one][0] for one in [*kept, name]) > max_tokens:
            break
        kept.append(name)
    return kept, sum(graph[name][0] for name in kept), len(kept) < len(order)


NAMES = "abcdefgh"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    links = st.lists(st.sampled_from([*NAMES, "unknown", ""]), max_size=4)
    return {name: (draw(st.integers(1, 9)), draw(links)) for name in names}


@given(graphs(), st.integers(1, 10), st.integers(1, 40))
@settings(max_examples=600, deadline=None, database=None)
def test_against_the_reference(graph: Graph, max_nodes: int, max_tokens: int) -> None:
    assert walk(graph, "a", max_nodes, max_tokens) == naive(graph, "a", max_nodes, max_tokens)


CHAIN: Graph = {"a": (3, ["b"]), "b": (4, ["c"]), "c": (5, [])}


@pytest.mark.parametrize(
    ("nodes", "tokens", "expected"),
    [
        (3, 12, (["a", "b", "c"], 12, False)),  # both budgets used up to the last, and nothing left out
        (4, 13, (["a", "b", "c"], 12, False)),
        (2, 100, (["a", "b"], 7, True)),
        (100, 11, (["a", "b"], 7, True)),
        (100, 7, (["a", "b"], 7, True)),
        (1, 3, (["a"], 3, True)),
        (100, 2, ([], 0, True)),  # the root alone overruns
    ],
)
def test_budgets(nodes: int, tokens: int, expected: tuple[list[str], int, bool]) -> None:
    assert walk(CHAIN, "a", nodes, tokens) == expected


def test_a_card_that_overruns_ends_the_walk() -> None:
    """Though a later card would have fitted."""
    graph: Graph = {"a": (1, ["big", "small"]), "big": (50, []), "small": (1, [])}
    assert walk(graph, "a", 100, 10) == (["a"], 1, True)


def test_breadth_first_in_the_order_of_links() -> None:
    graph: Graph = {"a": (1, ["c", "b"]), "b": (1, ["e"]), "c": (1, ["d", "b"]), "d": (1, []), "e": (1, ["a"])}
    assert walk(graph, "a") == (["a", "c", "b", "d", "e"], 5, False)


def test_cycles_repeats_and_unknown_links() -> None:
    graph: Graph = {"a": (1, ["a", "b", "b", "nowhere", ""]), "b": (1, ["a", "c", "nowhere"]), "c": (1, ["b"])}
    assert walk(graph, "a") == (["a", "b", "c"], 3, False)


@pytest.mark.parametrize("links", [["a"], ["nowhere"], [""], ["a", "a"], []])
def test_links_that_lead_nowhere_new_leave_nothing_out(links: list[str]) -> None:
    """A full budget is truncation only where a record was left out (section 14.6)."""
    assert walk({"a": (5, links), "b": (1, [])}, "a", 1, 5) == (["a"], 5, False)


def test_cards_of_a_long_chain() -> None:
    graph: Graph = {str(number): (1, [str(number + 1)]) for number in range(5000)}
    assert walk(graph, "0", 100, 50_000) == ([str(number) for number in range(100)], 100, True)


# Through search.


def search(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    status, envelope = run_cortex(["search", "loom", *arguments], Runtime(memory_root=root, now_ms=NOW))
    return status, envelope["data"]["expansion"] if status == 0 else envelope["error"]


def shape(expansion: dict[str, Any]) -> tuple[list[str], int, bool]:
    assert list(expansion) == ["items", "est_tokens", "truncated"]
    return [card["id"] for card in expansion["items"]], expansion["est_tokens"], expansion["truncated"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rows = [
        row("a", content="loom", related=["b", "past", "late", "nowhere"], type="idea"),
        row("b", content="not a match", related=["c"], type="log"),
        row("c", content="x" * 4001, related=["a"]),
        row("past", related=["hidden"], valid_until="2024-06-01"),
        row("late", related=["hidden"], valid_from="2999-01-01"),
        row("hidden"),
    ]
    return write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": "".join(rows)})


def test_over_all_valid_records(root: Path) -> None:
    """Neither the query nor the filters apply, validity does."""
    for filters in ([], ["--type", "idea"], ["--from", "2999-01-01"], ["--session", "none"]):
        assert shape(search(root, "--expand", "a", *filters)[1]) == (["a", "b", "c"], 1 + 3 + 1001, False)


def test_default_budgets(tmp_path: Path) -> None:
    """Ten nodes, 2,000 tokens."""
    star = [row("hub", content="x", related=[str(number) for number in range(12)])]
    for size, tokens, kept, total in ((8, 2, 10, 19), (2664, 666, 4, 1999), (2668, 667, 3, 1335)):
        leaves = [row(str(number), content="x" * size) for number in range(12)]
        root = write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": "".join([*star, *leaves])})
        names, spent, truncated = shape(search(root, "--expand", "hub")[1])
        assert (len(names), spent, truncated) == (kept, total, True) and spent == 1 + (kept - 1) * tokens


def test_budgets_as_given(root: Path) -> None:
    assert shape(search(root, "--expand", "a", "--max-nodes", "2")[1]) == (["a", "b"], 4, True)
    assert shape(search(root, "--expand", "a", "--max-nodes", "3")[1]) == (["a", "b", "c"], 1005, False)
    assert shape(search(root, "--expand", "a", "--max-tokens", "4")[1]) == (["a", "b"], 4, True)
    assert shape(search(root, "--expand", "c", "--max-tokens", "1000")[1]) == ([], 0, True)
    assert shape(search(root, "--expand", "hidden", "--max-nodes", "1")[1]) == (["hidden"], 2, False)


def test_cards_without_bodies_and_scores(root: Path) -> None:
    for card in search(root, "--expand", "a")[1]["items"]:
        assert list(card) == ["id", "type", "created", "updated", "provenance", "score", "est_tokens"]
        assert card["score"] == 0


@pytest.mark.parametrize("identifier", ["nowhere", "past", "late", "A"])
def test_a_root_that_is_no_valid_record(identifier: str, root: Path) -> None:
    status, error = search(root, "--expand", identifier)
    assert (status, error["code"]) == (3, "not_found")
    assert identifier in error["message"]


def test_no_expansion_unless_asked(root: Path) -> None:
    status, envelope = run_cortex(["search", "loom"], Runtime(memory_root=root, now_ms=NOW))
    assert status == 0 and list(envelope["data"]) == ["items", "total", "page", "page_size"]
