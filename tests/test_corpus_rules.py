"""Which folder is the root, which files are the corpus, what is refused, and in which order (sections 2, 4, 5).

Also 14.16 and 14.17.  Most of it runs in-process; every refusal is asked of the installed executables too.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract import limits
from cortex_tools.files.root import pin_root
from cortex_tools.files.walk import walk
from cortex_tools.library import Runtime, run_cortex
from tests.support import envelope, environment, failure, note, row, run, shell, write_corpus

MIB = 1 << 20


def ask(root: object, *arguments: str) -> tuple[int, dict[str, Any]]:
    """What the library answers with `root` injected; `status` where nothing is asked."""
    return run_cortex(list(arguments) or ["status"], Runtime(memory_root=root))  # type: ignore[arg-type]


def refused(answer: tuple[int, dict[str, Any]], code: str, *mentions: str, status: int = 4) -> str:
    """The message of a failure from the library, mentioning all of `mentions`."""
    exit_status, body = answer
    assert exit_status == status and body["ok"] is False and body["data"] is None, body
    assert body["error"]["code"] == code, body
    message: str = body["error"]["message"]
    for word in mentions:
        assert word in message, message
    return message


def listing(root: Path) -> list[str]:
    """The corpus below `root`, in its order."""
    pinned = pin_root(os.fsencode(root))
    try:
        return [file.path for file in walk(pinned)]
    finally:
        pinned.close()


def pinned_by(*arguments: str, **changes: Any) -> str:
    """The root that `cortex status` reports when it is run with `arguments` and a changed environment."""
    cwd = changes.pop("cwd", None)
    body = envelope(run("cortex", "status", *arguments, env=environment(**changes), cwd=cwd))
    assert body["ok"], body
    root: str = body["data"]["canonical"]["root"]
    return root


# The root


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """A sound corpus at each of the levels of section 2, and a home folder that holds the last one."""
    here = tmp_path.resolve()
    found = {"home": here / "home"}
    for level in ("injected", "option", "variable", "home/.claude/LIFEOS/MEMORY"):
        found[level.partition("/")[0] if level[0] != "h" else "default"] = write_corpus(here / level, {"a.md": level})
    return found


def test_the_first_level_that_is_given_decides(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(places["home"]))
    monkeypatch.setenv("CORTEX_MEMORY_ROOT", str(places["variable"]))
    option = ["status", "--memory-root", str(places["option"])]

    def root(arguments: list[str], injected: Path | None = None) -> str:
        status, body = run_cortex(arguments, Runtime(memory_root=injected))
        assert status == 0, body
        return str(body["data"]["canonical"]["root"])

    assert root(option, places["injected"]) == str(places["injected"])
    assert root(option) == str(places["option"])
    assert root(["status"]) == str(places["variable"])
    monkeypatch.delenv("CORTEX_MEMORY_ROOT")
    assert root(["status"]) == str(places["default"])


def test_the_levels_of_the_command_line(places: dict[str, Path]) -> None:
    home, variable = str(places["home"]), str(places["variable"])
    option = ("--memory-root", str(places["option"]))
    assert pinned_by(*option, HOME=home, CORTEX_MEMORY_ROOT=variable) == option[1]
    assert pinned_by(HOME=home, CORTEX_MEMORY_ROOT=variable) == variable
    assert pinned_by(HOME=home) == str(places["default"])
    done = shell("cortex-scan | head -n 1", env=environment(HOME=home, CORTEX_MEMORY_ROOT=variable))
    assert json.loads(done.stdout)["root"] == variable


def test_a_level_that_is_given_is_not_passed_over_because_it_is_bad(places: dict[str, Path]) -> None:
    env = environment(HOME=str(places["home"]), CORTEX_MEMORY_ROOT=str(places["variable"] / "gone"))
    failure(run("cortex", "status", env=env), 4, "integrity_error", str(places["variable"] / "gone"))


def test_an_empty_variable_is_the_working_directory(places: dict[str, Path]) -> None:
    found = pinned_by(CORTEX_MEMORY_ROOT="", HOME=str(places["home"]), cwd=places["option"])
    assert found == str(places["option"])


def test_a_relative_root_starts_at_the_working_directory(places: dict[str, Path]) -> None:
    assert pinned_by("--memory-root", "option", cwd=places["option"].parent) == str(places["option"])
    assert pinned_by(CORTEX_MEMORY_ROOT="./option/", cwd=places["option"].parent) == str(places["option"])


def test_dots_are_removed_before_links_are_followed(tmp_path: Path) -> None:
    here = tmp_path.resolve()
    near = write_corpus(here / "near", {"notes/a.md": note("near")})
    far = write_corpus(here / "far", {"notes/a.md": note("far"), "deep/x.txt": ""})
    (near / "link").symlink_to(far / "deep")
    asked = f"{near}/link/../notes"
    assert os.path.realpath(asked) == str(far / "notes"), "the system's own way leads elsewhere"
    assert pinned_by("--memory-root", asked) == str(near / "notes")
    assert pinned_by(CORTEX_MEMORY_ROOT=asked) == str(near / "notes")
    assert ask(asked)[1]["data"]["canonical"]["root"] == str(near / "notes")


def test_a_leading_tilde_is_a_name_like_any_other(tmp_path: Path) -> None:
    here = tmp_path.resolve()
    write_corpus(here, {"cwd/~/x/a.md": "literal", "home/x/a.md": "expanded"})
    env = {"HOME": str(here / "home"), "cwd": here / "cwd"}
    assert pinned_by("--memory-root", "~/x", **env) == str(here / "cwd/~/x")
    assert pinned_by(CORTEX_MEMORY_ROOT="~/x", **env) == str(here / "cwd/~/x")


def test_another_alias_changes_no_record_and_no_digest(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = sample.parent.resolve()
    monkeypatch.chdir(here)
    (here / "link").symlink_to("sample")
    (here / "chain").symlink_to(here / "link")
    pathless = write_corpus(sample, {"KNOWLEDGE/Ideas/no-id.md": "an ID made of the path"})
    commands = [["status"], ["search", "loom"], ["rebuild", "--from-canonical"]]
    _, found = ask(sample, "search", "made of the path", "--page-size", "100")
    identifier = next(card["id"] for card in found["data"]["items"] if card["id"].startswith("path:"))
    commands += [["get", identifier], ["timeline", "--anchor", identifier]]
    for alias in ("link", "chain", f"{here}/./sample/", f"/{here}//sample", f"{here}/gone/../chain", "sample"):
        for command in commands:
            assert ask(alias, *command) == ask(pathless.resolve(), *command), alias


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "is missing"),
        ("file.md", "is no folder"),
        ("dangling", "is missing"),
        ("to-file", "is no folder"),
        ("loop", "cannot be opened"),
        ("file.md/below", "is no folder"),
        ("n" * 300, "cannot be opened"),
    ],
)
def test_a_root_that_is_no_folder(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file.md").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "to-file").symlink_to("file.md")
    (tmp_path / "loop").symlink_to("loop")
    refused(ask(tmp_path / name), "integrity_error", words, "memory root")
    failure(run("cortex", "status", "--memory-root", tmp_path / name), 4, "integrity_error", words)
    done = run("cortex-scan", "--memory-root", tmp_path / name)
    assert done.returncode == 4 and json.loads(done.stdout.splitlines()[0])["code"] == "integrity_error"


def test_a_root_with_a_nul_in_the_library(tmp_path: Path) -> None:
    refused(ask(f"{tmp_path}\0x"), "integrity_error", "memory root")


# Which files are the corpus


def test_below_knowledge_and_the_hot_files(tmp_path: Path) -> None:
    corpus = ["KNOWLEDGE/a.md", "KNOWLEDGE/sub/b.jsonl", "KNOWLEDGE/sub/c.d/e.md", "KNOWLEDGE/x.md/in-x.md"]
    corpus += ["A_MEMORY.md", "_B_MEMORY.md", ".c_MEMORY.md", "_MEMORY.md", "-d_MEMORY.md"]
    others = ["flat.md", "flat.jsonl", "MEMORY/KNOWLEDGE/m.md", "sub/S_MEMORY.md", "H_MEMORY.jsonl", "h_memory.md"]
    others += ["KNOWLEDGE/a.MD", "KNOWLEDGE/a.md.bak", "KNOWLEDGE/a.txt", "KNOWLEDGE/md", "KNOWLEDGE/a.json"]
    others += ["KNOWLEDGE/_h.md", "KNOWLEDGE/.h.md", "KNOWLEDGE/_h/a.md", "KNOWLEDGE/sub/.h/a.md", "KNOWLEDGE/.md"]
    write_corpus(tmp_path, {name: row(name) if name.endswith("jsonl") else "x" for name in corpus + others})
    assert sorted(listing(tmp_path)) == sorted(corpus)
    assert ask(tmp_path)[1]["data"]["canonical"]["records"] == len(corpus)


def test_below_memory_knowledge(tmp_path: Path) -> None:
    others = ["flat.md", "A_MEMORY.md", "MEMORY/B_MEMORY.md", "MEMORY/x.md"]
    write_corpus(tmp_path, dict.fromkeys(["MEMORY/KNOWLEDGE/a.md", "MEMORY/KNOWLEDGE/KNOWLEDGE/b.md", *others], "x"))
    assert listing(tmp_path) == ["MEMORY/KNOWLEDGE/KNOWLEDGE/b.md", "MEMORY/KNOWLEDGE/a.md"]


def test_below_the_root_itself(tmp_path: Path) -> None:
    names = ["A_MEMORY.md", "MEMORY/x.md", "_B_MEMORY.md", ".c_MEMORY.md", "_MEMORY.md", "a.md", "sub/KNOWLEDGE/b.md"]
    write_corpus(tmp_path, dict.fromkeys(names, "x"))
    assert listing(tmp_path) == ["A_MEMORY.md", "MEMORY/x.md", "a.md", "sub/KNOWLEDGE/b.md"]


def test_an_empty_knowledge_hides_what_lies_flat_and_a_file_named_memory_hides_nothing(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"flat.md": "x", "MEMORY": "a plain file"})
    assert listing(tmp_path) == ["flat.md"]
    (tmp_path / "KNOWLEDGE").mkdir()
    assert listing(tmp_path) == []
    status, body = ask(tmp_path)
    assert status == 0 and body["data"]["canonical"]["records"] == 0
    assert ask(tmp_path, "search", "loom")[1]["data"]["total"] == 0


def test_hidden_names_are_neither_read_nor_checked(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), "KNOWLEDGE/_control.md": "\0", "KNOWLEDGE/.latin.md": b"\xff"})
    write_corpus(tmp_path, {"KNOWLEDGE/.deep/same-id.md": note("a"), "KNOWLEDGE/_deep/same-id.md": note("a")})
    below = tmp_path / "KNOWLEDGE"
    for hide in "_.":
        (below / f"{hide}link.md").symlink_to("a.md")
        (below / f"{hide}dangling").symlink_to("nowhere")
        os.mkfifo(below / f"{hide}fifo.md")
        os.truncate(_touched(below / f"{hide}big.md"), limits.CORPUS_BYTES + 1)
        _touched(below / f"{hide}deep/<private>.md")
        Path(os.fsdecode(os.fsencode(below) + f"/{hide}".encode() + b"\xff.md")).touch()
    assert listing(tmp_path) == ["KNOWLEDGE/a.md"]
    assert ask(tmp_path)[1]["data"]["canonical"]["records"] == 1


def test_what_is_no_note_may_be_of_any_kind_but_a_link(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": "x", "KNOWLEDGE/b.bin": b"\xff\0"})
    os.mkfifo(tmp_path / "KNOWLEDGE/pipe")
    os.truncate(tmp_path / "KNOWLEDGE/b.bin", limits.CORPUS_BYTES + 1)
    (tmp_path / "link.md").symlink_to("nowhere")  # beside KNOWLEDGE, not below it, and no hot file
    os.mkfifo(tmp_path / "pipe.md")
    assert listing(tmp_path) == ["KNOWLEDGE/a.md"]


def test_the_order_is_that_of_utf16_code_units_of_the_whole_path(tmp_path: Path) -> None:
    names = ["A_MEMORY.md", "KNOWLEDGE/a b.md", "KNOWLEDGE/a-b/x.md", "KNOWLEDGE/a.md", "KNOWLEDGE/a/x.md"]
    # By code point U+FF21 comes before U+1D400, by UTF-16 code unit (D835) after it.
    names += ["KNOWLEDGE/a0.md", "KNOWLEDGE/é.md", "KNOWLEDGE/\U0001d400.md", "KNOWLEDGE/\U0001d400/z.md"]
    names += ["KNOWLEDGE/\uff21.md", "Z_MEMORY.md", "\U0001d400_MEMORY.md", "\uff21_MEMORY.md"]
    write_corpus(tmp_path, dict.fromkeys(reversed(names), "x"))
    assert listing(tmp_path) == names
    script = f"cortex-scan --memory-root {tmp_path} --parts 3 | cortex-strip"
    lines = [json.loads(line) for line in shell(script).stdout.splitlines()]
    assert [line["provenance"]["path"] for line in lines if line["kind"] == "record"] == names
    for name in ("KNOWLEDGE/\uff21.md", "KNOWLEDGE/\U0001d400.md", "KNOWLEDGE/a-b/x.md"):
        (tmp_path / name).write_bytes(b"\0")
        refused(ask(tmp_path), "integrity_error", name)  # the first in order is the one that is named


# What is refused before any content is read


def _touched(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def _link(name: str, target: str) -> Callable[[Path], None]:
    def build(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)

    return build


def _file(name: str | bytes, size: int = 0, many: int = 1) -> Callable[[Path], None]:
    def build(root: Path) -> None:
        for number in range(many):
            path = _touched(root / os.fsdecode(name).replace("#", str(number)))
            os.truncate(path, size)

    return build


def _fifo(name: str) -> Callable[[Path], None]:
    return lambda root: os.mkfifo(root / name)


def _socket(name: str) -> Callable[[Path], None]:
    def build(root: Path) -> None:
        before = Path.cwd()
        os.chdir(root)  # the address of a socket holds hardly more than a hundred bytes
        try:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(name)
        finally:
            os.chdir(before)

    return build


def _moved(name: str, away: str, then: Callable[[Path], None]) -> Callable[[Path], None]:
    def build(root: Path) -> None:
        (root / name).rename(root / away)
        then(root)

    return build


BEFORE_READING = {
    "link to a note": ("KNOWLEDGE/z.md", _link("KNOWLEDGE/z.md", "0.md")),
    "link of any extension": ("KNOWLEDGE/z.txt", _link("KNOWLEDGE/z.txt", "0.md")),
    "dangling link": ("KNOWLEDGE/z", _link("KNOWLEDGE/z", "nowhere")),
    "link to itself": ("KNOWLEDGE/z.md", _link("KNOWLEDGE/z.md", "z.md")),
    "link to a folder": ("KNOWLEDGE/z", _link("KNOWLEDGE/z", "/")),
    "link to a folder below": ("KNOWLEDGE/sub/z", _link("KNOWLEDGE/sub/z", "../sub")),
    "the corpus folder a link": ("KNOWLEDGE", _moved("KNOWLEDGE", "real", _link("KNOWLEDGE", "real"))),
    "the corpus folder a dangling link": ("KNOWLEDGE", _moved("KNOWLEDGE", "real", _link("KNOWLEDGE", "x"))),
    "MEMORY a link": ("MEMORY", _moved("KNOWLEDGE", "real", _link("MEMORY", "real"))),
    "MEMORY a dangling link": ("MEMORY", _moved("KNOWLEDGE", "real", _link("MEMORY", "nowhere"))),
    "MEMORY/KNOWLEDGE a link": (
        "MEMORY/KNOWLEDGE",
        _moved("KNOWLEDGE", "real", _link("MEMORY/KNOWLEDGE", "../real")),
    ),
    "link in a flat corpus": ("z", _moved("KNOWLEDGE", "flat", _link("z", "nowhere"))),
    "hot file a link": ("Z_MEMORY.md", _link("Z_MEMORY.md", "KNOWLEDGE/0.md")),
    "hidden hot file a dangling link": (".z_MEMORY.md", _link(".z_MEMORY.md", "nowhere")),
    "FIFO": ("KNOWLEDGE/z.md", _fifo("KNOWLEDGE/z.md")),
    "FIFO for rows": ("KNOWLEDGE/z.jsonl", _fifo("KNOWLEDGE/z.jsonl")),
    "socket": ("KNOWLEDGE/z.md", _socket("KNOWLEDGE/z.md")),
    "hot FIFO": ("Z_MEMORY.md", _fifo("Z_MEMORY.md")),
    "hot folder": ("Z_MEMORY.md", _file("Z_MEMORY.md/a.md")),
    "KNOWLEDGE a file": ("KNOWLEDGE", _moved("KNOWLEDGE", "real", _file("KNOWLEDGE"))),
    "KNOWLEDGE a FIFO": ("KNOWLEDGE", _moved("KNOWLEDGE", "real", _fifo("KNOWLEDGE"))),
    "MEMORY/KNOWLEDGE a file": ("MEMORY/KNOWLEDGE", _moved("KNOWLEDGE", "real", _file("MEMORY/KNOWLEDGE"))),
    "file over 8 MiB": ("KNOWLEDGE/z.jsonl", _file("KNOWLEDGE/z.jsonl", limits.FILE_BYTES + 1)),
    "hot file over 8 MiB": ("Z_MEMORY.md", _file("Z_MEMORY.md", limits.FILE_BYTES + 1)),
    "over 128 MiB": (str(limits.CORPUS_BYTES), _file("KNOWLEDGE/z#.md", limits.FILE_BYTES, many=16)),
    "name not UTF-8": ("KNOWLEDGE/z\ufffd.md", _file(b"KNOWLEDGE/z\xff.md")),
    "name not UTF-8, no note": ("KNOWLEDGE/z\ufffd.txt", _file(b"KNOWLEDGE/z\xff.txt")),
    "folder name not UTF-8": ("KNOWLEDGE/z\ufffd", _file(b"KNOWLEDGE/z\xff/a.md")),
    "hot name not UTF-8": ("z\ufffd_MEMORY.md", _file(b"z\xff_MEMORY.md")),
    "name with a span": ("KNOWLEDGE/z", _file("KNOWLEDGE/z<private>secret.md")),
    "name with a malformed opener": ("KNOWLEDGE/z", _file("KNOWLEDGE/z<privateer secret.md")),
    "name with wide letters": ("KNOWLEDGE/z", _file("KNOWLEDGE/z<\uff50rivate>secret.jsonl")),
    "folder name with a span": ("KNOWLEDGE/z", _file("KNOWLEDGE/z<private>secret/a.md")),
    "folder without notes": ("KNOWLEDGE/z", _file("KNOWLEDGE/z<private>secret/a.txt")),
    "hot name with a span": ("its name", _file("<private>secret_MEMORY.md")),
    "a tag across two names": ("KNOWLEDGE/z", _file("KNOWLEDGE/z</private>.md")),
}


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """A corpus whose first and last files could not be read without being refused for their content."""
    files: dict[str, str | bytes] = {"KNOWLEDGE/0.md": b"\xff\0", "KNOWLEDGE/sub/1.jsonl": "no JSON\n"}
    return write_corpus(tmp_path / "root", {"0_MEMORY.md": b"\0", **files, "KNOWLEDGE/~.md": b"\xff"})


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[[], list[str]]]:
    """Gives the names of notes that this process has opened since the last call, and forgets them."""
    names: list[str] = []
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(arguments[0], (str, bytes)):
            names.append(os.fsdecode(arguments[0]))

    sys.addaudithook(hook)  # it sees every way of opening a file; it cannot be removed, only silenced

    def take() -> list[str]:
        notes = [name for name in names if name.endswith((".md", ".jsonl"))]
        names.clear()
        return notes

    yield take
    active = False


@pytest.mark.parametrize("case", BEFORE_READING)
def test_refused_before_anything_is_read(spoiled: Path, case: str, opened: Callable[[], list[str]]) -> None:
    mention, build = BEFORE_READING[case]
    opened()
    refused(ask(spoiled), "integrity_error", "0_MEMORY.md")  # so it is refused for its content as it stands,
    assert [name.rpartition("/")[2] for name in opened()] == ["0_MEMORY.md"]  # and the hook sees it being read
    build(spoiled)
    if case == "link in a flat corpus":
        (spoiled / "0_MEMORY.md").rename(spoiled / "0.md")
    opened()
    message = refused(ask(spoiled), "integrity_error", mention)
    assert opened() == [] and "secret" not in message
    opened()
    for command in (["search", "loom"], ["get", "x"], ["timeline", "--anchor", "2024-01-01"]):
        assert refused(ask(spoiled, *command), "integrity_error") == message
    assert refused(ask(spoiled, "rebuild", "--from-canonical"), "integrity_error") == message
    assert failure(run("cortex", "status", "--memory-root", spoiled), 4, "integrity_error") == message
    done = run("cortex-scan", "--memory-root", spoiled)
    error, seal = (json.loads(line) for line in done.stdout.splitlines())
    assert done.returncode == 4 and seal["kind"] == "seal"
    assert (error["kind"], error["code"], error["exit"], error["message"]) == ("error", "integrity_error", 4, message)


def test_a_device_is_refused(spoiled: Path) -> None:
    try:
        os.mknod(spoiled / "KNOWLEDGE/z.md", 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")
    refused(ask(spoiled), "integrity_error", "KNOWLEDGE/z.md")


def test_more_files_than_allowed_are_refused_before_reading(
    spoiled: Path, opened: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CORPUS_FILES", 3)
    opened()
    refused(ask(spoiled), "integrity_error", "more than 3 files")
    assert opened() == []


def test_the_processes_of_a_large_corpus_open_no_note_of_a_bad_one(tmp_path: Path) -> None:
    """The same of the installed driver and stages, by the system's own record of what was opened."""
    write_corpus(tmp_path, {f"KNOWLEDGE/{number}.md": b"x" * (2 * MIB) for number in range(3)})
    script = "exec strace -f -q -e trace=open,openat,openat2 -o {0}/trace cortex status --memory-root {0}"
    done = shell(script.format(tmp_path))
    if not (tmp_path / "trace").exists() or done.returncode != 0:
        pytest.skip("strace is missing or may not trace here")
    assert all(f'"{number}.md"' in (tmp_path / "trace").read_text() for number in range(3))
    (tmp_path / "KNOWLEDGE/z.txt").symlink_to("nowhere")
    failure(shell(script.format(tmp_path)), 4, "integrity_error", "KNOWLEDGE/z.txt")
    assert '.md"' not in (tmp_path / "trace").read_text()


def test_a_note_is_opened_by_strip_alone(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"KNOWLEDGE/a.md": note("a"), "KNOWLEDGE/b.jsonl": row("b")})
    trace = "strace -f -q -e trace=open,openat,openat2 -o {0}/{1}.trace {1}"
    stages = ["cortex-scan", "cortex-strip", "cortex-select", "cortex-rank", "cortex-card", "cortex-envelope"]
    words = {"cortex-scan": f"--memory-root {tmp_path}", "cortex-rank": "loom", "cortex-envelope": "search"}
    done = shell(" | ".join(f"{trace.format(tmp_path, name)} {words.get(name, '')}" for name in stages))
    if done.returncode != 0 and not (tmp_path / "cortex-strip.trace").exists():
        pytest.skip("strace is missing or may not trace here")
    assert envelope(done)["data"]["total"] == 2
    readers = [name for name in stages if 'a.md"' in (tmp_path / f"{name}.trace").read_text()]
    assert readers == ["cortex-strip"]


# What is refused while reading


READING = {
    "note not UTF-8": ("KNOWLEDGE/a.md", b"caf\xe9 latin"),
    "cut-off sequence": ("KNOWLEDGE/a.md", b"caf\xc3"),
    "overlong form": ("KNOWLEDGE/a.md", b"\xc1\x81"),
    "encoded surrogate": ("KNOWLEDGE/a.md", b"\xed\xa0\x80"),
    "beyond U+10FFFF": ("KNOWLEDGE/a.md", b"\xf4\x90\x80\x80"),
    "UTF-16": ("KNOWLEDGE/a.md", "loom".encode("utf-16")),
    "not UTF-8 in a private span": ("KNOWLEDGE/a.md", b"a <private>\xff</private> b"),
    "rows not UTF-8": ("KNOWLEDGE/a.jsonl:2", (row("b", content="x") + row("a")).encode().replace(b"loom", b"\xff")),
    "control in a private span": ("KNOWLEDGE/a.md", "a <private>\x07</private> b"),
    "control in a span of a row": ("KNOWLEDGE/a.jsonl:1", "<private>\x1b</private>" + row("a")),
    "escaped control": ("KNOWLEDGE/a.jsonl:2", row("b") + row("a").replace("loom row", "\\u0007")),
    "escaped C1 control": ("KNOWLEDGE/a.jsonl:1", row("a", title="T").replace('"T"', '"\\u0085"')),
    "C1 control in a row": ("KNOWLEDGE/a.jsonl:2", row("b") + row("a", title="\x85")),
    "lone surrogate": ("KNOWLEDGE/a.jsonl:1", row("a").replace("loom row", "\\ud800")),
    "surrogates the wrong way round": ("KNOWLEDGE/a.jsonl:1", row("a").replace("loom row", "\\udc00\\ud800")),
    "lone surrogate in a link": ("KNOWLEDGE/a.jsonl:3", "\n\n" + row("a", related=["R"]).replace('"R"', '"\\udfff"')),
    "lone surrogate in an ID": ("KNOWLEDGE/a.jsonl:1", row("A").replace('"A"', '"\\ud800"')),
}


@pytest.mark.parametrize("case", READING)
def test_refused_while_reading(tmp_path: Path, case: str) -> None:
    mention, content = READING[case]
    write_corpus(tmp_path, {"KNOWLEDGE/0.md": note("sound"), mention.partition(":")[0]: content})
    message = refused(ask(tmp_path), "integrity_error", mention)
    assert failure(run("cortex", "search", "loom", "--memory-root", tmp_path), 4, "integrity_error") == message
    done = shell(f"cortex-scan --memory-root {tmp_path} | cortex-strip")
    error = json.loads(done.stdout.splitlines()[-2])
    assert done.returncode == 4 and (error["kind"], error["message"]) == ("error", message)


def test_every_control_is_refused_everywhere_and_nothing_else_is(tmp_path: Path) -> None:
    allowed = set("\t\n\r")
    for code in [*range(0x21), *range(0x7F, 0xA1), 0xAD, 0x200B, 0x2028, 0xFEFF, 0xFFFE]:
        refuse = (code < 0x20 or 0x7F <= code < 0xA0) and chr(code) not in allowed
        for name, content in (("a.md", f"a{chr(code)}b"), ("a.jsonl", row("a", content=f"a{chr(code)}b"))):
            root = write_corpus(tmp_path / name, {name: content})
            if refuse:
                refused(ask(root), "integrity_error", name)
            else:
                assert ask(root)[0] == 0, (hex(code), name)


def test_one_leading_bom_is_dropped(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": "\ufeff" + note("one"), "b.md": "\ufeff\ufeff" + note("two")})
    write_corpus(tmp_path, {"c.jsonl": "\ufeff" + row("three")})
    items = ask(tmp_path, "get", "one", "three")[1]["data"]["items"]
    assert items[0]["content"] == note("one") and items[1]["provenance"]["path"] == "c.jsonl"
    refused(ask(tmp_path, "get", "two"), "not_found", "two", status=3)  # its second BOM hides its front matter


DUPLICATES: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    "two notes": ({"a.md": note("same"), "b.md": note("same")}, ("a.md", "b.md")),
    "note and row": ({"a.md": note("same"), "b.jsonl": row("x") + row("same")}, ("a.md", "b.jsonl:2")),
    "two rows": ({"a.jsonl": row("same") + "\n" + row("same")}, ("a.jsonl:1", "a.jsonl:3")),
    "the same once stripped": (
        {"a.md": note("same"), "b.jsonl": row("sa<private>!</private>me")},
        ("a.md", "b.jsonl:1"),
    ),
    "one of them not valid now": (
        {"a.md": note("same", valid_until="2001-01-01"), "b.md": note("same")},
        ("a.md", "b.md"),
    ),
}


@pytest.mark.parametrize("case", DUPLICATES)
def test_duplicate_ids(tmp_path: Path, case: str) -> None:
    files, mentions = DUPLICATES[case]
    write_corpus(tmp_path, dict(files))
    message = refused(ask(tmp_path), "integrity_error", "same", *mentions)
    for command in (["search", "loom"], ["get", "x"], ["rebuild", "--from-canonical"]):
        assert refused(ask(tmp_path, *command), "integrity_error") == message
    script = f"cortex-scan --memory-root {tmp_path} --parts 2 | cortex-strip | cortex-envelope status"
    failure(shell(script), 4, "integrity_error", "same", *mentions)


def test_ids_that_differ_at_all_are_no_duplicates(tmp_path: Path) -> None:
    ids = ["same", "Same", "sam\u00e9", "same\u0301", "same ", "\u212aelvin", "kelvin"]
    write_corpus(tmp_path, {"a.jsonl": "".join(map(row, ids))})
    assert [item["id"] for item in ask(tmp_path, "get", *ids)[1]["data"]["items"]] == ids


def test_duplicate_ids_are_judged_last(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("same"), "b.md": note("same"), "z.md": b"\xff"})
    refused(ask(tmp_path), "integrity_error", "z.md")
    done = shell(f"cortex-scan --memory-root {tmp_path} | cortex-strip | cortex-envelope status")
    failure(done, 4, "integrity_error", "z.md")


# The order of section 4


@pytest.fixture
def unsound(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "unsound", {"a.md": b"\xff"})


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "sound", {"a.md": note("a")})


# Each holds two faults; the first, by section 4, is the one to be named.
GRAMMAR = [
    (["nope", "--bogus"], "nope"),
    (["", "--bogus"], "no command"),
    (["search", "--bogus", "--page"], "--bogus"),
    (["search", "--page", "--bogus"], "--page"),
    (["search", "--page", "1", "--page", "2", "--bogus"], "--page"),
    (["search", "--session", "", "--bogus"], "--session"),
    (["search", "x", "--adapter", "zeus", "--bogus"], "--bogus"),
    (["search", "x", "--adapter", "zeus", "--page"], "--page"),
    (["search", "--adapter", "zeus"], "--adapter"),
    (["rebuild", "--adapter", "zeus"], "--adapter"),
    (["search"], "search takes exactly one"),
    (["search", "a", "b", "--page", "0"], "search takes exactly one"),
    (["status", "x"], "status takes no argument"),
    (["timeline", "x"], "timeline takes no argument"),
    (["get"], "get takes 1 to 100"),
    (["export", *["x"] * 101], "export takes 1 to 100"),
    (["rebuild"], "--from-canonical"),
]


@pytest.mark.parametrize(("arguments", "mention"), GRAMMAR, ids=lambda value: " ".join(value)[:40] or "none")
def test_bad_grammar_beats_an_unsound_corpus(unsound: Path, arguments: list[str], mention: str) -> None:
    refused(ask(unsound, *arguments), "invalid_input", mention)
    refused(ask(unsound / "missing", *arguments), "invalid_input", mention)


SEARCH = [
    (["!"], "query", "invalid_input"),
    (["--from", "x"], "--from", "invalid_input"),
    (["--to", "x"], "--to", "invalid_input"),
    (["--recency", "-1"], "--recency", "invalid_input"),
    (["--page", "0"], "--page ", "invalid_input"),
    (["--page-size", "0"], "--page-size", "invalid_input"),
    (["--max-nodes", "0"], "--max-nodes", "invalid_input"),
    (["--max-tokens", "0"], "--max-tokens", "invalid_input"),
    (["--expand", "ghost"], "ghost", "not_found"),
]
TIMELINE = [
    (["--from", "x"], "--from", "invalid_input"),
    (["--to", "x"], "--to", "invalid_input"),
    (["--before", "x"], "--before", "invalid_input"),
    (["--after", "x"], "--after", "invalid_input"),
    (["--anchor", "ghost"], "ghost", "not_found"),
    (["--page", "0"], "--page ", "invalid_input"),
    (["--page-size", "0"], "--page-size", "invalid_input"),
]


@pytest.mark.parametrize(("command", "values"), [("search", SEARCH), ("timeline", TIMELINE)])
def test_values_are_judged_in_order_and_after_the_corpus(
    sound: Path, unsound: Path, command: str, values: list[tuple[list[str], str, str]]
) -> None:
    base = [command] if command == "search" else [command, "--anchor", "2024-01-01"]
    for at, (first, mention, code) in enumerate(values):
        for second in [[], *(value for value, _, _ in values[at + 1 :])]:
            # Given last first: the order of the command line must not matter.
            line = [*base, *second, *first]
            if command == "search" and "!" not in line:
                line.append("loom")
            if "ghost" in line and command == "timeline":
                line[1:3] = []
            refused(ask(sound, *line), code, mention, status=4 if code == "invalid_input" else 3)
            refused(ask(unsound, *line), "integrity_error", "a.md")
            refused(ask(unsound / "missing", *line), "integrity_error", "memory root")


def test_a_missing_anchor_comes_before_all_other_values(sound: Path, unsound: Path) -> None:
    for value, _, _ in TIMELINE:
        if value[0] != "--anchor":
            refused(ask(sound, "timeline", *value), "invalid_input", "--anchor")
    refused(ask(unsound, "timeline"), "integrity_error", "a.md")


@pytest.mark.parametrize("command", ["get", "export"])
def test_an_unsound_corpus_beats_an_unknown_id(sound: Path, unsound: Path, command: str) -> None:
    refused(ask(sound, command, "a", "ghost"), "not_found", "ghost", status=3)
    refused(ask(unsound, command, "ghost"), "integrity_error", "a.md")


IDEA = json.dumps({"type": "idea", "title": "T", "content": "C"})
GRANTED = ["--adapter", "claude", "--allow-write"]
# From left to right each line has one fault less; the last has none but what the corpus or governance finds.
WRITES = [
    (["remember", "x" * 262_145, "two", "--adapter", "zeus", "--bogus"], "invalid_input", "--bogus", 4),
    (["remember", "x" * 262_145, "two", "--adapter", "zeus"], "invalid_input", "--adapter", 4),
    (["remember", "x" * 262_145, "two", "--adapter", "claude"], "write_refused", "--allow-write", 5),
    (["remember", "x" * 262_145, "two", "--allow-write"], "write_refused", "--adapter", 5),
    (["remember", "x" * 262_145, "two", *GRANTED], "invalid_input", "one JSON payload", 4),
    (["remember", *GRANTED], "invalid_input", "one JSON payload", 4),
    (["remember", "x" * 262_145, *GRANTED], "invalid_input", "262144", 4),
    (["remember", "{", *GRANTED], "invalid_input", "JSON", 4),
    (["remember", '{"type":"proposal"}', *GRANTED], "write_refused", "type", 5),
    (["propose", '{"type":"idea"}', *GRANTED], "write_refused", "type", 5),
    (["remember", IDEA, *GRANTED], "integrity_error", "memory root", 4),
]


@pytest.mark.parametrize(("arguments", "code", "mention", "status"), WRITES)
def test_the_order_of_a_write(tmp_path: Path, arguments: list[str], code: str, mention: str, status: int) -> None:
    calls: list[object] = []

    def add(*given: object) -> dict[str, Any]:
        calls.append(given)
        return {"ok": False, "code": "EINVAL_ITEM", "message": "governance"}

    answer = run_cortex(arguments, Runtime(memory_root=tmp_path / "missing", memory_add=add))
    refused(answer, code, mention, status=status)
    assert calls == []


def test_a_write_meets_governance_last_and_reads_no_corpus(unsound: Path, opened: Callable[[], list[str]]) -> None:
    answers = iter([{"ok": False, "code": "EINVAL_ITEM", "message": "governance"}, {"ok": True}])
    runtime = Runtime(memory_root=unsound, memory_add=lambda *_: next(answers))
    opened()
    refused(run_cortex(["remember", IDEA, *GRANTED], runtime), "governance_refused", "EINVAL_ITEM", status=5)
    assert run_cortex(["remember", IDEA, *GRANTED], runtime)[0] == 0
    assert opened() == []


def test_the_command_line_keeps_the_same_order(unsound: Path) -> None:
    root = ("--memory-root", unsound)
    failure(run("cortex", "search", "x", "--page", "0", "--bogus", *root), 4, "invalid_input", "--bogus")
    failure(run("cortex", "search", "x", "--page", "0", *root), 4, "integrity_error", "a.md")
    failure(run("cortex", "timeline", "--page", "0", *root), 4, "integrity_error", "a.md")
