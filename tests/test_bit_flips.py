"""One flipped bit: a corpus gives another digest or is refused; a stream between two stages is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from cortex_tools.contract.errors import CortexError
from cortex_tools.library import Runtime, run_cortex
from cortex_tools.streams.segments import SegmentReader
from tests.support import SAMPLE, note, row, shell, write_corpus
from tests.test_privacy import naive_strip

FILES = sorted(path.relative_to(SAMPLE).as_posix() for path in Path(SAMPLE).rglob("*.*") if "KNOWLEDGE" in path.parts)
BITS_A_FILE = 3
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
    root = tmp_path_factory.mktemp("flips") / "root"
    write_corpus(root, {"KNOWLEDGE/a.md": note("a", "a loom"), "KNOWLEDGE/b.md": note("b", "织机"), "r.jsonl": ""})
    write_corpus(root, {"KNOWLEDGE/r.jsonl": row("c")})
    found: dict[str, bytes] = {}
    data = b""
    for stage in (
        f"cortex-scan --memory-root {root}",
        "cortex-strip",
        "cortex-select --valid",
        "cortex-expand a",
        "cortex-rank loom",
        "cortex-card",
    ):
        done = shell(stage, input=data)
        assert done.returncode == 0, done.stderr
        data = found[stage.split()[0]] = done.stdout
    return found


STAGES = ("cortex-scan", "cortex-strip", "cortex-select", "cortex-expand", "cortex-rank", "cortex-card")


@pytest.mark.parametrize("stage", STAGES)
def test_a_flipped_bit_of_a_stream_is_caught(streams: dict[str, bytes], tmp_path: Path, stage: str) -> None:
    data = streams[stage]
    path = tmp_path / "stream"
    read(path, data)  # sound as it is
    # The name of who sealed is beside the seal's number and hash, which are over the bytes before it; nothing is read
    # from it.
    start = data.rindex(b'{"kind":"seal","stage":"') + len(b'{"kind":"seal","stage":"')
    names = range(start, data.index(b'"', start))
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
