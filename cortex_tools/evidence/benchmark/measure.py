"""Running the production code over labelled queries, and counting what it does.

A sample sends every record through the very stages of the plan of `cortex search QUERY`; nothing here
selects, ranks or makes a card of its own.
"""

from __future__ import annotations

import errno
import os
import time

from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.limits import DISCLOSED, LATENCY_SAMPLES
from cortex_tools.domain.records import Card, Record
from cortex_tools.driver.plan import Step, plan_for
from cortex_tools.driver.request import checked_request
from cortex_tools.driver.run import afresh, push
from cortex_tools.evidence.benchmark import metrics
from cortex_tools.evidence.benchmark.labels import Label
from cortex_tools.evidence.corpus import Collect, canonical_digest
from cortex_tools.files.root import Root
from cortex_tools.files.walk import walk
from cortex_tools.stages import registry
from cortex_tools.stages.base import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Corpus:
    """All records of a corpus in its order and by ID, its canonical digest, and its bytes on disk."""

    __slots__ = ("by_id", "digest", "disk_bytes", "records")

    def __init__(self, records: list[Record], digest: str, disk_bytes: int) -> None:
        self.records = records
        self.by_id = {record.id: record for record in records}
        self.digest = digest
        self.disk_bytes = disk_bytes


def load(root: Root) -> Corpus:
    """Read the corpus once; raises integrity_error where it is not sound."""
    return afresh(lambda: _load(root))


def _load(root: Root) -> Corpus:
    collect = Collect()
    digest = canonical_digest(root, [collect])
    records = [item for item in collect.items if isinstance(item, Record)]
    return Corpus(records, digest.sha256, sum(file.bytes for file in walk(root)))


class Disclosure:
    """One way to hand a ranking to a reader: its name in the report, how it works, and what it has cost."""

    __slots__ = ("execution_path", "latencies_ms", "name", "payload", "tokens")

    def __init__(self, name: str, execution_path: str, payload: Callable[[list[Card], Corpus], list[bytes]]) -> None:
        self.name = name
        self.execution_path = execution_path
        self.payload = payload
        self.latencies_ms: list[float] = []
        self.tokens = 0


def full_records(cards: list[Card], corpus: Corpus) -> list[bytes]:
    """The top five whole records, as one JSON array."""
    return [_array([corpus.by_id[card.id].json() for card in cards[:DISCLOSED]])]


def cards_then_selected(cards: list[Card], corpus: Corpus) -> list[bytes]:
    """The top five cards as one JSON array, then the one whole record that is selected: the first."""
    parts = [_array([card.json() for card in cards[:DISCLOSED]])]
    if cards:
        parts.append(corpus.by_id[cards[0].id].json().encode())
    return parts


def _array(texts: list[str]) -> bytes:
    return f"[{','.join(texts)}]".encode()


def disclosures() -> list[Disclosure]:
    """The two that are compared, with nothing measured yet."""
    return [
        Disclosure("bm25-baseline", "rank-full-records", full_records),
        Disclosure("progressive", "rank-cards-expand-selected", cards_then_selected),
    ]


class Counts:
    """What was done: whole corpora tokenized, and rankings made."""

    __slots__ = ("corpus_tokenizations", "ranking_runs")

    def __init__(self) -> None:
        self.corpus_tokenizations = 0
        self.ranking_runs = 0


def search_steps(query: str) -> list[Step]:
    """The stages that `cortex search QUERY` stands for."""
    return plan_for(checked_request("search", lambda _: Arguments({}, [query]))).steps


def rank(steps: list[Step], corpus: Corpus, now_ms: int, counts: Counts) -> list[Card]:
    """The cards of all matches, best first, as the plan's stages give them at `now_ms`."""
    answer = Collect()
    chain: list[Stage] = [*(registry.build(step.name, step.arguments, now_ms) for step in steps), answer]
    counts.corpus_tokenizations += 1  # the ranking stage tokenizes each record as it goes by
    for record in corpus.records:
        push(chain, record)
    counts.ranking_runs += 1
    for number, stage in enumerate(chain):
        for item in stage.finish():
            push(chain[number + 1 :], item)
    return [item for item in answer.items if isinstance(item, Card)]


def sample(label: Label, corpus: Corpus, now_ms: int, ways: list[Disclosure], counts: Counts) -> list[str]:
    """Run the label's query 25 times, each ranking shared by all `ways`; the answer is the ranking's IDs."""
    steps = search_steps(label.query)
    cards: list[Card] = []
    for number in range(LATENCY_SAMPLES):
        start = time.perf_counter_ns()
        cards = rank(steps, corpus, now_ms, counts)
        ranking_ns = time.perf_counter_ns() - start
        for way in ways:
            start = time.perf_counter_ns()
            payload = way.payload(cards, corpus)
            way.latencies_ms.append((ranking_ns + time.perf_counter_ns() - start) / 1e6)
            if number == 0:  # each query is injected once, however often it is timed
                way.tokens += metrics.tokens(sum(map(len, payload)))
    return [card.id for card in cards]


def descendants() -> int:
    """How many processes descend from this one right now."""
    parents: dict[int, int] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
    except FileNotFoundError:
        names = []
    if str(os.getpid()) not in names:  # none of Linux's: BSD has no /proc, or an empty one, or another
        return _descendants_by_ps()
    for name in names:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # PID (NAME) STATE PARENT: the name may hold anything, so count from its last bracket.
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended in between
    return _count_below(os.getpid(), parents)


def _descendants_by_ps() -> int:
    import subprocess

    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=True, text=True)
    pairs = (line.split() for line in listed.stdout.splitlines())
    return _count_below(os.getpid(), {int(pid): int(parent) for pid, parent in pairs}) - 1  # ps itself


def _count_below(top: int, parents: dict[int, int]) -> int:
    below = {top}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return len(below) - 1


def tree_bytes(root: Root) -> int:
    """The bytes of all files below the root, links not followed.

    A folder that is gone meanwhile or not ours to read counts nothing; any other failure raises OSError, since
    a difference of two such sums must not be that of what could be looked at.
    """

    def skip(error: OSError) -> None:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM):
            raise error

    total = 0
    for _, _, names, descriptor in os.fwalk(b".", onerror=skip, dir_fd=root.descriptor, follow_symlinks=False):
        for name in names:
            try:
                total += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # gone in between
    return total


def peak_rss_bytes() -> int:
    """The largest resident set this process has had."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
