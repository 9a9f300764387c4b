"""The benchmark's numbers: by hand on a small corpus, by an independent implementation on a larger one."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.timestamps import parse_ms
from cortex_tools.evidence.benchmark import labels, measure, metrics, report
from cortex_tools.files.root import pin_root
from cortex_tools.library import Runtime, run_cortex
from cortex_tools.stages import rank
from tests.support import SCHEMAS, note, run, write_corpus
from tests.test_benchmark_labels import jsonl, label

SCHEMA = json.loads((SCHEMAS / "benchmark-v1.schema.json").read_text())
NOW_MS = parse_ms("2026-03-10T12:00:00Z") or 0


def benchmark(root: Path, *rows: dict[str, Any]) -> dict[str, Any]:
    """The report on `root` for these labels, validated against the schema that ships."""
    path = root.parent / f"{root.name}-labels.jsonl"
    path.write_bytes(jsonl(*rows))
    pinned = pin_root(os.fsencode(root))
    try:
        value = report.run(pinned, labels.read(str(path)), ["cortex-benchmark"], now_ms=NOW_MS)
    finally:
        pinned.close()
    shown: dict[str, Any] = json.loads(report.line(value))
    jsonschema.validate(shown, SCHEMA)
    assert shown == value
    return shown


# Metrics, worked out by hand


@pytest.mark.parametrize(
    ("ranking", "expected", "recall", "reciprocal"),
    [
        ("abcdefg", "a", 1, 1),
        ("abcdefg", "e", 1, 1 / 5),
        ("abcdefg", "f", 0, 1 / 6),
        ("abcdefg", "bf", 1 / 2, 1 / 2),
        ("abcdefg", "zgc", 1 / 3, 1 / 3),
        ("abcdefg", "abcdefg", 5 / 7, 1),
        ("abcdefg", "z", 0, 0),
        ("", "a", 0, 0),
        ("ba", "ab", 1, 1),
    ],
)
def test_recall_counts_the_top_five_and_mrr_the_first_hit(
    ranking: str, expected: str, recall: float, reciprocal: float
) -> None:
    assert metrics.recall(ranking, expected) == recall
    assert metrics.reciprocal_rank(ranking, expected) == reciprocal


@pytest.mark.parametrize(
    ("ranking", "order", "accuracy"),
    [
        ("abc", "abc", 1),
        ("abc", "cba", 0),
        ("abc", "bac", 2 / 3),
        ("abc", "acb", 2 / 3),
        ("ab", "abz", 1 / 3),
        ("ab", "zab", 1 / 3),
        ("", "ab", 0),
        ("xaxbxxxxxxc", "abc", 1),
        ("abc", "c", 1),
        ("abc", "z", 0),
        ("", "a", 0),
    ],
)
def test_temporal_accuracy_is_the_share_of_pairs_in_order(ranking: str, order: str, accuracy: float) -> None:
    assert metrics.temporal_accuracy(ranking, order) == accuracy


@pytest.mark.parametrize(
    ("ranking", "false", "share"), [("abcdefg", "ax", 1 / 2), ("abcdefg", "fg", 0), ("abcde", "de", 1), ("a", "", None)]
)
def test_false_recall_is_the_share_of_false_ids_in_the_top_five(ranking: str, false: str, share: float | None) -> None:
    assert metrics.false_recall(ranking, false) == share


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_tokens_are_bytes_by_four_rounded_up(size: int, tokens: int) -> None:
    assert metrics.tokens(size) == tokens


@pytest.mark.parametrize(
    ("count", "place"), [(1, 1), (2, 2), (10, 10), (19, 19), (20, 19), (21, 20), (25, 24), (50, 48), (100, 95)]
)
def test_p95_is_the_nearest_rank(count: int, place: int) -> None:
    samples = [float(number) for number in range(1, count + 1)]
    assert place == math.ceil(Fraction(95, 100) * count)
    random.Random(count).shuffle(samples)
    assert metrics.percentile95(samples) == place


# A small corpus: of the six notes that hold "loom", shorter ones come first.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Notes n1 to n6, each a word longer than the one before; expired and unrelated ones beside them."""
    files = {f"KNOWLEDGE/n{n}.md": note(f"n{n}", "loom" + " pad" * n) for n in range(1, 7)}
    files["KNOWLEDGE/old.md"] = note("old", "loom loom", valid_until="2020-01-01")
    files["KNOWLEDGE/far.md"] = note("far", "nothing of it")
    return write_corpus(tmp_path / "root", files)


def test_a_report_by_hand(small: Path) -> None:
    value = benchmark(
        small,
        label("q1", "loom", ["n2", "n1"], false_ids=["n5", "n6", "far", "old"]),
        label("q2", "loom loom", ["n6"], temporal_expected_order=["n1", "n3", "n2"]),
        label("q3", "zebra", ["n1"], false_ids=["n1x"][:0]),
    )
    baseline, progressive = value["configs"]
    # q1: both in the top five, the first hit is first; the pair (n2, n1) comes the other way round; n5 of four.
    # q2: n6 is sixth; of the pairs n1-n3, n1-n2, n3-n2 two hold.  q3: nothing is found.
    for config in (baseline, progressive):
        assert config["recall_at_5"] == pytest.approx((1 + 0 + 0) / 3, abs=1e-15)
        assert config["mrr"] == pytest.approx((1 + 1 / 6 + 0) / 3, abs=1e-15)
        assert config["temporal_accuracy"] == pytest.approx((0 + 2 / 3 + 0) / 3, abs=1e-15)
        assert config["false_recall"] == pytest.approx(1 / 4, abs=1e-15)
        assert config["latency_samples"] == 75 and config["p95_latency_ms"] > 0
        assert config["disk_bytes"] == sum(path.stat().st_size for path in (small / "KNOWLEDGE").iterdir())
        assert config["disk_growth_bytes"] == 0 and config["process_count"] == 0
        assert 1_000_000 < config["peak_rss_bytes"] < 4_000_000_000
    assert value["labels"] == 3 and value["vector_config"] is None
    assert value["measurements"] == {
        "corpus_tokenizations": 75,
        "ranking_runs": 75,
        "latency_samples_per_query": 25,
    }
    records = {record["id"]: json.dumps(record, separators=(",", ":")) for record in exported(small)}
    top = [f"n{n}" for n in range(1, 6)]
    cards = json.dumps(searched(small, "loom")[:5], separators=(",", ":"))
    full = len(f"[{','.join(records[id] for id in top)}]".encode())
    disclosed = len(cards.encode()) + len(records["n1"].encode())
    # q1 and q2 have the same ranking and payload; q3 injects the two bytes of an empty array.
    assert baseline["injected_tokens"] == 2 * math.ceil(full / 4) + 1
    assert progressive["injected_tokens"] == 2 * math.ceil(disclosed / 4) + 1


def exported(root: Path) -> list[dict[str, Any]]:
    status, envelope = run_cortex(["export", *(f"n{n}" for n in range(1, 7)), "--memory-root", str(root)])
    assert status == 0
    items: list[dict[str, Any]] = envelope["data"]["items"]
    return items


def searched(root: Path, query: str) -> list[dict[str, Any]]:
    """All cards of a search as the library answers it."""
    cards: list[dict[str, Any]] = []
    for page in range(1, 1000):
        arguments = ["search", query, "--page-size", "100", "--page", str(page), "--memory-root", str(root)]
        status, envelope = run_cortex(arguments, Runtime(now_ms=NOW_MS))
        assert status == 0, envelope
        cards += envelope["data"]["items"]
        if len(cards) == envelope["data"]["total"]:
            break
    return cards


def test_false_recall_is_null_where_no_label_has_false_ids(small: Path) -> None:
    value = benchmark(small, label("q", "loom", ["n1"]))
    assert [config["false_recall"] for config in value["configs"]] == [None, None]


def test_the_digests_are_those_of_the_commands(small: Path) -> None:
    value = benchmark(small, label("q", "loom", ["n1"]))
    status, envelope = run_cortex(["rebuild", "--from-canonical", "--memory-root", str(small)])
    assert status == 0
    assert value["provenance"]["corpus_digest"] == envelope["data"]["canonical_digest"]
    assert value["provenance"]["config"]["records"] == envelope["data"]["records"] == 8
    assert value["provenance"]["labels_digest"] == labels.read(str(small.parent / "root-labels.jsonl")).digest


def test_each_sample_ranks_once_with_the_production_code(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[bytes, ...]] = []
    finished: list[Any] = []
    real_measure, real_finish = rank.measure, rank.Rank.finish

    def count(title: str, content: str, terms: tuple[bytes, ...]) -> Any:
        measured.append(terms)
        return real_measure(title, content, terms)

    def finish(self: rank.Rank) -> Any:
        finished.append(self)
        return real_finish(self)

    monkeypatch.setattr(rank, "measure", count)
    monkeypatch.setattr(rank.Rank, "finish", finish)
    value = benchmark(small, label("q1", "loom", ["n1"]), label("q2", "pad", ["n2"]))
    assert len(finished) == 50 == value["measurements"]["ranking_runs"] == value["measurements"]["corpus_tokenizations"]
    # Seven of the eight records are valid now; each is measured once in each sample.
    assert measured == [(b"loom",)] * 25 * 7 + [(b"pad",)] * 25 * 7
    assert [config["latency_samples"] for config in value["configs"]] == [50, 50]


def test_the_plan_of_search_is_what_is_measured() -> None:
    assert [step.name for step in measure.search_steps("loom")] == ["cortex-select", "cortex-rank", "cortex-card"]


def test_ids_that_the_corpus_lacks_stop_it_before_anything_is_ranked(small: Path) -> None:
    with pytest.raises(CortexError, match=r"root-labels\.jsonl:2: the corpus has no record gone"):
        benchmark(small, label("q1", "loom", ["n1"]), label("q2", "loom", ["gone"]))


def test_an_unsound_corpus_is_refused(small: Path) -> None:
    write_corpus(small, {"KNOWLEDGE/bad.jsonl": "{\n"})
    with pytest.raises(CortexError, match=r"bad\.jsonl:1"):
        benchmark(small, label("q", "loom", ["n1"]))


@pytest.mark.parametrize("names", [None, [], ["curproc", "0"]], ids=["as it is", "empty", "another kind"])
def test_descendants_are_counted(names: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By /proc where that is Linux's, else by ps."""
    if names is not None:
        monkeypatch.setattr(os, "listdir", lambda path: names)
    before = measure.descendants()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    os.close(read_end)
    try:
        assert measure.descendants() == before + 1
        assert measure._descendants_by_ps() == before + 1
    finally:
        os.close(write_end)
        os.waitpid(pid, 0)


def test_growth_on_disk_is_measured(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": note("a"), "INDEX/x.bin": b"12345"})
    pinned = pin_root(os.fsencode(root))
    before = measure.tree_bytes(pinned)
    assert before == (root / "KNOWLEDGE/a.md").stat().st_size + 5
    write_corpus(root, {"INDEX/deep/y.bin": b"123"})
    assert measure.tree_bytes(pinned) == before + 3
    pinned.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_a_folder_that_cannot_be_looked_at_makes_no_smaller_tree(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = pin_root(os.fsencode(write_corpus(tmp_path / "root", {"KNOWLEDGE/a.md": note("a")})))
    real, times = os.scandir, iter((1, 2))

    def scandir(path: Any) -> Any:
        if next(times, None) == 2:
            raise OSError(number, os.strerror(number))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(OSError, match=os.strerror(number)):
        measure.tree_bytes(pinned)
    pinned.close()


# A larger corpus, against an implementation that shares nothing with ours


WORDS = [
    "loom",
    "warp",
    "weft",
    "indigo",
    "vat",
    "dye",
    "tension",
    "thread",
    "shuttle",
    "reed",
    "heddle",
    "spindle",
    "wool",
    "linen",
    "madder",
    "weld",
]


def bm25(query: str, documents: dict[str, str]) -> list[str]:
    """The IDs of all matches by the formula of the contract, in exact order of the score; ties by ID."""
    tokens = {id: re.findall("[a-z0-9]+", text.lower()) for id, text in documents.items()}
    average = max(1, sum(map(len, tokens.values())) / len(tokens))
    terms = list(dict.fromkeys(re.findall("[a-z0-9]+", query.lower())))
    scores = {}
    for id, words in tokens.items():
        score = 0.0
        for term in terms:
            df = sum(term in other for other in tokens.values())
            tf = words.count(term)
            idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
            score += idf * (tf * 2.5) / (tf + 1.5 * (0.25 + 0.75 * len(words) / average))
        if score > 0:
            scores[id] = score
    return sorted(scores, key=lambda id: (-scores[id], id))


def test_a_larger_corpus_against_an_independent_implementation(tmp_path: Path) -> None:
    dice = random.Random(20260310)
    bodies = {f"r{n:03}": " ".join(dice.choices(WORDS, k=dice.randint(3, 60))) for n in range(150)}
    root = write_corpus(tmp_path / "root", {f"KNOWLEDGE/{id}.md": note(id, body) for id, body in bodies.items()})
    documents = {record.id: f"{record.title} {record.content}" for record in load(root).records}
    rows, wanted = [], []
    for number in range(12):
        query = " ".join(dice.sample(WORDS, dice.randint(1, 3)))
        ranking = bm25(query, documents)
        assert [card["id"] for card in searched(root, query)] == ranking
        expected = dice.sample(ranking[:12], dice.randint(1, 4))
        order = dice.sample(sorted(bodies), dice.randint(1, 5))
        false = dice.sample(sorted(set(ranking[:9]) - set(expected)), dice.randint(0, 3))
        rows.append(label(f"q{number}", query, expected, temporal_expected_order=order, false_ids=false))
        wanted.append(by_other_means(ranking, expected, order, false))
    value = benchmark(root, *rows)
    false_shares = [shares[3] for shares in wanted if shares[3] is not None]
    for config in value["configs"]:
        for at, name in enumerate(("recall_at_5", "mrr", "temporal_accuracy")):
            assert config[name] == pytest.approx(float(sum(shares[at] for shares in wanted) / 12), abs=1e-12)
        assert config["false_recall"] == pytest.approx(float(sum(false_shares) / len(false_shares)), abs=1e-12)
    assert value["configs"][1]["injected_tokens"] < value["configs"][0]["injected_tokens"]


def load(root: Path) -> measure.Corpus:
    pinned = pin_root(os.fsencode(root))
    try:
        return measure.load(pinned)
    finally:
        pinned.close()


def by_other_means(ranking: list[str], expected: list[str], order: list[str], false: list[str]) -> list[Any]:
    """The four shares as exact fractions."""
    top = ranking[:5]
    hits = [ranking.index(id) for id in expected if id in ranking]
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    right = sum(a in ranking and b in ranking and ranking.index(a) < ranking.index(b) for a, b in pairs)
    temporal = Fraction(right, len(pairs)) if pairs else Fraction(order[0] in ranking)
    return [
        Fraction(sum(id in top for id in expected), len(expected)),
        Fraction(1, 1 + min(hits)) if hits else Fraction(0),
        temporal,
        Fraction(sum(id in top for id in false), len(false)) if false else None,
    ]


def test_the_executable_answers_with_the_report_alone(small: Path) -> None:
    path = small.parent / "labels.jsonl"
    path.write_bytes(jsonl(label("q", "loom", ["n1"])))
    done = run("cortex-benchmark", "--labels", path, "--memory-root", small)
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n") == 1
    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    assert value["provenance"]["command"] == ["cortex-benchmark", "--labels", str(path), "--memory-root", str(small)]
    assert value["generated_at"] == value["provenance"]["generated_at"]
