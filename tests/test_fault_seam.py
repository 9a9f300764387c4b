"""The N-th call of the system fails, for every N of a whole command: the right answer or a named failure."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_tools.contract.errors import EXIT_STATUS
from tests.governed import IDEA, LATER, MEMORY, PROPOSAL, QUEUE, debris, files, ms, tree
from tests.seam import EVERY, PROCESSES, READING, Fault, Job, Outcome, Seam, applicable
from tests.support import note, row, write_corpus
from tests.test_governance_crash import SNAPSHOT, STYLE, check_audit, one_of_each
from tests.test_health_healthy import NOW_MS, healthy

CANARY = b"CANARY"
WRITER = ["--adapter", "claude", "--allow-write"]
BATCH = 40


@pytest.fixture(scope="module")
def seam(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seam]:
    server = Seam(str(tmp_path_factory.mktemp("seam")))
    yield server
    server.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("corpus"))


def corpus(folder: Path) -> Path:
    """Few files of each sort, each with private text."""
    private = "<private>CANARY</private>"
    return write_corpus(
        folder,
        {
            "KNOWLEDGE/a.md": note("a", f"loom {private} more\n- slug: b"),
            "KNOWLEDGE/sub/b.md": note("b", "loom tension <private>CANARY"),
            "KNOWLEDGE/log.jsonl": row("r1", content=f"loom {private}") + row("r2", content=f"row {private}"),
            "HOT_MEMORY.md": note("hot", f"the loom {private}"),
        },
    )


def store_beside(root: Path) -> Path:
    """A store with a proposal and a snapshot; made once."""
    store = root.with_name(f"{root.name}-store")
    if not store.exists():
        store.mkdir()
        one_of_each(store)
    return store


def labels_of(seam: Seam, root: Path) -> Path:
    """A label for the corpus; made once."""
    labels = root.with_name(f"{root.name}-labels.jsonl")
    if not labels.exists():
        label = ["cortex-benchmark", "label", "loom", "--expect", "a", "--memory-root", str(root)]
        labels.write_bytes(seam.run(Job(label)).stdout)
    return labels


def jobs(seam: Seam, root: Path) -> dict[str, Job]:
    """Reading executables by name; what a stage reads is what the stages before it wrote."""
    store = store_beside(root)
    written = ["--memory-root", str(store)]
    there = ["--memory-root", str(root)]
    listing = seam.run(Job(["cortex-scan", *there])).stdout
    records = seam.run(Job(["cortex-strip"], listing)).stdout
    cards = seam.run(Job(["cortex-rank", "loom"], records)).stdout
    digests = seam.run(Job(["cortex-digest"], records)).stdout * 2
    answer = seam.run(Job(["cortex", "search", "loom", *there])).stdout
    return {
        "search": Job(["cortex", "search", "loom", "--expand", "a", *there]),
        "search, workers": Job(["cortex", "search", "loom", *there], forks=True),
        "timeline": Job(["cortex", "timeline", "--anchor", "b", *there]),
        "get": Job(["cortex", "get", "a", "r2", *there]),
        "status": Job(["cortex", "status", *there]),
        "rebuild": Job(["cortex", "rebuild", "--from-canonical", *there]),
        "rebuild, workers": Job(["cortex", "rebuild", "--from-canonical", *there], forks=True),
        "plan": Job(["cortex-plan", "search", "loom", *there]),
        "scan": Job(["cortex-scan", *there]),
        "strip": Job(["cortex-strip"], listing),
        "strip, jobs": Job(["cortex-strip", "--jobs", "3"], listing),
        "select": Job(["cortex-select", "--valid"], records),
        "expand": Job(["cortex-expand", "a"], records),
        "rank, bodies": Job(["cortex-rank", "loom", "--bodies"], records),
        "window, bodies": Job(["cortex-window", "--anchor", "b", "--bodies"], records),
        "digest": Job(["cortex-digest"], records),
        "card": Job(["cortex-card"], cards),
        "through": Job(["cortex-through", "cat"], records),
        "envelope search": Job(["cortex-envelope", "search"], cards),
        "envelope rebuild": Job(["cortex-envelope", "rebuild"], digests),
        "unwrap": Job(["cortex-unwrap"], answer),
        "check": Job(["cortex-check", *there]),
        "log-retrieval": Job(["cortex-log-retrieval", "search", "loom", *there]),
        "proposals list": Job(["cortex-proposals", "list", *written]),
        "proposals show": Job(["cortex-proposals", "show", queued(store), *written]),
        "restore list": Job(["cortex-restore", "list", *written], now_ns=ms(LATER) * 1_000_000),
        "restore show": Job(["cortex-restore", "show", SNAPSHOT, *written]),
        "benchmark": Job(["cortex-benchmark", "--labels", str(labels_of(seam, root)), *there]),
        "label": Job(["cortex-benchmark", "label", "loom", "--expect", "a", *there], now_ns=ms(LATER) * 1_000_000),
    }


NAMES = [
    "search",
    "search, workers",
    "timeline",
    "get",
    "status",
    "rebuild",
    "rebuild, workers",
    "plan",
    "scan",
    "strip",
    "strip, jobs",
    "select",
    "expand",
    "rank, bodies",
    "window, bodies",
    "digest",
    "card",
    "through",
    "envelope search",
    "envelope rebuild",
    "unwrap",
    "check",
    "log-retrieval",
    "proposals list",
    "proposals show",
    "restore list",
    "restore show",
    "label",
]
OTHERWISE = ("search, workers", "strip, jobs", "rank, bodies", "through", "scan")  # where there is more than to read
# Not one JSON object on a line each.
PRINTED = ("cortex-check", "cortex-plan", "cortex-proposals", "cortex-restore", "cortex-benchmark")
# Of a report of the benchmark, what differs from one run to the next even where nothing fails.
VOLATILE = re.compile(rb'"(?:generated_at|valid_at|p95_latency_ms|peak_rss_bytes)":("[^"]*"|[0-9.e+-]+)')
CUT = re.compile(rb"[a-z-]+: standard output cannot be written: .+\n")
SAID = re.compile(rb"[a-z-]+: internal_error: an unexpected [A-Za-z]+ stopped it\n")


def every(seam: Seam, job: Job, fault: str, kinds: tuple[str, ...] = (), who: str = "all") -> Iterator[Outcome]:
    """What the job did with the first, second, ... of these calls failing, until none is left to fail."""
    kinds = kinds or applicable(fault)
    number = 1
    while True:
        faults = [Fault(kinds, one, fault, who) for one in range(number, number + BATCH)]
        for outcome in seam.batch([(job, one) for one in faults], until_unhit=True):
            if not outcome.hit:
                return
            yield outcome
        number += BATCH


def sound(outcome: Outcome) -> None:
    """What holds whatever happens."""
    assert not outcome.left, f"a process is left: {outcome}"
    assert outcome.status >= 0, f"killed, or hung until the alarm: {outcome}"
    assert b"Traceback" not in outcome.stderr and b"File " not in outcome.stderr, outcome
    assert CANARY not in outcome.stdout + outcome.stderr, outcome


def check(job: Job, outcome: Outcome, right: Outcome) -> bool:
    """The right answer in full, or a named failure with its status; the answer is whether it was right."""
    sound(outcome)
    if outcome.status == right.status:
        assert VOLATILE.sub(b"", outcome.stdout) == VOLATILE.sub(b"", right.stdout), outcome
        return True
    assert outcome.status != 0, outcome
    name = job.argv[0]
    if CUT.fullmatch(outcome.stderr) or SAID.fullmatch(outcome.stderr):
        assert outcome.status == 1 and outcome.stdout != right.stdout, outcome
        # A failure may be cut off, too, where another process had a fault of its own.
        refused = b'"ok":false' in outcome.stdout and not outcome.stdout.endswith(b"\n")
        assert right.stdout.startswith(outcome.stdout) or refused, outcome
        return False
    if name == "cortex-benchmark" and outcome.stdout:
        assert json.loads(outcome.stdout)["ok"] is False, outcome
    elif name in PRINTED and outcome.stderr:
        code = re.fullmatch(rb"[a-z-]+(?: label)?: ([a-z_]+): .+\n", outcome.stderr)
        status = 4 if name == "cortex-benchmark" else EXIT_STATUS[code[1].decode()] if code else 0
        assert code and outcome.status == status and not outcome.stdout, outcome
    elif name == "cortex-check":
        assert outcome.status == 4 and outcome.stdout.startswith(b"NOT SOUND"), outcome
    elif name in ("cortex", "cortex-envelope", "cortex-log-retrieval", "cortex-plan"):
        failed = json.loads(outcome.stdout)  # one value and nothing after it
        assert failed["ok"] is False and failed["data"] is None and failed["error"]["message"], outcome
        assert outcome.status == EXIT_STATUS[failed["error"]["code"]], outcome
    else:
        error, seal = map(json.loads, outcome.stdout.splitlines()[-2:])
        assert (error["kind"], seal["kind"]) == ("error", "seal") and error["exit"] == outcome.status, outcome
        assert outcome.stderr.decode() == f"{name}: {error['code']}: {error['message']}\n", outcome
    return False


@pytest.mark.parametrize("name", NAMES)
def test_the_nth_call_fails(name: str, seam: Seam, root: Path) -> None:
    """EIO everywhere, and what else can happen to calls that open, write or fork; also within a worker."""
    job = jobs(seam, root)[name]
    right = seam.run(job)
    assert (right.status, right.hit, right.stderr) == (0, "", b"")
    failures = 0
    for fault in ("EIO", "EMFILE", "ENOSPC", "EAGAIN") if name in OTHERWISE else ("EIO",):
        for who in ("driver", "workers") if "," in name else ("all",):
            for outcome in every(seam, job, fault, READING if name == "check" else (), who):
                failures += not check(job, outcome, right)
    assert failures > 0
    assert sorted(name for name in os.listdir(root) if name != "OBSERVABILITY") == ["HOT_MEMORY.md", "KNOWLEDGE"]


@pytest.mark.parametrize(
    "name", ["search", "rebuild, workers", "strip, jobs", "rank, bodies", "envelope search", "log-retrieval"]
)
def test_memory_runs_out_at_the_nth_call(name: str, seam: Seam, root: Path) -> None:
    job = jobs(seam, root)[name]
    right = seam.run(job)
    kinds = tuple(kind for kind in EVERY if kind not in ("close", "kill", "waitpid"))  # which need none
    failures = 0
    for who in ("driver", "workers") if "," in name else ("all",):
        failures += sum(not check(job, outcome, right) for outcome in every(seam, job, "MemoryError", kinds, who))
    assert failures > 3


@pytest.mark.parametrize("name", NAMES)
def test_short_reads_and_writes_are_made_good(name: str, seam: Seam, root: Path) -> None:
    job = jobs(seam, root)[name]
    right = seam.run(job)
    short = seam.run(job, Fault((), 0, "short"))
    sound(short)
    assert (short.status, short.stdout) == (right.status, right.stdout)
    if name == "log-retrieval":  # a row of that log is one write or none, so that no other row comes between
        assert b"answered but not recorded" in short.stderr
        log = root / "OBSERVABILITY/memory-retrievals.jsonl"
        assert all(json.loads(line) for line in log.read_text().splitlines())
    else:
        assert short.stderr == b""


@pytest.mark.parametrize("name", ["search, workers", "rebuild, workers", "strip, jobs"])
def test_a_worker_that_cannot_begin_answers_nothing(name: str, seam: Seam, root: Path) -> None:
    """What fails in a worker before its work must not run on in its parent's code: that would be a second answer."""
    job = jobs(seam, root)[name]
    right = seam.run(job)
    for kinds in (("close",), PROCESSES):
        for who in ("driver", "workers"):
            for outcome in every(seam, job, "EIO", kinds, who):
                check(job, outcome, right)
                if job.argv[0] == "cortex":
                    assert outcome.stdout.count(b"\n") == 1, outcome


def test_a_process_that_cannot_be_started_is_said_by_name(seam: Seam, root: Path) -> None:
    job = jobs(seam, root)["search, workers"]
    for outcome in every(seam, job, "EAGAIN", ("fork", "pipe")):
        assert "no process can be started" in json.loads(outcome.stdout)["error"]["message"]


def test_a_pipeline_whose_stage_failed_is_a_failure_to_its_end(seam: Seam, root: Path) -> None:
    """The stages after it get what it wrote, whole or cut off: the envelope never makes a success of that."""
    there = ["--memory-root", str(root)]
    stages = [["cortex-scan", *there], ["cortex-strip"], ["cortex-select", "--valid"], ["cortex-rank", "loom"]]
    stages += [["cortex-card"], ["cortex-envelope", "search"]]
    answer = seam.run(Job(["cortex", "search", "loom", *there])).stdout
    given = b""
    for number, argv in enumerate(stages[:-1]):
        job = Job(argv, given)
        right = seam.run(job)
        for fault, kinds in (("EIO", ("write", "readinto", "read", "open", "close")), ("ENOSPC", ("write",))):
            for outcome in every(seam, job, fault, kinds):
                if outcome.stdout == right.stdout:
                    continue
                data = outcome.stdout
                for after in stages[number + 1 :]:
                    done = seam.run(Job(after, data))
                    sound(done)
                    data = done.stdout
                if outcome.stdout + b"\n" == right.stdout:
                    assert done.status == 0 and data == answer  # but for the last line feed all had gone by
                else:
                    assert done.status != 0 and json.loads(data)["ok"] is False, (argv, outcome)
        given = right.stdout


# --- health: a verdict must not hide what could not be looked at ------------------------------------------------------


def test_health_is_not_well_when_it_could_not_look(seam: Seam, tmp_path: Path) -> None:
    assert health_under_faults(seam, tmp_path, "EIO", EVERY) > 50


def health_under_faults(seam: Seam, folder: Path, fault: str, kinds: tuple[str, ...]) -> int:
    """A verdict with a fault is a worse one, or none and a word why.  Gives the runs."""
    root = healthy(folder / "root")
    env = {"CORTEX_INDEX_POLICY": "", "HOME": str(folder)}
    job = Job(["cortex-health", "--json", "--memory-root", str(root)], env=env, now_ns=NOW_MS * 1_000_000)
    log = root / "OBSERVABILITY/memory-health.jsonl"
    log.unlink(missing_ok=True)
    right = seam.run(job)
    for number in range(1, 10_000):
        log.unlink(missing_ok=True)
        outcome = seam.run(job, Fault(kinds, number, fault))
        if not outcome.hit:
            return number
        sound(outcome)
        if outcome.stdout == right.stdout:
            assert outcome.status == right.status
            continue
        assert outcome.status in (1, 2, 4), outcome
        if outcome.status == 4 or SAID.fullmatch(outcome.stderr):
            assert outcome.stderr.count(b"\n") == 1, outcome
        else:
            assert json.loads(outcome.stdout)["overall"] in ("warn", "critical"), outcome
    raise AssertionError("endless")


# --- governed writes -----------------------------------------------------------------------------------------------

NOTE = "KNOWLEDGE/Ideas/loom-tension.md"
HOT = "PRINCIPAL_MEMORY.md"


def queued(root: Path) -> str:
    return str(json.loads((root / QUEUE).read_text().splitlines()[0])["id"])


def remember(item: dict[str, object]) -> Callable[[Path], list[str]]:
    command = "propose" if item["type"] == "proposal" else "remember"
    return lambda root: ["cortex", command, json.dumps(item), *WRITER]


WRITES: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "idea": (remember({**IDEA, "content": "more CANARY"}), NOTE),
    "memory": (remember({**MEMORY, "content": "RULE: third"}), HOT),
    "proposal": (remember({**PROPOSAL, "edit": "other"}), QUEUE),
    "approve": (lambda root: ["cortex-proposals", "approve", queued(root)], STYLE),
    "restore": (lambda root: ["cortex-restore", "restore", SNAPSHOT], HOT),
}
# The calls that the store's own seam (test_governance_crash) does not see.
UNSEEN = (
    "close",
    "fstat",
    "dup",
    "lstat",
    "readlink",
    "urandom",
    "getcwdb",
    "uname",
    "read",
    "scandir",
    "next",
    "entry",
)


@pytest.mark.parametrize("name", ["idea", "approve"])  # the others in the soak
def test_the_nth_call_of_a_write_fails(name: str, seam: Seam, tmp_path: Path) -> None:
    write_under_faults(name, seam, tmp_path, "EIO", UNSEEN)


def write_under_faults(name: str, seam: Seam, folder: Path, fault: str, kinds: tuple[str, ...]) -> int:
    """The file is the old or the new one, with its audit row; success only with the new one.  Gives the runs."""
    command, target = WRITES[name]
    base, root = folder / "base", folder / "root"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    one_of_each(base)
    now = ms(LATER) * 1_000_000 + 5_000_000

    def job() -> Job:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(base, root)
        return Job([*command(root), "--memory-root", str(root)], now_ns=now)

    right = seam.run(job())
    assert right.status == 0, right
    new, old = files(root)[target], files(base)[target]
    assert new != old
    before = tree(base)
    for number in range(1, 10_000):
        this = job()
        outcome = seam.run(this, Fault(kinds, number, fault))
        if not outcome.hit:
            return number
        sound_write(outcome, fault)
        held = files(root)[target]
        assert held in (old, new), outcome
        check_audit(root, target, old)
        if outcome.status == 0:
            assert held == new, outcome
        elif outcome.status > 0:
            said = (outcome.stdout + outcome.stderr).decode()
            absent = fault == "ENOENT" and "not_found" in said
            assert absent or "_error" in said or "_refused" in said or "cannot be written" in said, outcome
            assert held == old or "nothing was written" not in said, outcome
            if "_refused" in said:
                assert tree(root) == before, outcome
        again = seam.run(this)
        assert again.status == 0 or b"already" in again.stdout + again.stderr, (outcome, again)
        assert debris(root) == [] or held == new, outcome
    raise AssertionError("endless")


def sound_write(outcome: Outcome, fault: str) -> None:
    assert not outcome.left and (outcome.status >= 0 or (fault, outcome.status) == ("SIGKILL", -9)), outcome
    assert b"Traceback" not in outcome.stderr and b"File " not in outcome.stderr, outcome
