"""What refusals say: no text of a note or an item, no path but below the root, whatever goes wrong where.

Every way to be refused is tried with a word in every text that must not come out, below a root whose path tells
something.  In the judged modules each place that refuses must have been reached, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract import errors, limits
from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.grammar import count_positionals
from cortex_tools.domain import values
from cortex_tools.domain.capture import create_capture_envelope
from cortex_tools.evidence.benchmark import labels
from cortex_tools.files.reading import read_records
from cortex_tools.files.root import pin_root
from cortex_tools.files.walk import walk
from cortex_tools.governance import items, refusal
from cortex_tools.governance.refusal import Refusal
from cortex_tools.library import Runtime, create_cortex_adapter, run_cortex
from cortex_tools.stages import unwrap as cortex_unwrap
from cortex_tools.stages.write import check_type, parse_payload
from cortex_tools.streams import segments
from cortex_tools.streams.lines import decode
from cortex_tools.streams.segments import SegmentReader
from tests import canaries
from tests.canaries import STEM
from tests.fuzz_targets import (
    CAPTURE,
    CARD_LINE,
    CORPUS_LINE,
    ENVELOPE,
    ITEMS,
    LABEL,
    OTHER_LINES,
    RECORD_LINE,
    SEARCH,
    sealed,
    unwrap,
)
from tests.support import PACKAGE, note, row, write_corpus

# Folders and modules whose every refusal is to be reached.
JUDGED = ["contract/grammar.py", "domain", "driver/request.py", "evidence/benchmark/labels.py", "files/notes.py",
          "files/reading.py", "files/root.py", "files/walk.py", "governance/items.py", "streams"]  # fmt: skip
RAISERS = {"CortexError", "Refusal", "invalid_input", "integrity_error", "not_found", "invalid_item", "Unsound"}
# Words of notes: a message that holds one quotes a note.
TEXT = (STEM, "Loomtext", "Loomtitle", "Loomsource", "Loomtype")


class Heard:
    """Every refusal since the start: its words, and where in the package it was made."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.sites: set[tuple[str, int]] = set()

    def hear(self, message: str) -> None:
        self.messages.append(message)
        frame = sys._getframe(2)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if PACKAGE in path.parents and path.name not in ("errors.py", "refusal.py"):
                self.sites.add((str(path.relative_to(PACKAGE)), frame.f_lineno))
            frame = frame.f_back  # type: ignore[assignment]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    ears = Heard()

    def listening(kind: type[Exception], at: int) -> Callable[..., None]:
        original = kind.__init__

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            original(self, *arguments, **options)
            ears.hear(self.message)

        return init

    for kind in (errors.CortexError, refusal.Refusal):
        monkeypatch.setattr(kind, "__init__", listening(kind, 1))
    return ears


# --- what is tried -----------------------------------------------------------------------------------------------

BAD: list[Any] = [
    None, True, 1, -1, 1.5, 1e300, [], {}, "", " ", [STEM], {STEM: STEM}, [1], ["a", "a"], [" "],
    *(f"{STEM}{bad}" for bad in ("", "<private>x", "<privateer>", "\x01", "\ud800", "\n---\n", "<!--", "\nslug: x",
                                 "\n", "x" * 70_000, "2024-13-01", "</private>", ": [", "1")),
]  # fmt: skip


def spoiled(value: Any) -> Iterator[Any]:
    """`value` with one part of it replaced by something bad, left out, or with one more part."""
    yield from BAD
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: held for name, held in value.items() if name != key}
            for bad in spoiled(part):
                yield {**value, key: bad}
        yield {**value, "more": STEM}
    elif isinstance(value, list):
        yield value * 200
        for at, part in enumerate(value):
            for bad in spoiled(part):
                yield [*value[:at], bad, *value[at + 1 :]]


def refuse_json() -> None:
    """Items, labels, capture envelopes and lines that are spoiled in one part."""

    def tried(work: Callable[[Any], object], value: Any) -> None:
        try:
            work(value)
        except (CortexError, Refusal):
            pass
        except labels.Fault as fault:
            assert STEM not in str(fault), value

    for text in ITEMS:
        for bad in spoiled(json.loads(text)):
            tried(items.sanitize, bad)
    for bad in spoiled(json.loads(LABEL)):
        tried(lambda one: labels.parse(json.dumps(one).encode()), bad)
        tried(lambda one: labels.parse(json.dumps(one, ensure_ascii=False).encode("utf-8", "replace")), bad)
    for bad in spoiled(json.loads(CAPTURE)):
        tried(create_capture_envelope, bad)
    for line in (RECORD_LINE, CARD_LINE, CORPUS_LINE, *OTHER_LINES):
        for bad in spoiled(json.loads(line)):
            tried(lambda one: decode(json.dumps(one).encode(), "line 1 of the stream"), bad)
    for text in (ENVELOPE, SEARCH):
        for bad in spoiled(json.loads(text)):
            tried(unwrap, json.dumps(bad, ensure_ascii=False).encode("utf-8", "replace"))
    for text in (STEM, ENVELOPE[:-2], ENVELOPE * 2, RECORD_LINE, "[" * 100_000, ""):
        tried(unwrap, text.encode())
    for data in (b"\xff", STEM.encode(), b"[" * 100_000, b"x" * 300_000, b'{"a":NaN}', b'"zqx1"', b"{}"):
        for command in ("remember", "propose"):
            tried(lambda one, command=command: check_type(command, parse_payload(one)), data)


def refuse_arguments(root: str) -> None:
    at = ["--memory-root", root]
    for command in (
        [], ["zqx"], ["status", "x"], ["status", "--zqx"], ["status", "--page", "1"], ["status", *at, *at],
        ["status", "--memory-root"], ["status", "--adapter", STEM], ["status", "--adapter", ""],
        ["search", *at], ["search", "a", "b", *at], ["search", "!", *at], ["search", "ä", *at],
        ["search", f"{STEM} " * 65, *at], ["search", STEM * 800, *at], ["search", "\udcff", *at],
        ["search", "a", "--type", "\udcff", *at], ["search", "a", "--from", STEM, *at],
        *(["search", "Loomtext", option, STEM, *at] for option in ("--page", "--recency", "--to", "--max-nodes")),
        ["search", "Loomtext", "--recency", "1.7e308", *at], ["search", "Loomtext", "--expand", STEM, *at],
        ["timeline", *at], ["timeline", "--anchor", STEM, *at], ["timeline", "--anchor", "a", "--before", "101", *at],
        ["get", *at], ["get", *["a"] * 101, *at], ["get", "a", STEM, *at], ["rebuild", *at],
        ["remember", "{}", *at], ["remember", "{}", "--adapter", "claude", "--allow-write", *at],
        ["propose", "{}", "{}", "--adapter", "claude", "--allow-write", *at],
        ["remember", "\udcff", "--adapter", "claude", "--allow-write", *at],
    ):  # fmt: skip
        status, _ = run_cortex(command, Runtime())
        assert status in (3, 4, 5), command
    adapter: Any = create_cortex_adapter("claude", Runtime(memory_root=root))
    for outcome in (adapter.search(1), adapter.timeline(""), adapter.remember({1: STEM}),
                    adapter.remember(float("nan")),
                    adapter.remember({}, {"x": 1}), adapter.remember({}, {"allow_write": 1}), adapter.get(),
                    create_cortex_adapter(STEM).status(), create_cortex_adapter(1).status(),  # type: ignore[arg-type]
                    run_cortex(["status"], Runtime(memory_root=f"{STEM}\ud800")),
                    run_cortex("status")):  # fmt: skip
        assert outcome[0] in (4, 5)


def refuse_corpora(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every unsound corpus, by content, by what lies there and by size."""

    def tried(root: Path) -> None:
        for command in (["status"], ["search", "Loomtext"], ["get", "a"]):
            status, answer = run_cortex(command, Runtime(memory_root=root))
            assert (status, answer["error"]["code"]) == (4, "integrity_error"), answer

    sound: canaries.Files = {"KNOWLEDGE/a.md": text_note("a"), "KNOWLEDGE/sub/b.jsonl": row("b", content="Loomtext")}
    for name, files in canaries.broken().items():
        tried(write_corpus(folder / name, files))

    def linked(root: Path) -> None:
        (root / "KNOWLEDGE/l.md").symlink_to(folder / f"elsewhere-{STEM}")

    def knowledge_is_a_link(root: Path) -> None:
        (root / "KNOWLEDGE").rename(root / "K")
        (root / "KNOWLEDGE").symlink_to(root / "K")

    def knowledge_is_a_file(root: Path) -> None:
        (root / "KNOWLEDGE").rename(root / "K")
        (root / "KNOWLEDGE").write_text(STEM)

    def hot_is_a_folder(root: Path) -> None:
        (root / "A_MEMORY.md").mkdir()

    def pipe(root: Path) -> None:
        os.mkfifo(root / "KNOWLEDGE/p.md")

    def not_utf8(root: Path) -> None:
        (root / os.fsdecode(b"KNOWLEDGE/\xff.md")).write_text(STEM)

    def marked(root: Path) -> None:
        (root / f"KNOWLEDGE/<private>{STEM}.md").write_text(STEM)

    def locked(root: Path) -> None:
        os.chmod(root / "KNOWLEDGE/sub", 0)

    for spoil in (linked, knowledge_is_a_link, knowledge_is_a_file, hot_is_a_folder, pipe, not_utf8, marked, locked):
        root = write_corpus(folder / spoil.__name__, sound)
        try:
            spoil(root)
        except OSError:
            continue  # this file system takes no such name
        if spoil is not locked or os.geteuid():
            tried(root)
        os.chmod(next(root.rglob("sub")), 0o700)
    for limit, value in (("CORPUS_FILES", 1), ("FILE_BYTES", 10), ("CORPUS_BYTES", 100), ("RECORDS", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(limits, limit, value)
            tried(write_corpus(folder / limit, sound))
    for bad in ("missing", "file"):
        (folder / "file").write_text(STEM)
        tried(folder / bad)
    tried(folder / ("x" * 300))
    (folder / "<private>r").mkdir()
    tried(folder / "<private>r")


def text_note(id: str) -> str:
    return note(id, f"Loomtext <private>{STEM}1</private>", title="Loomtitle", source="Loomsource", type="Loomtype")


def refuse_streams(folder: Path) -> None:
    """Streams that are cut off, altered, doubled, or of different listings."""
    corpus = CORPUS_LINE.encode()
    part = corpus.replace(b'"parts":1', b'"parts":2')
    other = part.replace(b'"part":1', b'"part":2').replace(b"0123456789abcdef", b"fedcba9876543210")
    body = RECORD_LINE.replace('"loom"', '"Loomtext"').encode()
    error = OTHER_LINES[4].encode()
    whole = sealed(corpus + body)
    for data in (b"", whole[:-1] + b"x\n", corpus + body, corpus + whole, whole + whole.splitlines(True)[-1],
                 sealed(body),
                 whole.replace(b"Loomtext", b"Loomtexts"), whole * 2, sealed(part + body), sealed(part) + sealed(other),
                 sealed(part) * 2, sealed(corpus + error), body + b"x" * 99, whole + body,
                 corpus + b"x\n" + error, corpus + b"x\n" + body):  # fmt: skip
        for unsealed in (False, True):
            with open(folder / "stream", "wb+") as file:
                file.write(data)
                file.seek(0)
                try:
                    list(SegmentReader(file.fileno(), unsealed=unsealed))
                except CortexError:
                    pass


def refuse_the_rest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only a single call reaches."""
    monkeypatch.chdir(folder)

    def refused(work: Callable[[], object]) -> None:
        with pytest.raises((CortexError, Refusal)):
            work()

    files: canaries.Files = {
        "twice.jsonl": f"{LABEL}\n{LABEL}\n",
        "spoiled.jsonl": LABEL.replace('"id":"l"', f'"{STEM}":1'),
        "query.jsonl": LABEL.replace("loom", f"{STEM} " * 65),
        "empty.jsonl": "\n",
        "large.jsonl": STEM * limits.LABEL_FILE_BYTES,
        "folder/x": "",
        "many.jsonl": f"{LABEL}\n" * 2,
        "good.jsonl": LABEL,
        "changed/KNOWLEDGE/a.md": text_note("a"),
    }
    write_corpus(folder, files)
    for name in ("missing", "folder", "twice.jsonl", "spoiled.jsonl", "query.jsonl", "empty.jsonl", "large.jsonl"):
        refused(lambda name=name: labels.read(name))
    with monkeypatch.context() as patch:
        patch.setattr(limits, "LABELS", 1)
        refused(lambda: labels.read("many.jsonl"))
    refused(lambda: labels.read("good.jsonl").check_ids([]))
    refused(lambda: values.query_in_words("!"))
    refused(lambda: count_positionals(EXECUTABLES["cortex-through"], []))
    entry = json.loads(ITEMS[3])
    refused(lambda: items.sanitize({**entry, "entries": []}))
    refused(lambda: items.sanitize({**entry, "content": "RULE: " + STEM * 200}))
    root = pin_root(b"changed")
    (listed,) = walk(root)
    (folder / "changed/KNOWLEDGE/a.md").write_text(text_note("ab"))
    refused(lambda: list(read_records(root.descriptor, [listed])))
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir_and(lambda: (folder / "changed/KNOWLEDGE/new.md").write_text("")))
        refused(lambda: walk(root))
    write_corpus(folder / "beside", {"a.md": text_note("a")})
    beside = pin_root(b"beside")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir_and(lambda: (folder / "beside/KNOWLEDGE").mkdir(exist_ok=True)))
        refused(lambda: walk(beside))
    beside.close()
    for fault in (PermissionError(13, "denied", STEM), FileNotFoundError(2, "gone", STEM), RecursionError(STEM)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", raising(fault))
            refused(lambda: walk(root))
    with monkeypatch.context() as patch:
        patch.setattr(limits, "CORPUS_FILES", 0)
        refused(lambda: walk(root))
    root.close()
    with monkeypatch.context() as patch:
        patch.setattr(segments, "LINE_BYTES", 5)
        (folder / "stream").write_bytes(sealed(CORPUS_LINE.encode()))
        with open(folder / "stream", "rb") as file:
            refused(lambda: list(SegmentReader(file.fileno())))
    descriptor = os.open(folder / "stream", os.O_WRONLY)
    refused(lambda: list(SegmentReader(descriptor)))
    refused(lambda: cortex_unwrap.run(segments.SegmentWriter("cortex-unwrap"), descriptor))
    os.close(descriptor)
    bad = os.path.join(os.fsencode(folder), b"\xff")
    try:
        os.mkdir(bad)
    except OSError:
        return  # this file system takes no such name
    refused(lambda: pin_root(bad))


def raising(fault: Exception) -> Callable[..., Any]:
    def work(*_: Any) -> Any:
        raise fault

    return work


def scandir_and(change: Callable[[], object]) -> Callable[..., Any]:
    """os.scandir, and a change of the corpus as soon as it has been called."""
    original = os.scandir

    def listing(descriptor: int) -> Any:
        found = original(descriptor)
        change()
        return found

    return listing


# --- what is heard ---------------------------------------------------------------------------------------------------


def sites() -> dict[tuple[str, str, int, int], str]:
    """Every place in the judged modules that makes a refusal: file, function, first and last line."""
    found = {}
    for judged in JUDGED:
        top = PACKAGE / judged
        for path in [top] if top.suffix else sorted(top.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    for call in ast.walk(function):
                        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in RAISERS:
                            name = str(path.relative_to(PACKAGE))
                            found[(name, function.name, call.lineno, call.end_lineno or call.lineno)] = call.func.id
    return found


def test_no_refusal_quotes_a_note_or_a_path_outside_the_root(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling = tmp_path / f"telling-{STEM}"
    root = write_corpus(telling / "sound", {"KNOWLEDGE/a.md": text_note("a")})
    refuse_json()
    refuse_corpora(telling, monkeypatch)
    refuse_streams(telling)
    refuse_the_rest(telling, monkeypatch)
    for message in heard.messages:
        if not message.startswith("memory root "):  # it is named as it was asked for
            assert "telling" not in message and str(tmp_path) not in message, message
            assert not [word for word in TEXT if word in message], message
        assert message.strip() and "\n" not in message and "Traceback" not in message
    heard.messages.clear()
    refuse_arguments(str(root))
    for message in heard.messages:  # what was asked for may be named, a note may not
        assert "telling" not in message and not [word for word in TEXT[1:] if word in message], message
    missed = [
        site
        for site in sites()
        if not any(path == site[0] and site[2] <= line <= site[3] for path, line in heard.sites)
    ]
    assert not missed, "\n".join(map(str, missed))
