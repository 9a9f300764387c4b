"""cortex-check: every kind of integrity problem of the contract, planted, found once, and agreed upon by the commands.

`FAULTS` walks sections 2, 5, 6 and 14 rule by rule.  Each stands in a file of its own, so that all but those
about the corpus as a whole can be planted in one corpus.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_tools.contract import limits
from cortex_tools.contract.errors import Unsound
from cortex_tools.evidence import checking
from cortex_tools.evidence.checking import inspect
from cortex_tools.files.notes import NoteReader
from cortex_tools.library import Runtime, run_cortex
from tests.golden import cases
from tests.support import environment, failure, note, row, run, shell, write_corpus

Plant = Callable[[Path], object]
TIMESTAMP = "YYYY-MM-DD"
FIX_ROW = "remove the line"


class Fault(NamedTuple):
    """What to plant, where it is to be found (`file:line`, or the file alone), in which words, how to be mended."""

    plant: Plant
    place: str
    what: str
    mend: str


def checked(root: Path) -> dict[str, Any]:
    return inspect(os.fsencode(root)).as_dict()


def is_refused(root: Path) -> bool:
    """Whether `cortex status` refuses the corpus as unsound."""
    status, body = run_cortex(["status"], Runtime(memory_root=root))
    assert status in (0, 4), body
    assert status == 0 or body["error"]["code"] == "integrity_error", body
    return status == 4


def place_of(entry: dict[str, Any]) -> str:
    return (entry["file"] or "") + (f":{entry['line']}" if entry["line"] else "")


def files(**contents: str | bytes) -> Plant:
    """Plants files below KNOWLEDGE; `__` stands for the dot before the ending."""
    named = {f"KNOWLEDGE/{name.replace('__', '.')}": content for name, content in contents.items()}
    return lambda root: write_corpus(root, named)


def md(name: str, head: str, what: str, mend: str, line: int = 3) -> Fault:
    """A note whose third line is the one at fault."""
    text = f"---\nid: {name}\n{head}\n---\nSECRET\n"
    return Fault(files(**{f"{name}__md": text}), f"KNOWLEDGE/{name}.md:{line}", what, mend)


def rows(name: str, second: str | bytes, what: str, mend: str = FIX_ROW) -> Fault:
    """A file of three rows of which the second is at fault."""
    middle = second.encode() if isinstance(second, str) else second
    content = row(f"{name}-1").encode() + middle.rstrip(b"\n") + b"\n" + row(f"{name}-3").encode()
    return Fault(files(**{f"{name}__jsonl": content}), f"KNOWLEDGE/{name}.jsonl:2", what, mend)


def changed(name: str, **fields: Any) -> str:
    return row(name, content="SECRET", **fields)


def without(name: str, field: str) -> str:
    value = json.loads(changed(name))
    del value[field]
    return json.dumps(value)


def link(name: str, target: str) -> Plant:
    def plant(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)

    return plant


def fifo(name: str) -> Plant:
    def plant(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)

    return plant


def touch(name: bytes, size: int = 0) -> Plant:
    def plant(root: Path) -> None:
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, size)

    return plant


REMOVE, RENAME = "remove it", "rename it"
LONE = changed("r31").replace("SECRET", "\\ud800")
FAULTS: dict[str, Fault] = {
    # Section 5: what the walk refuses.
    "link to a note": Fault(link("KNOWLEDGE/l1.md", "0.md"), "KNOWLEDGE/l1.md", "symbolic link", REMOVE),
    "link of any extension": Fault(link("KNOWLEDGE/l2.txt", "0.md"), "KNOWLEDGE/l2.txt", "symbolic link", REMOVE),
    "dangling link": Fault(link("KNOWLEDGE/l3", "nowhere"), "KNOWLEDGE/l3", "symbolic link", REMOVE),
    "link to a folder": Fault(link("KNOWLEDGE/d/l4", "/"), "KNOWLEDGE/d/l4", "symbolic link", REMOVE),
    "hot file a link": Fault(link("L_MEMORY.md", "nowhere"), "L_MEMORY.md", "symbolic link", REMOVE),
    "MEMORY a link": Fault(link("MEMORY", "nowhere"), "MEMORY", "symbolic link", REMOVE),
    "FIFO": Fault(fifo("KNOWLEDGE/f1.md"), "KNOWLEDGE/f1.md", "no regular file", "move it away"),
    "FIFO for rows": Fault(fifo("KNOWLEDGE/f2.jsonl"), "KNOWLEDGE/f2.jsonl", "no regular file", "move it away"),
    "hot folder": Fault(touch(b"F_MEMORY.md/a.txt"), "F_MEMORY.md", "no regular file", "move it away"),
    "name not UTF-8": Fault(touch(b"KNOWLEDGE/n1\xff.md"), "KNOWLEDGE/n1\ufffd.md", "not UTF-8", RENAME),
    "name not UTF-8, no note": Fault(touch(b"KNOWLEDGE/n2\xff.txt"), "KNOWLEDGE/n2\ufffd.txt", "not UTF-8", RENAME),
    "folder name not UTF-8": Fault(touch(b"KNOWLEDGE/n3\xff/a.md"), "KNOWLEDGE/n3\ufffd", "not UTF-8", RENAME),
    "hot name not UTF-8": Fault(touch(b"n4\xff_MEMORY.md"), "n4\ufffd_MEMORY.md", "not UTF-8", RENAME),
    "name with a span": Fault(touch(b"KNOWLEDGE/n5<private>SECRET.md"), "KNOWLEDGE/n5", "private markup", RENAME),
    "folder name with a span": Fault(touch(b"KNOWLEDGE/n6<privateer/a"), "KNOWLEDGE/n6", "private markup", RENAME),
    "file over 8 MiB": Fault(
        touch(b"KNOWLEDGE/big.md", limits.FILE_BYTES + 1), "KNOWLEDGE/big.md", f"{limits.FILE_BYTES + 1}", "split it"
    ),
    # Section 5: what the reading refuses.
    "control": md("c1", "x: a\x07b", "control character", REMOVE),
    "NUL": md("c2", "x: a\0b", "control character", REMOVE),
    "DEL": md("c3", "x: a\x7fb", "control character", REMOVE),
    "C1 control": md("c4", "x: a\x85b", "control character", REMOVE),
    "control in a span": md("c5", "x: <private>\x1bSECRET</private>", "control character", REMOVE),
    "control in the third of many lines": Fault(
        files(c6__md="a\nb\n\x01\nc\n"), "KNOWLEDGE/c6.md:3", "control character", REMOVE
    ),
    "not UTF-8": Fault(
        files(u1__md=b"a\ncaf\xe9 SECRET"), "KNOWLEDGE/u1.md:2", "not UTF-8 at byte 5", "save it as UTF-8"
    ),
    "overlong form": Fault(files(u2__md=b"\xc1\x81"), "KNOWLEDGE/u2.md:1", "not UTF-8", "save it"),
    "encoded surrogate": Fault(files(u3__md=b"\n\n\xed\xa0\x80"), "KNOWLEDGE/u3.md:3", "not UTF-8", "save it"),
    "cut-off sequence": Fault(files(u4__md=b"caf\xc3"), "KNOWLEDGE/u4.md:1", "not UTF-8", "save it"),
    # Section 6: notes.
    "a template's date": md("t1", "created: {{date}}", "created is no timestamp but a template's place", TIMESTAMP),
    "a template's date under another name": md("t2", "ts: '{{date}}'", "created is no timestamp but", TIMESTAMP),
    "created no date": md("t3", "created: yesterday", "created is no timestamp", TIMESTAMP),
    "no such day": md("t4", "created: 2023-02-29", "created is no timestamp", TIMESTAMP),
    "year 99": md("t5", "created: 0099-01-01", "created is no timestamp", TIMESTAMP),
    "no zone": md("t6", "created: 2024-01-01T10:00", "created is no timestamp", TIMESTAMP),
    "second 60": md("t7", "created: 2024-01-01T10:00:60Z", "created is no timestamp", TIMESTAMP),
    "digits of another script": md("t8", "created: 202\u0664-01-01", "created is no timestamp", TIMESTAMP),
    "updated no date": md("t9", "last_updated: x", "updated is no timestamp", TIMESTAMP),
    "updated before created": md(
        "ta", "created: 2024-01-02\nupdated: 2024-01-01", "updated lies before created", "correct one", line=4
    ),
    "valid_from no date": md("tb", "valid_from: soon", "valid_from is no timestamp", TIMESTAMP),
    "valid_until no date": md("tc", "valid_until: never", "valid_until is no timestamp", TIMESTAMP),
    "window inverted": md(
        "td", "valid_from: 2024-02-01\nvalid_until: 2024-01-01", "valid_from does not lie", "correct one", line=4
    ),
    "window empty": md(
        "te", "valid_until: 2024-01-01\nvalid_from: 2024-01-01", "valid_from does not lie", "correct one"
    ),
    "blank ID": Fault(
        files(b1__md='---\ntitle: x\nid: " "\n---\n'), "KNOWLEDGE/b1.md:3", "id is blank", "give the record an ID"
    ),
    "the line of a field after a span": Fault(
        files(b2__md="<private>a\nb\n</private>---\nid: b2\ncreated: x\n---\n"),
        "KNOWLEDGE/b2.md:5",
        "created is no timestamp",
        TIMESTAMP,
    ),
    "the last of a name": Fault(
        files(b3__md="---\r\nid: b3\r\ndate: 2024-01-01\r\ndate: x\r\n---\r\n"),
        "KNOWLEDGE/b3.md:4",
        "created is no timestamp",
        TIMESTAMP,
    ),
    # Section 6: rows.
    "no JSON": rows("r1", "SECRET", "not one valid JSON value"),
    "two values": rows("r2", changed("r2").strip() + " {}", "not one valid JSON value"),
    "NaN": rows("r3", changed("r3").replace('"SECRET"', "NaN"), "not one valid JSON value"),
    "huge number": rows("r4", changed("r4").replace('"SECRET"', "9" * 5000), "not one valid JSON value|content"),
    "array": rows("r5", '["SECRET"]', "no JSON object"),
    "null": rows("r6", "null", "no JSON object"),
    "too deep": rows("r7", "[" * 100_000, "nests too deeply", "one flat JSON object"),
    "a line that is one span": rows("r8", "<private>SECRET</private>", "not one valid JSON value"),
    **{
        f"{name} missing": rows(f"m-{name}", without(f"m-{name}", name), f"{name} is missing")
        for name in ("id", "type", "title", "created", "updated", "content")
    },
    "title blank": rows("r9", changed("r9", title=" \u3000"), "title is not a string with something in it"),
    "ID a number": rows("r10", changed("r10").replace('"r10"', "7"), "id is not a string"),
    "created a number": rows("r11", changed("r11", created=2024), "created is not a string"),
    "another field": rows("r12", changed("r12", SECRET="SECRET"), "a field is not allowed", "a row has only"),
    "source_kind blank": rows("r13", changed("r13", source_kind=""), "source_kind is not a string"),
    "source no string": rows("r14", changed("r14", source=None), "source is not a string"),
    "source_session no string": rows("r15", changed("r15", source_session=1), "source_session is neither"),
    "related no list": rows("r16", changed("r16", related="SECRET"), "related is no list"),
    "a blank link": rows("r17", changed("r17", related=["a", "", "b", 3]), "a link in related is not a string"),
    "valid_from no string": rows("r18", changed("r18", valid_from=1), "valid_from is neither", TIMESTAMP),
    "valid_until no time": rows("r19", changed("r19", valid_until="x"), "valid_until is neither", TIMESTAMP),
    "a row's template": rows("r20", changed("r20", created="{{date}}"), "created is no timestamp but", TIMESTAMP),
    "a row's updated": rows("r21", changed("r21", updated="x"), "updated is no timestamp", TIMESTAMP),
    "a row's order": rows("r22", changed("r22", updated="2023-01-01"), "updated lies before created", "correct one"),
    "a row's window": rows(
        "r23", changed("r23", valid_from="2024-02-01", valid_until="2024-01-01"), "valid_from does not lie", "correct"
    ),
    "an ID that is all private": rows(
        "r24", changed("\\u003cprivate>x").replace("\\\\u", "\\u"), "id is blank", "give the record an ID"
    ),
    "a control in a row": rows("r25", changed("r25").replace("SECRET", "SEC\x07RET"), "control character", REMOVE),
    "a C1 control in a row": rows("r26", changed("r26", title="T\x85"), "control character", REMOVE),
    "an escaped control": rows("r27", changed("r27").replace("SECRET", "\\u0007"), "content holds a control", REMOVE),
    "a control in a row's span": rows(
        "r28", "<private>\x1bSECRET</private>" + changed("r28"), "control character", REMOVE
    ),
    "a row not UTF-8": rows("r29", changed("r29").encode().replace(b"SECRET", b"\xff"), "not UTF-8", "save it"),
    "a lone surrogate": rows("r31", LONE, "content holds a lone surrogate", REMOVE),
    "a lone surrogate in a link": rows(
        "r32", changed("r32", related=["a", "R"]).replace('"R"', '"\\udfff"'), "related holds a lone surrogate", REMOVE
    ),
    # Section 6: IDs are unique.
    "an ID in two notes": Fault(
        files(i1__md=note("twice-1"), i2__md=note("twice-1")),
        "KNOWLEDGE/i2.md:2",
        "the ID twice-1 stands in KNOWLEDGE/i1.md:2 already",
        "another ID",
    ),
    "an ID in two rows": Fault(
        files(i3__jsonl=row("twice-2") + row("once") + row("twice-2")),
        "KNOWLEDGE/i3.jsonl:3",
        "the ID twice-2 stands in KNOWLEDGE/i3.jsonl:1 already",
        "another ID",
    ),
    "an ID in a note and a row": Fault(
        files(i4__jsonl="\n" + row("twice-3"), i5__md="---\ntitle: x\nid: twice-3\n---\n"),
        "KNOWLEDGE/i5.md:3",
        "the ID twice-3 stands in KNOWLEDGE/i4.jsonl:2 already",
        "another ID",
    ),
}


def sound_part(root: Path) -> Path:
    return write_corpus(root, {"KNOWLEDGE/0.md": note("sound"), "KNOWLEDGE/0.jsonl": row("sound-row")})


def can_plant(fault: Fault, root: Path) -> bool:
    """Plants it; False where the file system takes no such name."""
    try:
        fault.plant(root)
    except OSError as error:
        if error.errno != errno.EILSEQ:
            raise
        return False
    return True


def matches(entry: dict[str, Any], fault: Fault) -> bool:
    found = any(what in entry["what"] for what in fault.what.split("|"))
    return found and place_of(entry) == fault.place and fault.mend in (entry["mend"] or "")


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_alone_is_found_and_refused(tmp_path: Path, kind: str) -> None:
    fault = FAULTS[kind]
    sound_part(tmp_path)
    assert not is_refused(tmp_path) and checked(tmp_path)["sound"]
    if not can_plant(fault, tmp_path):
        pytest.skip("this file system takes no name that is not UTF-8")
    report = checked(tmp_path)
    assert [matches(entry, fault) for entry in report["problems"]] == [True], report["problems"]
    assert report["sound"] is False and is_refused(tmp_path)
    assert "SECRET" not in json.dumps(report)


def test_all_faults_at_once_are_each_listed_once(tmp_path: Path) -> None:
    sound_part(tmp_path)
    planted = {kind: fault for kind, fault in FAULTS.items() if can_plant(fault, tmp_path)}
    assert len(planted) > 80
    done = run("cortex-check", "--json", "--memory-root", tmp_path)
    assert (done.returncode, done.stderr) == (4, b"") and b"SECRET" not in done.stdout
    problems = json.loads(done.stdout)["problems"]
    wrong = {kind: sum(matches(entry, fault) for entry in problems) for kind, fault in planted.items()}
    assert {kind: count for kind, count in wrong.items() if count != 1} == {}
    assert len(problems) == len(planted), [e for e in problems if not any(matches(e, f) for f in planted.values())]
    table = run("cortex-check", "--memory-root", tmp_path)
    assert table.returncode == 4 and b"SECRET" not in table.stdout and table.stderr == b""
    assert table.stdout.startswith(b"NOT SOUND: ")
    words = " ".join(table.stdout.decode().split())
    assert f"{len(planted)} problems" in words
    failure(run("cortex", "status", "--memory-root", tmp_path), 4, "integrity_error")


# --- the corpus as a whole -------------------------------------------------------------------------------------


def moved(then: Plant) -> Plant:
    def plant(root: Path) -> None:
        (root / "KNOWLEDGE").rename(root / "real")
        then(root)

    return plant


WHOLE: dict[str, Fault] = {
    "KNOWLEDGE a link": Fault(moved(link("KNOWLEDGE", "real")), "KNOWLEDGE", "symbolic link", REMOVE),
    "KNOWLEDGE a file": Fault(moved(touch(b"KNOWLEDGE")), "KNOWLEDGE", "no folder", "move it away"),
    "MEMORY a link": Fault(moved(link("MEMORY", "real")), "MEMORY", "symbolic link", REMOVE),
    "MEMORY/KNOWLEDGE a link": Fault(
        moved(link("MEMORY/KNOWLEDGE", "../real")), "MEMORY/KNOWLEDGE", "symbolic link", REMOVE
    ),
    "MEMORY/KNOWLEDGE a file": Fault(
        moved(touch(b"MEMORY/KNOWLEDGE")), "MEMORY/KNOWLEDGE", "no folder", "move it away"
    ),
    "too many files": Fault(
        files(**{f"many{number}__md": "x" for number in range(4)}), "", "more than 4 files", "move some away"
    ),
    "too many bytes": Fault(files(heavy__md="x" * 5000), "", "more than 4000", "move some notes away"),
    "too many records": Fault(
        files(long__jsonl="".join(row(f"long{number}") for number in range(12))),
        "",
        "more than 10 records",
        "move some",
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_faults_of_the_corpus_as_a_whole(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CORPUS_FILES", 4)
    monkeypatch.setattr(limits, "CORPUS_BYTES", 4000)
    monkeypatch.setattr(limits, "RECORDS", 10)
    sound_part(tmp_path)
    assert checked(tmp_path)["sound"]
    WHOLE[kind].plant(tmp_path)
    report = checked(tmp_path)
    assert [matches(entry, WHOLE[kind]) for entry in report["problems"]] == [True], report["problems"]
    assert is_refused(tmp_path)


@pytest.mark.parametrize("kind", ["gone", "file", "dangling", "loop", "name\udcff", "<private>SECRET"])
def test_a_root_that_is_none(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("name\udcff", "<private>SECRET"):
        (tmp_path / name).mkdir()
    done = run("cortex-check", "--json", "--memory-root", tmp_path / kind)
    report = json.loads(done.stdout)
    assert done.returncode == 4 and report["root"] is None and b"SECRET" not in done.stdout
    assert [(entry["file"], "memory root" in entry["what"]) for entry in report["problems"]] == [(None, True)]
    assert report["problems"][0]["mend"] and is_refused(tmp_path / kind)


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permission is denied to root, too, by denying it here."""
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), "KNOWLEDGE/d/b.md": note("b"), "KNOWLEDGE/e.md": "\x07"})
    real = os.open

    def denied(path: Any, *rest: Any, **options: Any) -> int:
        if path in (b"a.md", b"d"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", denied)
    places = [(place_of(entry), entry["what"]) for entry in checked(tmp_path)["problems"]]
    assert places == [
        ("KNOWLEDGE/d", "cannot be read: Permission denied"),
        ("KNOWLEDGE/a.md", "cannot be read: Permission denied"),
        ("KNOWLEDGE/e.md:1", "holds a control character"),
    ]
    assert is_refused(tmp_path)


def test_a_corpus_that_changes_is_read_afresh_and_then_said_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_part(tmp_path)
    real, calls = NoteReader.read, 0

    def changing(reader: NoteReader, file: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls <= often:
            raise Unsound(file.path, "changed after it was listed", "try again", changed=True)
        return real(reader, file)

    monkeypatch.setattr(NoteReader, "read", changing)
    often = 2
    assert checked(tmp_path)["sound"]
    often, calls = 99, 0
    report = checked(tmp_path)
    assert calls == 1 + limits.FRESH_TRIES
    assert [entry["what"] for entry in report["problems"]] == ["changed after it was listed"]


# --- many in one file, and no nonsense in their wake -----------------------------------------------------------


def test_many_faults_in_one_file_are_all_listed(tmp_path: Path) -> None:
    first = changed("one", created="{{date}}", updated="{{date}}", valid_from="2024-02-01", valid_until="2024-01-01")
    write_corpus(
        tmp_path,
        {
            "KNOWLEDGE/a.jsonl": first + "no row\n\n[]\n" + changed("one", title=1, SECRET=1, related=[1], source=""),
            "KNOWLEDGE/b.md": "---\nid: one\ncreated: {{date}}\nupdated: {{date}}\n"
            "valid_from: x\nvalid_until: y\n---\n\x07",
        },
    )
    found = sorted((place_of(entry), entry["what"]) for entry in checked(tmp_path)["problems"])
    template = "is no timestamp but a template's place for one"
    assert found == sorted(
        [
            ("KNOWLEDGE/a.jsonl:1", f"created {template}"),
            ("KNOWLEDGE/a.jsonl:1", f"updated {template}"),
            ("KNOWLEDGE/a.jsonl:1", "valid_from does not lie before valid_until"),
            ("KNOWLEDGE/a.jsonl:2", "not one valid JSON value"),
            ("KNOWLEDGE/a.jsonl:4", "the row is no JSON object"),
            ("KNOWLEDGE/a.jsonl:5", "title is not a string with something in it"),
            ("KNOWLEDGE/a.jsonl:5", "a field is not allowed"),
            ("KNOWLEDGE/a.jsonl:5", "source is not a string with something in it"),
            ("KNOWLEDGE/a.jsonl:5", "a link in related is not a string with something in it"),
            ("KNOWLEDGE/a.jsonl:5", "the ID one stands in KNOWLEDGE/a.jsonl:1 already"),
            ("KNOWLEDGE/b.md:2", "the ID one stands in KNOWLEDGE/a.jsonl:1 already"),
            ("KNOWLEDGE/b.md:3", f"created {template}"),
            ("KNOWLEDGE/b.md:4", f"updated {template}"),
            ("KNOWLEDGE/b.md:5", "valid_from is no timestamp"),
            ("KNOWLEDGE/b.md:6", "valid_until is no timestamp"),
            ("KNOWLEDGE/b.md:8", "holds a control character"),
        ]
    )


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("---\nid: a\ncreated: x\nupdated: 1970-01-01\n---\n", 1),  # not also "before created"
        ("---\nid: a\ncreated: x\n---\n", 1),  # updated takes its value from created
        ("\ufeff---\n---\n" + "a\x07\n" * 3, 3),  # each has a line to be found in
        ("x\n".encode("utf-16") * 50, 2),  # no text at all: two things to say, not a hundred
        (bytes(range(256)) * 20, 2),
    ],
)
def test_one_fault_does_not_make_others_up(tmp_path: Path, content: str | bytes, problems: int) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": content})
    assert len(checked(tmp_path)["problems"]) == problems


def test_what_is_beyond_the_bounds_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECK_ENTRIES_OF_FILE", 3)
    monkeypatch.setattr(limits, "CHECK_ENTRIES", 8)
    monkeypatch.setattr(limits, "CORPUS_BYTES", 10)
    write_corpus(tmp_path, {f"KNOWLEDGE/{name}.jsonl": "no row\n" * 5 for name in "abcd"})
    report = checked(tmp_path)
    assert len(report["problems"]) == 8 and report["unlisted"] == {"problems": 4 * 5 + 1 - 8, "notices": 0}
    assert report["problems"][0]["file"] is None  # the size of all of it, not crowded out
    assert [place_of(entry) for entry in report["problems"][1:5]] == [
        *(f"KNOWLEDGE/a.jsonl:{line}" for line in (1, 2, 3)),
        "KNOWLEDGE/b.jsonl:1",
    ]


def test_the_table_says_how_many_more_there_are(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.jsonl": "no row\n" * (limits.CHECK_ENTRIES_OF_FILE + 7)})
    done = run("cortex-check", "--memory-root", tmp_path)
    assert done.returncode == 4 and b"\nand 7 problems more, counted and not listed\n" in done.stdout


# --- notices ---------------------------------------------------------------------------------------------------

HIDDEN = "SECRET"
NOTICES: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {
    "a span": ({"a.md": f"a\n<private>{HIDDEN}</private>\n"}, [("a.md:2-2", "span was removed")]),
    "a span over lines": ({"a.md": f"<private>\n{HIDDEN}\n</private>"}, [("a.md:1-3", "span was removed")]),
    "a closer": ({"a.md": "a\n\n</private> b"}, [("a.md:3-3", "nothing opens")]),
    "a component": (
        {"a.md": f"a\n\n<PrivateRoute> {HIDDEN}\n{HIDDEN}"},
        [("a.md:3-3", "cut off from here: malformed opener")],
    ),
    "never closed": ({"a.md": f"a\n<private> {HIDDEN}\n"}, [("a.md:2-2", "cut off from here: never closed")]),
    "kept open by a malformed opener": (
        {"a.md": f"<private>\n<privateer>{HIDDEN}</private>"},
        [("a.md:1-1", "never closed"), ("a.md:2-2", "malformed opener")],
    ),
    "left by a removal": (
        {"a.md": f"\n<pri<private>\n</private>vate>{HIDDEN}"},
        [("a.md:2-2", "a tag forms"), ("a.md:2-3", "span was removed")],
    ),
    "a span in a row": (
        {"a.jsonl": row("a") + row("b", content=f"x <private>{HIDDEN}</private>")},
        [("a.jsonl:2-2", "span was removed")],
    ),
    "a span in an escape": (
        {"a.jsonl": row("a", content="x <private>y").replace("<", "\\u003c")},
        [("a.jsonl:1-1", "never closed")],
    ),
    "front matter without an end": ({"a.md": "---\nid: a\n\nbody"}, [("a.md:1-1", "front matter is never closed")]),
    "no date": ({"a.md": "---\nid: a\n---\n"}, [("a.md:1-1", "no created, date or ts")]),
    "a name again": (
        {"a.md": "---\nid: a\ncreated: 2024-01-01\nid: b\n---\n"},
        [("a.md:4-4", "id stands in the front matter again")],
    ),
    "a field again": (
        {"a.jsonl": row("a").replace('"type"', '"type":"SECRET","type"')},
        [("a.jsonl:1-1", "a key stands twice")],
    ),
    "a control in a name": ({"a\x1b[2J.md": note("a")}, [("a\x1b[2J.md", "name holds a control")]),
    "blanks and marks in a name": ({"a\u3000b\u200d\u0301.md": note("a")}, []),
    "nothing": ({"a.md": note("a", "a <b> &lt;private&gt; --- a < b"), "b.md": "# no head\n---\n"}, []),
}


@pytest.mark.parametrize("case", NOTICES)
def test_notices_tell_the_place_and_leave_the_corpus_sound(tmp_path: Path, case: str) -> None:
    contents, wanted = NOTICES[case]
    write_corpus(tmp_path / "KNOWLEDGE", dict(contents))
    report = checked(tmp_path)
    assert report["sound"] is True and not is_refused(tmp_path)
    found = []
    for entry in report["notices"]:
        lines = "" if entry["line"] is None else f":{entry['line']}-{entry['last_line']}"
        found.append((entry["file"].removeprefix("KNOWLEDGE/") + lines, entry["what"]))
    assert len(found) == len(wanted), found
    for (place, what), (wanted_place, words) in zip(found, wanted, strict=True):
        assert place == wanted_place and words in what
    assert HIDDEN not in json.dumps(report)


def test_a_second_folder_of_notes_that_is_not_read_is_told(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), "MEMORY/KNOWLEDGE/b.md": note("b")})
    report = checked(tmp_path)
    assert report["sound"] and [entry["file"] for entry in report["notices"]] == ["MEMORY/KNOWLEDGE"]


# --- agreement with the commands -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases.NAMES)
def test_sound_is_what_status_answers_of_the_golden_corpora(name: str, tmp_path: Path) -> None:
    cases.materialise(cases.load(name)["corpus"], tmp_path / "root")
    for root in (tmp_path / "root", tmp_path / "root" / "KNOWLEDGE", tmp_path / "root" / "a.md"):
        assert checked(root)["sound"] is not is_refused(root)


LINES = st.sampled_from(
    [
        *("---", "---", "id: a", "id: b", 'id: " "', "created: 2024-01-01", "created: x", "date: {{date}}"),
        *("updated: 2023-01-01", "updated: 2025-01-01", "valid_from: 2024-06-01", "valid_until: 2024-01-01"),
        *("<private>", "</private>", "<privateer>", "body", "", "a\x07", "\ufeff", "slug: x", "ts: 2024-13-01"),
        *(row("a").strip(), row("b", created="x").strip(), row("c").strip(), "{}", "[]", "null", '{"id":1}'),
        *(row("d", content="\\u0007").strip().replace("\\\\", "\\"), "<private>" + row("e").strip() + "</private>"),
        row("f", valid_from="2024-02-01", valid_until="2024-01-01").strip(),
    ]
)
CONTENT = st.one_of(
    st.tuples(st.lists(LINES, max_size=7), st.sampled_from(["\n", "\r\n", "\r"])).map(
        lambda drawn: drawn[1].join(drawn[0]).encode()
    ),
    st.binary(max_size=6),
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["a.md", "b.md", "c.jsonl", "d/e.jsonl"]), CONTENT), max_size=4))
def test_sound_is_what_status_answers_of_made_up_corpora(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[str, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("made-up")
    write_corpus(root, {f"KNOWLEDGE/{name}": content for name, content in contents})
    report = checked(root)
    assert report["sound"] is not is_refused(root)
    if report["sound"]:
        _, body = run_cortex(["status"], Runtime(memory_root=root))
        assert report["records"] == body["data"]["canonical"]["records"]


def test_the_first_problem_of_the_commands_is_among_those_listed(tmp_path: Path) -> None:
    """They say the same of it, since it is the same check that says it."""
    for fault in FAULTS.values():
        can_plant(fault, tmp_path)
    _, body = run_cortex(["status"], Runtime(memory_root=tmp_path))
    message = body["error"]["message"]
    said = [f"{entry['file']}: {entry['what']}; {entry['mend']}" for entry in checked(tmp_path)["problems"]]
    assert message in said


# --- the executable --------------------------------------------------------------------------------------------


def test_a_sound_corpus(sample: Path) -> None:
    done = run("cortex-check", env=environment(CORTEX_MEMORY_ROOT=str(sample)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"sound: 35 notes, 45 records, 0 problems, 7 notices\n")
    done = run("cortex-check", "--json", "--memory-root", sample)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 1
    assert list(report) == ["root", "sound", "notes", "records", "problems", "notices", "unlisted"]
    assert (report["root"], report["sound"], report["problems"]) == (str(sample.resolve()), True, [])


def test_a_file_name_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    for name in ("a\x1b[2J", "b\n", "c\u202e", "d\u009b1m"):
        write_corpus(tmp_path, {f"KNOWLEDGE/{name}.md": "---\nid: same\n---\n\x07"})
    for arguments in ((), ("--json",)):
        done = run("cortex-check", *arguments, "--memory-root", tmp_path)
        text = done.stdout.decode()
        assert done.returncode == 4 and all(char.isprintable() or char == "\n" for char in text)
    names = {entry["file"] for entry in json.loads(text)["problems"]}
    assert names == {f"KNOWLEDGE/{name}.md" for name in ("a\x1b[2J", "b\n", "c\u202e", "d\u009b1m")}


@pytest.mark.parametrize("words", [["loom"], ["--no-such"], ["--json", "--json"], ["--memory-root"]], ids=" ".join)
def test_bad_arguments(words: list[str]) -> None:
    done = run("cortex-check", *words)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.startswith(b"cortex-check: invalid_input: ") and done.stderr.count(b"\n") == 1


def test_an_output_that_is_full_or_closed(sample: Path) -> None:
    for target in [">&-", *(["> /dev/full"] if os.path.exists("/dev/full") else [])]:
        done = shell(f"cortex-check --memory-root '{sample}' {target}")
        assert done.returncode == 1 and b"standard output cannot be written" in done.stderr


def test_no_rule_is_written_here_a_second_time() -> None:
    """The check names no bound and no pattern: it has its knowledge from those who refuse."""
    text = Path(checking.__file__).read_text(encoding="utf-8")
    assert "limits." not in text and "re.compile" not in text and "parse_ms" not in text
