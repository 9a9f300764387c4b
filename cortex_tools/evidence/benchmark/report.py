"""The benchmark's report: one point-in-time measurement of one corpus on one machine."""

from __future__ import annotations

import json
import time

from cortex_tools.contract.limits import DISCLOSED, LATENCY_SAMPLES
from cortex_tools.domain.text import without_surrogates
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence.benchmark import SCHEMA, measure, metrics
from cortex_tools.evidence.benchmark.labels import Label, Labels
from cortex_tools.evidence.benchmark.measure import Corpus, Counts, Disclosure
from cortex_tools.files.root import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Quality:
    """The ranking's quality over all labels: it is the same for every disclosure, by design."""

    __slots__ = ("_false", "_recalls", "_reciprocals", "_temporal")

    def __init__(self) -> None:
        self._recalls: list[float] = []
        self._reciprocals: list[float] = []
        self._temporal: list[float] = []
        self._false: list[float] = []

    def add(self, label: Label, ranking: list[str]) -> None:
        self._recalls.append(metrics.recall(ranking, label.expected))
        self._reciprocals.append(metrics.reciprocal_rank(ranking, label.expected))
        self._temporal.append(metrics.temporal_accuracy(ranking, label.order))
        false = metrics.false_recall(ranking, label.false)
        if false is not None:
            self._false.append(false)

    def as_dict(self) -> dict[str, Any]:
        """Means over the queries; false recall over those that have false IDs, null where none has."""
        return {
            "recall_at_5": metrics.mean(self._recalls),
            "mrr": metrics.mean(self._reciprocals),
            "temporal_accuracy": metrics.mean(self._temporal),
            "false_recall": metrics.mean(self._false) if self._false else None,
        }


def run(
    root: Root,
    labels: Labels,
    command: list[str],
    *,
    now_ms: int | None = None,
    progress: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Measure all labels on the corpus below `root`; the answer is the report.

    `command` is what was called, `now_ms` stands in for the clock, `progress` is called after each query.
    Raises CortexError where the corpus is not sound or lacks an ID of the labels.
    """
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    before = measure.tree_bytes(root)
    corpus = measure.load(root)
    labels.check_ids(corpus.by_id)
    ways, counts, quality = measure.disclosures(), Counts(), Quality()
    processes = 0
    for _, label in labels.rows:
        quality.add(label, measure.sample(label, corpus, now, ways, counts))
        processes = max(processes, measure.descendants())
        if progress is not None:
            progress()
    machine = {
        "disk_bytes": corpus.disk_bytes,
        "disk_growth_bytes": measure.tree_bytes(root) - before,
        "process_count": processes,
        "peak_rss_bytes": measure.peak_rss_bytes(),
    }
    return {
        "schema": SCHEMA,
        "generated_at": format_ms(now),
        "labels": len(labels.rows),
        "configs": [_config(way, quality, machine) for way in ways],
        "vector_config": None,
        "measurements": {
            "corpus_tokenizations": counts.corpus_tokenizations,
            "ranking_runs": counts.ranking_runs,
            "latency_samples_per_query": LATENCY_SAMPLES,
        },
        "provenance": _provenance(corpus, labels, command, now),
    }


def _config(way: Disclosure, quality: Quality, machine: dict[str, int]) -> dict[str, Any]:
    return {
        "name": way.name,
        **quality.as_dict(),
        "injected_tokens": way.tokens,
        "p95_latency_ms": metrics.percentile95(way.latencies_ms),
        "latency_samples": len(way.latencies_ms),
        **machine,
        "execution_path": way.execution_path,
    }


def _provenance(corpus: Corpus, labels: Labels, command: list[str], now_ms: int) -> dict[str, Any]:
    return {
        "corpus_digest": corpus.digest,
        "labels_digest": labels.digest,
        "command": command,
        "generated_at": format_ms(now_ms),
        "config": {
            "records": len(corpus.records),
            "valid_at": format_ms(now_ms),
            "recency": 0,
            "disclosed": DISCLOSED,
            "latency_samples_per_query": LATENCY_SAMPLES,
        },
    }


def line(value: dict[str, Any]) -> bytes:
    """The report, or a failure, as one line of JSON."""
    text = json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return without_surrogates(text).encode() + b"\n"


def _whole(value: Any) -> Any:
    """The same with whole numbers as integers, as the contract prints them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, list) else value


def failure(code: str, message: str) -> dict[str, Any]:
    """What stands on standard output in a report's place."""
    return {"schema": SCHEMA, "ok": False, "error": {"code": code, "message": message}}
