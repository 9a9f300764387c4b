"""One flipped bit: a corpus gives another digest or is refused; a stream between two stages is refused."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.files.reading import parse_note
from cortex_tools.files.walk import NoteFile
from cortex_tools.library import Runtime, run_cortex
from cortex_tools.streams.segments import SegmentReader
from tests.seam import Job, Seam
from tests.support import SAMPLE, note, row, shell, write_corpus
from tests.test_privacy import naive_strip

FILES = sorted(path.relative_to(SAMPLE).as_posix() for path in Path(SAMPLE).rglob("*.*") if "KNOWLEDGE" in path.parts)
BITS_A_FILE = 3  # of those that go through a whole command
BITS_A_NOTE = 100
BITS_A_STREAM = 400


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def digest(root: Path) -> str | None:
    """The canonical digest; None where the corpus is refused."""
    status, body = run_cortex(["rebuild", "--from-canonical"], Runtime(memory_root=root))
    if status == 0:
        return str(body["data"]["canonical_digest"])
    assert status == 4 and body["error"]["code"] == "integrity_error", body
    return None


def same_meaning(before: bytes, after: bytes, name: str) -> bool:
    """Whether two contents mean the same by an independent look: what is left of a note, the values of rows."""
    try:
        old, new = before.decode("utf-8"), after.decode("utf-8")
        if name.endswith(".md"):
            return naive_strip(old) == naive_strip(new)
        read = [[json.loads(naive_strip(line)) for line in text.split("\n") if line.strip()] for text in (old, new)]
    except ValueError:
        return False
    return read[0] == read[1]


def private(data: bytes) -> list[range]:
    """Where the private spans of a text lie, tags included, by counting tags: the sample's are all well-formed."""
    found, depth, start = [], 0, 0
    for tag in re.finditer(rb"<(/?)private(?: [^<>]*)?>", data):
        if tag[1]:
            depth -= 1
            if depth == 0:
                found.append(range(start, tag.end()))
        else:
            start = start if depth else tag.start()
            depth += 1
    assert depth == 0
    return found


def may_go_unnoticed(before: bytes, after: bytes, byte: int, name: str) -> bool:
    """Whether nothing but private text differs: what is removed is in no record, unless its markup was hit.

    A control character is refused inside private text, too.  Nothing else may hide a bit: front matter is part of
    the content, also fields that mean nothing, and a row has no field and no blank that one bit turns into another.
    """
    if not any(byte in span for span in private(before)):
        return False
    return not re.search(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", after) and same_meaning(
        before, after, name
    )


def records(name: str, data: bytes) -> list[str] | None:
    """What the digest is taken over, of one file; None where it is refused."""
    kind = "markdown" if name.endswith(".md") else "jsonl"
    try:
        return [record.json() for record in parse_note(NoteFile(name, kind, len(data), 0, 0, 0), data)]
    except CortexError as error:
        assert error.code == "integrity_error"
        return None


def flip_a_note(name: str, data: bytes, right: list[str] | None, bit: int) -> None:
    after = flipped(data, bit)
    unnoticed = records(name, after) == right
    assert unnoticed == may_go_unnoticed(data, after, bit // 8, name), f"bit {bit} of {name}"


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_changes_what_the_digest_is_over_unless_private_text_alone_is_hit(name: str) -> None:
    """Both ways: what may go unnoticed does, and nothing else.  `make soak` flips every bit there is."""
    data = (SAMPLE / name).read_bytes()
    right = records(name, data)
    assert right
    chance = random.Random(name)
    bits = [chance.randrange(len(data) * 8) for _ in range(BITS_A_NOTE)]
    bits += [chance.choice(span) * 8 + chance.randrange(8) for span in private(data) for _ in range(BITS_A_NOTE)]
    for bit in bits:
        flip_a_note(name, data, right, bit)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("flips") / "sample"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return root


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_of_a_note_changes_the_digest_or_is_refused(copy: Path, name: str) -> None:
    right = digest(copy)
    assert right is not None
    path = copy / name
    before = path.read_bytes()
    chance = random.Random(name)
    try:
        for bit in (chance.randrange(len(before) * 8) for _ in range(BITS_A_FILE)):
            after = flipped(before, bit)
            path.write_bytes(after)
            assert digest(copy) != right or same_meaning(before, after, name), f"bit {bit} of {name} goes unnoticed"
    finally:
        path.write_bytes(before)


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What each stage writes over two notes and a row."""
    return streams_of(tmp_path_factory.mktemp("flips") / "root")


def streams_of(root: Path) -> dict[str, bytes]:
    write_corpus(root, {"KNOWLEDGE/a.md": note("a", "a loom"), "KNOWLEDGE/b.md": note("b", "织机"), "r.jsonl": ""})
    write_corpus(root, {"KNOWLEDGE/r.jsonl": row("c")})
    found: dict[str, bytes] = {}
    data = b""
    for argv in chain(root):
        done = shell(shlex.join(argv), input=data)
        assert done.returncode == 0, done.stderr
        data = found[argv[0]] = done.stdout
    return found


def chain(root: Path) -> list[list[str]]:
    stages = [["cortex-scan", "--memory-root", str(root)], ["cortex-strip"], ["cortex-select", "--valid"]]
    return [*stages, ["cortex-expand", "a"], ["cortex-rank", "loom"], ["cortex-card"]]


STAGES = ("cortex-scan", "cortex-strip", "cortex-select", "cortex-expand", "cortex-rank", "cortex-card")


@pytest.mark.parametrize("stage", STAGES)
def test_a_flipped_bit_of_a_stream_is_caught(streams: dict[str, bytes], tmp_path: Path, stage: str) -> None:
    data = streams[stage]
    path = tmp_path / "stream"
    read(path, data)  # sound as it is
    names = sealer(data)
    for bit in random.Random(stage).sample(range(len(data) * 8), min(BITS_A_STREAM, len(data) * 8)):
        if bit // 8 in names:
            continue
        with pytest.raises(CortexError) as caught:
            read(path, flipped(data, bit))
        assert caught.value.code == "integrity_error", (stage, bit)


def read(path: Path, data: bytes) -> None:
    """Read a whole stream as each stage does."""
    path.write_bytes(data)
    with path.open("rb") as file:
        assert list(SegmentReader(file.fileno()))


def sealer(data: bytes) -> range:
    """Where the name of who sealed stands: beside the number and the hash, which are over the bytes before the seal.

    Nothing is read from it but the words of a message.
    """
    start = data.rindex(b'{"kind":"seal","stage":"') + len(b'{"kind":"seal","stage":"')
    return range(start, data.index(b'"', start))


def flip_a_stream(seam: Seam, argv: list[str], data: bytes, right: bytes, bit: int) -> None:
    """The stage refuses what was flipped; where only the name of who sealed was hit it may do its work as ever."""
    done = seam.run(Job(argv, flipped(data, bit)))
    case = (argv, bit, done)
    assert b"Traceback" not in done.stderr and not done.left, case
    if bit // 8 in sealer(data) and done.status == 0:
        assert done.stdout == right, case
        return
    assert done.status == 4, case
    if argv[0] == "cortex-envelope":
        assert json.loads(done.stdout)["error"]["code"] == "integrity_error", case
    else:
        error, seal = map(json.loads, done.stdout.splitlines()[-2:])
        assert (error["kind"], error["code"], seal["kind"]) == ("error", "integrity_error", "seal"), case


def readers(root: Path) -> list[list[str]]:
    """Who reads what each of STAGES writes."""
    return [*chain(root)[1:], ["cortex-envelope", "search"]]


@pytest.mark.parametrize("stage", STAGES)
def test_the_next_stage_refuses_a_flipped_bit(streams: dict[str, bytes], tmp_path: Path, stage: str) -> None:
    data = streams[stage]
    argv = readers(tmp_path)[STAGES.index(stage)]
    chance = random.Random(stage)
    seam = Seam(str(tmp_path))
    try:
        right = seam.run(Job(argv, data))
        assert right.status == 0
        names = [8 * byte + chance.randrange(8) for byte in sealer(data)]
        for bit in chance.sample(range(len(data) * 8), 40) + names:
            flip_a_stream(seam, argv, data, right.stdout, bit)
    finally:
        seam.close()
