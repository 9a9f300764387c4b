"""No private text comes out of anything: no stage, command, failure, name or argument shows a canary.

The corpora are those of tests/canaries.py.  Outputs are looked through whole, standard error included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_64

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain import jsonl, markdown
from cortex_tools.domain.privacy import strip_private
from cortex_tools.files.reading import parse_note
from cortex_tools.files.walk import NoteFile
from cortex_tools.library import Runtime, run_cortex
from cortex_tools.streams.lines import decode
from tests import canaries
from tests.canaries import COMMON, HUB, STEM, leaks
from tests.support import envelope, environment, failure, note, row, run, write_corpus

Done = subprocess.CompletedProcess[bytes]
BROKEN = canaries.broken()
EVERYTHING = ("--page-size", "100", "--page")


@pytest.fixture(scope="module")
def planted() -> canaries.Corpus:
    return canaries.sound()


@pytest.fixture(scope="module")
def root(planted: canaries.Corpus, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_corpus(tmp_path_factory.mktemp("sound"), planted.files))


@pytest.fixture(scope="module")
def stripped(root: str) -> bytes:
    """The sound corpus as record lines."""
    return run("cortex-strip", input=run("cortex-scan", "--memory-root", root).stdout).stdout


def mute(done: Done) -> Done:
    """`done`, which shows no canary anywhere."""
    assert leaks(done.stdout) == []
    assert leaks(done.stderr) == []
    return done


def parse_all(files: canaries.Files) -> Iterator[tuple[str, str]]:
    """The path of each note and what its records show, "" for a note that is refused."""
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        file = NoteFile(path, "jsonl" if path.endswith(".jsonl") else "markdown", len(data), 0, 0, 0)
        try:
            yield path, "\n".join(record.json() for record in parse_note(file, data))
        except CortexError:
            yield path, ""


# --- the alarm itself ----------------------------------------------------------------------------------------


def test_without_the_boundary_every_canary_would_come_out(
    planted: canaries.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "strip_private", lambda text: text)
    monkeypatch.setattr(jsonl, "strip_private", lambda text: text)
    shown: set[str] = set()
    refused = set()
    for path, text in parse_all(planted.files):
        if not text:
            refused.add(path.removeprefix("KNOWLEDGE/"))
        if not path.startswith(("KNOWLEDGE/.", "KNOWLEDGE/_", "KNOWLEDGE/other")):
            shown.update(leaks(text.encode()))
    # A span beside a timestamp cannot come out but as a refusal; the rest of the places all can.
    assert refused == {"front/created.md", "front/updated.md", "front/valid_from.md", "rows/times.jsonl"}
    silent = {place for word, place in planted.canaries.items() if word not in shown}
    assert silent == {*(f"KNOWLEDGE/{path}" for path in refused if path.startswith("front")), "times", "skipped"}
    assert len(shown) > 1_000


def test_with_the_boundary_no_canary_is_left_and_every_public_word_is(planted: canaries.Corpus) -> None:
    for path, text in parse_all(planted.files):
        if path.startswith(("KNOWLEDGE/.", "KNOWLEDGE/_", "KNOWLEDGE/other")):
            continue
        assert text
        assert leaks(text.encode()) == []
        assert [word for word, home in planted.public.items() if home == path and word not in text] == []


# --- stages --------------------------------------------------------------------------------------------------


def unsealed(stream: bytes) -> bytes:
    """The stream as a filter leaves it that drops the seals."""
    return b"".join(line for line in stream.splitlines(True) if not line.startswith(b'{"kind":"seal"'))


STAGES = {
    "select": ("cortex-select", "--valid"),
    "select by id": ("cortex-select", "--id", HUB, "--id", "row-escaped_row-id-plain"),
    "select by type": ("cortex-select", "--type", "log", "--at", "2024-06-01"),
    "rank": ("cortex-rank", COMMON),
    "rank with bodies": ("cortex-rank", COMMON, "--bodies", "--recency", "1"),
    "window": ("cortex-window", "--anchor", "front-id-plain", "--before", "100", "--after", "100"),
    "window with bodies": ("cortex-window", "--anchor", "2024-01-15", "--before", "100", "--after", "100", "--bodies"),
    "expand": ("cortex-expand", HUB, "--max-nodes", "100", "--max-tokens", "50000"),
    "digest": ("cortex-digest",),
    "card": ("cortex-card",),
    "status": ("cortex-envelope", "status"),
    "get": ("cortex-envelope", "get", HUB, "body-plain", "body-privateer", "row-row-title-plain"),
}


@pytest.mark.parametrize("name", STAGES)
def test_no_stage_shows_a_canary(name: str, stripped: bytes) -> None:
    done = mute(run(*STAGES[name], input=stripped))
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    for line in done.stdout.decode().splitlines():
        assert strip_private(line) == line  # nor anything that could be a tag
    again = mute(run(*STAGES[name], "--unsealed", input=unsealed(stripped)))
    assert again.returncode == 0
    assert unsealed(again.stdout) == unsealed(done.stdout)


def test_scan_and_strip_show_no_canary_and_all_that_is_public(root: str, planted: canaries.Corpus) -> None:
    scan = mute(run("cortex-scan", "--memory-root", root, "--parts", "3"))
    strip = mute(run("cortex-strip", input=scan.stdout))
    assert (scan.returncode, strip.returncode, scan.stderr, strip.stderr) == (0, 0, b"", b"")
    text = strip.stdout.decode()
    assert [word for word in planted.public if word not in text] == []
    for line in text.splitlines():
        assert strip_private(line) == line
    bodies = run("cortex-rank", COMMON, "--bodies", input=strip.stdout).stdout.decode()
    assert [word for word in planted.public if word not in bodies] == []


def test_strip_over_several_processes_shows_no_canary(root: str, stripped: bytes, tmp_path: Path) -> None:
    scan = run("cortex-scan", "--memory-root", root)
    jobs = mute(run("cortex-strip", "--jobs", "3", input=scan.stdout))
    assert (jobs.returncode, jobs.stderr, jobs.stdout) == (0, b"", stripped)
    bad = write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), **BROKEN["row-surrogate"]})
    scan = run("cortex-scan", "--memory-root", str(bad))
    assert mute(run("cortex-strip", "--jobs", "3", input=scan.stdout)).returncode == 4


def test_no_pipeline_to_an_envelope_shows_a_canary(root: str, stripped: bytes) -> None:
    expanded = run("cortex-expand", HUB, "--max-nodes", "100", "--max-tokens", "50000", input=stripped).stdout
    ranked = run("cortex-rank", COMMON, input=expanded).stdout
    search = mute(run("cortex-envelope", "search", *EVERYTHING, "1", input=ranked))
    assert len(envelope(search)["data"]["expansion"]["items"]) > 50
    window = run(*STAGES["window"], input=stripped).stdout
    timeline = mute(run("cortex-envelope", "timeline", "--page-size", "100", input=window))
    assert envelope(timeline)["data"]["total"] > 100
    digest = run("cortex-digest", input=stripped).stdout
    rebuild = mute(run("cortex-envelope", "rebuild", input=digest + digest))
    assert envelope(rebuild)["data"]["equivalent"] is True


# --- the read commands -----------------------------------------------------------------------------------------


def test_no_command_shows_a_canary(root: str, planted: canaries.Corpus) -> None:
    ids = [planted.ids[at : at + 100] for at in range(0, len(planted.ids), 100)]
    expand = ("--expand", HUB, "--max-nodes", "100", "--max-tokens", "50000")
    commands = [
        ("status",),
        *(("search", COMMON, *EVERYTHING, str(page), *expand) for page in range(1, 7)),
        ("search", COMMON, "--type", "log", "--session", "s1", "--source", "notes"),
        ("timeline", "--anchor", HUB, "--before", "100", "--after", "100", "--page-size", "100"),
        ("timeline", "--anchor", "2024-02-02", "--before", "100", "--after", "100", "--page-size", "100"),
        *(("get", *some) for some in ids),
        *(("export", *some) for some in ids[:2]),
        ("rebuild", "--from-canonical"),
    ]
    shown = ""
    for command in commands:
        done = mute(run("cortex", *command, "--memory-root", root))
        assert done.returncode == 0 and done.stderr == b"", done
        shown += done.stdout.decode()
    known = [word for word, path in planted.public.items() if "/across/" not in path and not path.endswith("-cut.md")]
    assert [word for word in known if word not in shown] == []


def test_a_body_holds_exactly_what_is_outside_its_span(root: str, planted: canaries.Corpus) -> None:
    names = [*canaries.SPANS, *canaries.CUTS]
    status, answer = run_cortex(["get", *(f"body-{name}" for name in names)], Runtime(memory_root=root))
    assert status == 0
    for name, record in zip(names, answer["data"]["items"], strict=True):
        path = f"KNOWLEDGE/bodies/{name}.md"
        assert record["provenance"] == {"source": "notes", "session": "s1", "path": path}
        words = [word for word, home in planted.public.items() if home == path]
        body = record["content"].split("---\n", 2)[2]
        if name in canaries.SPANS:
            kept = "``" if name == "code" else ""
            assert body == f"{COMMON} {words[0]} {kept} {words[1]}\n"
        else:
            kept = "if a " if name == "comparison" else ""
            assert body == f"{COMMON} {words[0]} {kept}"


def in_chunks(words: list[str], size: int = 64) -> Iterator[list[str]]:
    return (words[at : at + size] for at in range(0, len(words), size))


def test_queries_for_canaries_find_nothing(root: str, planted: canaries.Corpus) -> None:
    for words in in_chunks([*planted.canaries]):
        for query in (" ".join(words), " ".join(words).upper()):
            status, answer = run_cortex(["search", query], Runtime(memory_root=root))
            assert status == 0
            assert answer["data"] == {"items": [], "total": 0, "page": 1, "page_size": 10}


def test_queries_for_public_words_find_their_notes(root: str, planted: canaries.Corpus) -> None:
    for words in in_chunks([*planted.public]):
        found: set[str] = set()
        total = 0
        for page in ("1", "2"):
            args = ["search", " ".join(words), *EVERYTHING, page]
            status, answer = run_cortex(args, Runtime(memory_root=root))
            assert status == 0
            total += len(answer["data"]["items"])
            found |= {card["provenance"]["path"] for card in answer["data"]["items"]}
        assert total == answer["data"]["total"]
        assert found == {planted.public[word] for word in words}


# --- failures -----------------------------------------------------------------------------------------------


def read_commands() -> list[list[str]]:
    return [
        ["status"],
        ["search", COMMON, "--expand", "a"],
        ["timeline", "--anchor", "a"],
        ["get", "a"],
        ["export", "a"],
        ["rebuild", "--from-canonical"],
    ]


@pytest.mark.parametrize("fault", BROKEN)
def test_no_refusal_of_a_corpus_shows_a_canary(fault: str, tmp_path: Path) -> None:
    root = str(write_corpus(tmp_path, BROKEN[fault]))
    assert any(leaks(content.encode() if isinstance(content, str) else content) for content in BROKEN[fault].values())
    for command in read_commands():
        status, answer = run_cortex(command, Runtime(memory_root=root))
        assert (status, answer["error"]["code"]) == (4, "integrity_error"), answer
        assert "KNOWLEDGE/bad." in answer["error"]["message"]
        assert leaks(json.dumps(answer).encode()) == []
    scan = mute(run("cortex-scan", "--memory-root", root))
    strip = mute(run("cortex-strip", input=scan.stdout))
    assert strip.returncode == 4 and b'{"kind":"error"' in strip.stdout
    assert answer["error"]["message"] in strip.stderr.decode()
    done = mute(run("cortex-envelope", "status", input=strip.stdout))
    assert failure(done, 4, "integrity_error") == answer["error"]["message"]


@pytest.mark.parametrize("fault", ["window", "row-duplicate-id"])
def test_no_stage_adds_to_a_refusal(fault: str, tmp_path: Path) -> None:
    root = str(write_corpus(tmp_path, BROKEN[fault]))
    stream = run("cortex-strip", input=run("cortex-scan", "--memory-root", root).stdout).stdout
    assert mute(run("cortex", "search", COMMON, "--memory-root", root)).returncode == 4
    for name, command in STAGES.items():
        done = mute(run(*command, input=stream))
        assert done.returncode == 4, name
        assert mute(run(*command, "--unsealed", input=unsealed(stream))).returncode == 4
        # An error line that arrives is passed on in silence.
        assert done.stderr == b"", name


def test_a_corpus_that_moves_is_refused_without_a_canary(tmp_path: Path) -> None:
    root = write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a", f"<private>{STEM}1</private>")})
    scan = run("cortex-scan", "--memory-root", str(root))
    (root / "KNOWLEDGE/a.md").write_text(note("a", f"<private>{STEM}2</private> and longer"))
    done = mute(run("cortex-strip", input=scan.stdout))
    assert done.returncode == 4 and b"KNOWLEDGE/a.md" in done.stderr


# --- 14.12: what nobody expected ------------------------------------------------------------------------------

# Stands for a fault in the parser: its words quote the note.
BOOM = """
import sys
import cortex_tools.files.reading as reading, cortex_tools.driver.workers as workers
def boom(text, *rest, **more):
    raise RuntimeError("cannot parse " + text)
reading.parse_markdown = boom
workers.BYTES_WORTH_A_WORKER = 1
workers.os.sched_getaffinity = lambda _: {0, 1}
"""


@pytest.mark.parametrize("notes", [1, 4])
def test_an_internal_error_names_its_type_alone(notes: int, tmp_path: Path) -> None:
    files: canaries.Files = {
        f"KNOWLEDGE/{at}.md": note(f"n{at}", f"<private>{STEM}{at}</private>") for at in range(notes)
    }
    root = str(write_corpus(tmp_path, files))
    scan = run("cortex-scan", "--memory-root", root)
    stage = "from cortex_tools.stages.executable import main; main('cortex-strip')"
    driver = f"sys.argv = ['cortex', 'status', '--memory-root', {root!r}]\n"
    driver += "from cortex_tools.driver.main import cortex; cortex()"
    for script in (stage, driver):
        env = environment(PYTHONPATH=str(Path(__file__).parents[1]))
        done = mute(
            subprocess.run([sys.executable, "-c", BOOM + script], input=scan.stdout, capture_output=True, env=env)
        )
        assert done.returncode == 1
        assert b'"code":"internal_error"' in done.stdout
        assert b"RuntimeError" in done.stdout
        assert b"Traceback" not in done.stdout + done.stderr
        assert b"cannot parse" not in done.stdout + done.stderr


# --- 14.17: names ----------------------------------------------------------------------------------------------

MARKED_NAMES = [
    f"KNOWLEDGE/<private>{STEM}1.md",
    f"KNOWLEDGE/a<private>{STEM}1<",
    f"KNOWLEDGE/a<private>{STEM}1.jsonl",
    f"KNOWLEDGE/<private>{STEM}1/a.md",
    f"KNOWLEDGE/<private>{STEM}1</private>/a.md",
    f"KNOWLEDGE/sub/a<private {STEM}1>b<",
    f"KNOWLEDGE/sub<private {STEM}1>b</private>.md",
    f"KNOWLEDGE/a</private {STEM}1>b.md",
    f"KNOWLEDGE/<privateer>{STEM}1.md",
    f"KNOWLEDGE/<private{STEM}1.md",
    f"KNOWLEDGE/<pri\u200bvate>{STEM}1.md",
    f"KNOWLEDGE/\uff1cprivate\uff1e{STEM}1.md",
    f"KNOWLEDGE/\ufe64private\ufe65{STEM}1.jsonl",
    f"KNOWLEDGE/<private>{STEM}1\n.md",
    f"KNOWLEDGE/<private>{STEM}1.txt",  # no note, but a name met on the way
    f"<private>{STEM}1_MEMORY.md",
    f"{COMMON}<private {STEM}1>_MEMORY.md",
]


def refused_everywhere(root: Path) -> None:
    """Every way to read `root` is refused as unsound, and says nothing of a canary."""
    os.makedirs(root / "KNOWLEDGE", exist_ok=True)
    (root / "KNOWLEDGE/zz.md").write_text(note("zz"))
    scan = mute(run("cortex-scan", "--memory-root", str(root)))
    assert scan.returncode == 4 and b"integrity_error" in scan.stderr
    assert b'"kind":"file"' not in scan.stdout
    failure(mute(run("cortex", "status", "--memory-root", str(root))), 4, "integrity_error")
    for command in read_commands():
        status, answer = run_cortex(command, Runtime(memory_root=root))
        assert (status, answer["error"]["code"]) == (4, "integrity_error")
        assert leaks(json.dumps(answer).encode()) == []


@pytest.mark.parametrize("name", MARKED_NAMES, ids=ascii)
def test_a_name_with_private_markup_is_refused_and_not_shown(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith("<"):
        path.mkdir(parents=True)  # a folder, whether or not a note is in it
    else:
        write_corpus(tmp_path, {name: note("a")})
    refused_everywhere(tmp_path)


@pytest.mark.parametrize("ending", [".md", ".txt", ""])
def test_a_link_with_private_markup_in_its_name_is_not_shown(ending: str, tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE").mkdir()
    (tmp_path / f"KNOWLEDGE/a<private>{STEM}1{ending}").symlink_to(f"/nowhere/{STEM}2")
    refused_everywhere(tmp_path)


def test_a_special_file_with_private_markup_in_its_name_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE").mkdir()
    os.mkfifo(tmp_path / f"KNOWLEDGE/a<private>{STEM}1.md")
    refused_everywhere(tmp_path)


def test_a_name_with_private_markup_that_is_not_utf8_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "KNOWLEDGE").mkdir()
    try:
        (tmp_path / os.fsdecode(f"KNOWLEDGE/a<private>{STEM}1".encode() + b"\xff.md")).write_text(note("a"))
    except OSError:
        pytest.skip("this file system takes no name that is not UTF-8")
    refused_everywhere(tmp_path)


def test_what_is_not_in_the_corpus_may_have_any_name_and_is_not_shown(tmp_path: Path) -> None:
    files: canaries.Files = {
        "KNOWLEDGE/a.md": note("a"),
        f"KNOWLEDGE/_<private>{STEM}1.md": note("b"),
        f"KNOWLEDGE/.<private>{STEM}2/a.md": note("c"),
        f"<private>{STEM}3.md": note("d"),
    }
    root = str(write_corpus(tmp_path, files))
    scan = mute(run("cortex-scan", "--memory-root", root))
    assert scan.stdout.count(b'"kind":"file"') == 1
    assert envelope(mute(run("cortex", "status", "--memory-root", root)))["data"]["canonical"]["records"] == 1


@pytest.mark.parametrize("kind", ["missing", "file", "folder", "alias"])
def test_a_root_with_private_markup_in_its_name_is_not_shown(kind: str, tmp_path: Path) -> None:
    root = tmp_path / f"a<private>{STEM}1"
    if kind == "file":
        root.write_text(STEM)
    elif kind == "folder":
        write_corpus(root, {"KNOWLEDGE/a.md": note("a")})
    elif kind == "alias":
        write_corpus(tmp_path / "real", {"KNOWLEDGE/a.md": note("a")})
        root.symlink_to(tmp_path / "real")
    expected = 0 if kind == "alias" else 4
    assert mute(run("cortex-scan", "--memory-root", root)).returncode == expected
    assert mute(run("cortex", "status", "--memory-root", root)).returncode == expected
    assert mute(run("cortex", "status", env=environment(CORTEX_MEMORY_ROOT=str(root)))).returncode == expected


# --- arguments -------------------------------------------------------------------------------------------------

MARKED = [
    f"x<private>{STEM}1</private>y",
    f"<private>{STEM}1",
    f"<privateer>{STEM}1",
    f"\uff1cprivate\uff1e{STEM}1",
    f"<pri</private>vate>{STEM}1",
]


def said(done: Done) -> bytes:
    """All output but the envelope's `command`, which is the first argument as it was given."""
    text = done.stdout
    if text.startswith(b'{"schema"'):
        text = json.dumps({**json.loads(text), "command": ""}, ensure_ascii=False).encode()
    return text + done.stderr


def marked_commands(mark: str) -> list[tuple[list[str], int]]:
    """Command lines of `cortex` that hold `mark`, and their exit status."""
    return [
        ([mark], 4),
        (["status", mark], 4),
        (["status", f"--{mark}"], 4),
        (["search", COMMON, f"--{mark}", "x"], 4),
        (["status", "--adapter", mark], 4),
        (["search", mark * 300], 4),
        (["search", f"{mark} " * 80], 4),
        (["search", COMMON, "--expand", mark], 3),
        *((["search", COMMON, option, mark], 4) for option in ("--from", "--to", "--recency", "--page", "--max-nodes")),
        *((["search", COMMON, option, mark], 0) for option in ("--type", "--source", "--session")),
        (["timeline", "--anchor", mark], 3),
        (["timeline", "--anchor", HUB, "--before", mark], 4),
        (["timeline", "--anchor", mark, "--page", mark], 3),
        (["get", mark], 3),
        (["get", HUB, mark, "missing"], 3),
        (["export", *(f"{at}{mark}" for at in range(20))], 3),
        (["rebuild", mark], 4),
        (["rebuild", "--from-canonical", "--memory-root", f"/nowhere/{mark}"], 4),
    ]


@pytest.mark.parametrize("mark", MARKED, ids=ascii)
def test_no_message_echoes_private_markup_in_an_argument(mark: str, root: str) -> None:
    for args, status in marked_commands(mark):
        own_root = [] if "--memory-root" in args else ["--memory-root", root]
        got, answer = run_cortex([*args, *own_root], Runtime())
        assert got == status, (args, answer)
        assert leaks(json.dumps({**answer, "command": ""}).encode()) == [], args


def test_no_executable_echoes_private_markup_in_an_argument(root: str, stripped: bytes) -> None:
    mark = MARKED[0]
    head = b"".join(stripped.splitlines(True)[:1])
    small = sealed(head)
    stages: list[tuple[tuple[str, ...], int]] = [
        (("cortex", "search", COMMON, "--expand", mark, "--memory-root", root), 3),
        (("cortex", "get", mark, "--memory-root", root), 3),
        (("cortex", "timeline", "--anchor", mark, "--memory-root", root), 3),
        (("cortex", mark), 4),
        (("cortex-plan", mark), 4),
        (("cortex-plan", "status", mark), 4),
        (("cortex-plan", "search", COMMON, "--adapter", mark), 4),
        (("cortex-plan", "search", mark * 300), 0),
        (("cortex-scan", "--parts", mark), 4),
        (("cortex-scan", "--memory-root", mark), 4),
        (("cortex-scan", f"--{mark}"), 4),
        (("cortex-strip", mark), 4),
        (("cortex-select", "--at", mark), 4),
        (("cortex-select", "--to", mark), 4),
        (("cortex-select", "--id", mark), 0),
        (("cortex-rank", mark * 300), 4),
        (("cortex-rank", COMMON, "--recency", mark), 4),
        (("cortex-window", "--anchor", mark), 3),
        (("cortex-window", "--anchor", HUB, "--after", mark), 4),
        (("cortex-expand", mark), 3),
        (("cortex-expand", HUB, "--max-tokens", mark), 4),
        (("cortex-digest", mark), 4),
        (("cortex-card", f"--{mark}", mark), 4),
        (("cortex-envelope", mark), 4),
        (("cortex-envelope", "get", mark), 3),
        (("cortex-envelope", "search", "--page", mark), 4),
        (("cortex-envelope", "search", "--refuse", mark, "a message"), 4),
    ]
    for command, status in stages:
        done = run(*command, input=small)
        assert done.returncode == status, (command, done)
        if command[:2] != ("cortex-plan", "search") or status:  # a plan is the command line, written out
            assert leaks(said(done)) == [], command


def test_a_refusal_given_to_the_envelope_is_stripped(stripped: bytes) -> None:
    """There is no stage output, option or failure that shows unstripped text: this option neither."""
    small = sealed(stripped.splitlines(True)[0])
    for mark in MARKED:
        done = run("cortex-envelope", "search", "--refuse", "invalid_input", f"no: {mark}", input=small)
        assert failure(mute(done), 4, "invalid_input", "no: ")


# --- lines that no stage of ours wrote ----------------------------------------------------------------------------


def sealed(*lines: bytes) -> bytes:
    """The lines with a seal that fits them."""
    seal = {"kind": "seal", "stage": "forged", "lines": len(lines), "xxh3": xxh3_64(b"".join(lines)).hexdigest()}
    return b"".join(lines) + json.dumps(seal).encode() + b"\n"


RECORD: dict[str, Any] = {
    "kind": "record",
    "id": "a",
    "type": "log",
    "title": "A",
    "created": "2024-01-01",
    "updated": "2024-01-01",
    "provenance": {"source": "s", "session": None, "path": "KNOWLEDGE/a.md"},
    "content": COMMON,
    "related": [],
    "valid_from": None,
    "valid_until": None,
}
CARD: dict[str, Any] = {
    **{name: RECORD[name] for name in ("id", "type", "created", "updated", "provenance")},
    "score": 0,
    "est_tokens": 1,
}


def forged_lines(mark: str) -> dict[str, dict[str, Any]]:
    """Lines that hold `mark` somewhere, some with a further fault that must not bring it out either."""
    in_path = {**RECORD, "provenance": {"source": "s", "session": None, "path": f"KNOWLEDGE/{mark}.md"}}
    marked_card = {"kind": "card", **CARD, "id": mark}
    file = {"kind": "file", "path": f"KNOWLEDGE/{mark}.md", "format": "markdown", "bytes": 1, "dev": 1, "ino": 1}
    corpus = {"kind": "corpus", "root": f"/{mark}", "listing": "0" * 16, "part": 1, "parts": 1, "files": 0, "bytes": 0}
    error = {"kind": "error", "code": "integrity_error", "exit": 4, "message": f"no: {mark}", "stage": "forged"}
    return {
        **{f"record {name}": {**RECORD, name: mark} for name in ("id", "type", "title", "content", "created")},
        "record session": {**RECORD, "provenance": {"source": "s", "session": mark, "path": "a.md"}},
        "record source": {**RECORD, "provenance": {"source": mark, "session": None, "path": "a.md"}},
        "record related": {**RECORD, "related": ["a", mark]},
        "record path": in_path,
        "record path and title": {**in_path, "title": f"KNOWLEDGE/{mark}.md"},
        "record valid_from": {**RECORD, "valid_from": mark},
        "record window": {**RECORD, "content": mark, "valid_from": "2024-01-01", "valid_until": "2024-01-01"},
        "record further field": {**RECORD, mark: mark},
        "record path, blank id": {**in_path, "id": " "},
        "record path, bad time": {**in_path, "created": "soon"},
        "record path, updated before created": {**in_path, "updated": "2023-01-01"},
        "record path, bad window": {**in_path, "valid_from": "2024-01-01", "valid_until": "2024-01-01"},
        "card id": marked_card,
        "card created": {"kind": "card", **CARD, "created": mark},
        "anchor id": {"kind": "anchor", "id": mark, "date": "2024-01-01"},
        "anchor date": {"kind": "anchor", "id": None, "date": mark},
        "expansion": {"kind": "expansion", "items": [{**CARD, "id": mark}], "est_tokens": 1, "truncated": False},
        "corpus": corpus,
        "file": {**file, "mtime_ns": 1},
        "file without a time": file,
        "error": error,
        "error stage": {**error, "message": "no", "stage": mark},
        "seal stage": {"kind": "seal", "stage": mark, "lines": 1, "xxh3": "0" * 16},
        "kind": {"kind": mark},
        "name": {mark: "record"},
    }


@pytest.mark.parametrize("form", ["as it stands", "escaped"])
@pytest.mark.parametrize("name", forged_lines(""))
def test_a_line_with_private_markup_is_refused_and_not_shown(name: str, form: str) -> None:
    for mark in MARKED:
        line = json.dumps(forged_lines(mark)[name], ensure_ascii=form == "escaped")
        if form == "escaped":
            line = line.replace("<", "\\u003c")
        with pytest.raises(CortexError) as caught:
            decode(line.encode() + b"\n", "line 1 of the stream")
        assert caught.value.code == "integrity_error"
        assert leaks(caught.value.message.encode()) == []


def test_no_stage_shows_a_forged_line_with_private_markup(stripped: bytes) -> None:
    head = stripped.splitlines(True)[0]
    lines = forged_lines(MARKED[0])
    for name in ("record content", "record path, bad time", "error", "anchor id", "seal stage"):
        stream = sealed(head, json.dumps(lines[name]).encode() + b"\n")
        for command in (("cortex-select", "--valid"), ("cortex-rank", COMMON), ("cortex-envelope", "status")):
            assert mute(run(*command, input=stream)).returncode == 4
        assert mute(run("cortex-card", "--unsealed", input=stream)).returncode == 4
    for name in ("file", "corpus"):
        stream = sealed(head if name == "file" else b"", json.dumps(lines[name]).encode() + b"\n")
        assert mute(run("cortex-strip", input=stream)).returncode == 4


def test_rows_that_differ_in_private_text_alone_are_duplicates_without_a_canary(tmp_path: Path) -> None:
    """Two rows of one ID, whose only difference was private."""
    rows = "".join(row("same", content=f"{COMMON} <private>{STEM}{at}</private>") for at in range(2))
    root = str(write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": rows}))
    done = mute(run("cortex", "status", "--memory-root", root))
    failure(done, 4, "integrity_error", "same", "KNOWLEDGE/a.jsonl:1", "KNOWLEDGE/a.jsonl:2")
