"""Privacy as a property: whatever a note hides, and however, nothing that this suite writes shows it.

Notes are made up in-process with canaries in hidden places; then the sample corpus with canaries planted into it
goes through every executable, in use and in failure, and everything written is looked through.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS, Command
from cortex_tools.domain.privacy import strip_private
from cortex_tools.files.reading import parse_note
from cortex_tools.files.walk import NoteFile
from cortex_tools.library import Runtime, run_cortex
from tests.canaries import CUTS, SPANS, STEM, escaped, leaks
from tests.governed import ITEMS
from tests.support import SAMPLE, environment, row, run, shell, write_corpus
from tests.test_privacy import CLOSED, SUSPICIOUS, WELL_FORMED, naive_strip

CANARY = f"{STEM}77"

# --- made-up notes -----------------------------------------------------------------------------------------------

OPENERS = [text for text in WELL_FORMED if "\x1c" not in text]  # no control, which a note may not hold at all
CUTTERS = [text for text in SUSPICIOUS if not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)]
INSIDE = ["a", "\n", "\r\n", " ", "---\n", "slug: x\n", "<b>", "</private-x>", '"', "\\", "{", "é", "\u200b"]


@st.composite
def hidden(draw: st.DrawFn, depth: int = 0) -> str:
    """A whole span, nested at will, with canaries in it."""
    text = draw(st.sampled_from(OPENERS)) + CANARY
    for _ in range(draw(st.integers(0, 3))):
        if depth < 3 and draw(st.booleans()):
            text += draw(hidden(depth + 1))
        text += draw(st.sampled_from(INSIDE)) + CANARY
    return text + draw(st.sampled_from(CLOSED))


HIDDEN = st.one_of(
    hidden(),
    st.sampled_from([*SPANS.values()]).map(lambda markup: markup.replace("{}", CANARY)),
    st.integers(2, 3000).map(lambda deep: "<private>" * deep + CANARY + "</private>" * deep),
)
CUTTING = st.one_of(
    st.sampled_from(CUTTERS).map(lambda opener: opener + CANARY),
    st.sampled_from([*CUTS.values()]).map(lambda markup: markup.replace("{}", CANARY)),
    st.sampled_from(OPENERS).map(lambda opener: opener + CANARY),
)
NAMES = ["a", "b c", "näme", "日本", "a'b", "a;b$(c)", 'q"', "-rf", "a\nb", "a.md", "x<y>", "%41", "\u200b", "🧶"]


SPAN, CUT = "\ue000", "\ue001"  # stand for markup until the text is whole, so that none lands within another


def placed(draw: st.DrawFn, text: str) -> str:
    """`text` with places for spans, and perhaps for a cut, after which everything must be hidden, too."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + SPAN + text[at:]
    return text + (CUT if draw(st.integers(0, 3)) == 0 else "")


def filled(draw: st.DrawFn, text: str) -> str:
    for place, markup in ((SPAN, HIDDEN), (CUT, CUTTING)):
        text = re.sub(place, lambda _, markup=markup: draw(markup), text)
    return text


@st.composite
def markdown_notes(draw: st.DrawFn) -> str:
    head = {"id": "n1", "title": "Loom", "type": "idea", "created": "2024-01-01", "source_session": "s", "tags": "[t]"}
    for field in draw(st.sets(st.sampled_from([*head]), max_size=3)):
        head[field] = placed(draw, head[field])
    text = "---\n" + "".join(f"{name}: {value}\n" for name, value in head.items()) + "---\nloom body\n- slug: n2\n"
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return filled(draw, placed(draw, text))


@st.composite
def rows(draw: st.DrawFn) -> str:
    """A row with markup in some of its fields, as it stands or in escapes."""
    fields: dict[str, Any] = {"title": "Loom", "type": "log", "content": "loom", "source": "s", "source_session": "s"}
    marks: dict[str, str] = {}
    for number, field in enumerate(draw(st.sets(st.sampled_from([*fields, "related", "id"]), min_size=1, max_size=3))):
        marks[f"@{number}@"] = filled(draw, placed(draw, "x"))
        fields[field] = ["n1", f"@{number}@"] if field == "related" else f"n{number}@{number}@"
    line = row(**{"id": "r1", **fields})
    for mark, text in marks.items():
        # Markup that is written half in escapes is another markup before unescaping than after it, and both count.
        plain = draw(st.booleans()) and json.dumps(text, ensure_ascii=False) == f'"{text}"'
        line = line.replace(mark, text if plain else escaped(text))
    return line


COMMANDS_TRIED = [
    ["status"],
    ["search", "loom x n0", "--expand", "n1", "--page-size", "100"],
    ["search", CANARY],
    ["search", "loom", "--page", "0"],
    ["search", "loom", "--from", "tomorrow"],
    ["search", "loom", "--expand", "nowhere"],
    ["timeline", "--anchor", "2024-01-01"],
    ["timeline", "--anchor", "n1", "--before", "101"],
    ["get", "n1"],
    ["get", "r1", "n1", "n2"],
    ["export", "nowhere"],
    ["rebuild", "--from-canonical"],
    ["rebuild"],
]


NOTES = st.tuples(markdown_notes(), rows(), st.sampled_from(NAMES))


def check_notes(note: str, line: str, name: str, root: Path) -> None:
    """A corpus of the two at `root`, made anew: no command shows a canary, and none can be found."""
    shutil.rmtree(root, ignore_errors=True)
    files = {f"KNOWLEDGE/{name}.md": note, f"KNOWLEDGE/r {name}.jsonl": line}
    write_corpus(root, {**files, "KNOWLEDGE/n2.md": "---\nid: n2\n---\nloom\n"})
    for command in COMMANDS_TRIED:
        status, answer = run_cortex(command, Runtime(memory_root=root))
        assert leaks(json.dumps(answer).encode()) == [], command
        assert status in (0, 3, 4), answer
        if command[-1] == CANARY and status == 0:
            assert answer["data"]["total"] == 0


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(NOTES)
def test_no_made_up_note_shows_what_it_hides(
    tmp_path_factory: pytest.TempPathFactory, made_up: tuple[str, str, str]
) -> None:
    check_notes(*made_up, tmp_path_factory.getbasetemp() / "made-up")


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(markdown_notes())
def test_the_content_of_a_made_up_note_is_what_the_naive_stripper_leaves(note: str) -> None:
    if len(note) > 3000:
        return
    data = note.encode()
    left = naive_strip(note)
    assert leaks(left.encode()) == []
    try:
        (record,) = parse_note(NoteFile("KNOWLEDGE/a.md", "markdown", len(data), 0, 0, 0), data)
    except CortexError as error:
        assert leaks(str(error).encode()) == []
        return
    assert record.content == left


# --- the sample corpus with canaries, through every executable --------------------------------------------------------

WRITTEN = ("OBSERVABILITY", "BENCHMARKS")  # folders of what the suite itself writes below the root


def plant(root: Path, seed: int) -> None:
    """A copy of the sample corpus at `root` that says the same, with private text all over it."""
    shutil.copytree(SAMPLE, root)
    chance = random.Random(seed)
    spans = [markup.replace("{}", CANARY) for name, markup in SPANS.items() if name not in ("crlf", "code")]
    flat = [span for span in spans if "\n" not in span and '"' not in span]
    for path in sorted(root.rglob("*.md")):
        lines = path.read_text(encoding="utf-8").split("\n")
        closing = lines.index("---", 1) if lines[0] == "---" else -1
        for at in range(1, len(lines)):
            if at != closing and chance.random() < 0.4:
                lines[at] += chance.choice(spans if at > closing else flat)
        if chance.random() < 0.3:
            lines.append(chance.choice([*CUTS.values()]).replace("{}", CANARY))
        path.write_text("\n".join(lines), encoding="utf-8")
    for path in sorted(root.rglob("*.jsonl")):
        out = []
        for line in path.read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            for field in ("title", "content", "id"):
                value[field] += f"@{field}@"
            text = json.dumps(value, ensure_ascii=False)
            for field in ("title", "content", "id"):
                markup = chance.choice(flat)
                text = text.replace(f"@{field}@", markup if chance.random() < 0.5 else escaped(markup))
            out.append(text + "\n")
        path.write_text("".join(out), encoding="utf-8")


SECRET = f"<private>{CANARY}</private>"


def leave_evidence(root: Path) -> None:
    """Logs and a queue as other programs may leave them, with private text in every string."""
    stamp = "2026-01-01T00:00:00.000Z"
    proposal = {"id": "prop_0123456789ab", "ts": stamp, "status": "pending", "target_file": "PRINCIPAL/WRITINGSTYLE.md"}
    proposal |= {"target_kind": "style", "edit": f"Short.{SECRET}", "confidence": 1, "rationale": SECRET}
    logs: dict[str, Any] = {
        "pending-proposals": [proposal, {**proposal, "id": f"prop_{SECRET}", "status": SECRET}, SECRET],
        "reviewer-runs": [{"ts": stamp, "runId": SECRET, "ok": False, "parse_ok": False, "error": SECRET}],
        "memory-retrievals": [{"ts": stamp, "query": SECRET}, {SECRET: SECRET}],
        "tier-b-writes": [{"ts": stamp, "type": SECRET, "path": SECRET}],
        "memory-writes": [{"ts": stamp, "type": "memory", "op": SECRET, "path": SECRET, "rejected": True}],
        "memory-locks": [{"ts": SECRET, "event": SECRET}],
        "memory-health": [{"schema": SECRET}],
    }
    files: dict[str, str | bytes] = {
        f"OBSERVABILITY/{name}.jsonl": "".join(json.dumps(one) + "\n" for one in found) + f"torn {SECRET}"
        for name, found in logs.items()
    }
    style = f"Old {SECRET}\n<private>\n{CANARY}\n</private>\nlast line {SECRET}"
    files |= {"USER/PRINCIPAL/WRITINGSTYLE.md": style, "PRINCIPAL/WRITINGSTYLE.md": style}
    snapshot = f"---\nid: principal\n---\nRULE: a {SECRET}\n<private>\n{CANARY}\n</private>\nend {SECRET}"
    files["OBSERVABILITY/memory-snapshots/PRINCIPAL_MEMORY__2026-01-31T08-00-00-000Z.md"] = snapshot
    write_corpus(root, files)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to work in: the planted corpus, and the files that examples read."""
    return make_place(tmp_path_factory.mktemp("planted"), 1)


def make_place(folder: Path, seed: int) -> Path:
    """The same, as `seed` determines it, in `folder`."""
    plant(folder / "root", seed)
    leave_evidence(folder / "root")
    idea = {**ITEMS["idea"], "content": f"Even pull. {SECRET}", "title": f"Pull {SECRET}"}
    proposal = {**ITEMS["proposal"], "edit": f"Short. {SECRET}", "rationale": f"Twice. {SECRET}"}
    (folder / "item.json").write_text(json.dumps(idea))
    (folder / "proposal.json").write_text(json.dumps(proposal))
    return folder


def said_nothing(output: bytes, *where: object) -> None:
    assert leaks(output) == [], (where, output[:2000])


def tried(place: Path, script: str) -> None:
    env = environment(CORTEX_MEMORY_ROOT=str(place / "root"), HOME=str(place))
    done = shell(script, env=env, cwd=place)
    said_nothing(done.stdout + done.stderr, script)


def test_the_planted_corpus_is_sound_and_would_show(place: Path) -> None:
    done = run("cortex", "status", "--memory-root", str(place / "root"))
    assert done.returncode == 0, done.stdout
    hidden_in = [path for path in (place / "root").rglob("*") if path.is_file() and leaks(path.read_bytes())]
    assert len(hidden_in) > 40


@pytest.mark.parametrize("command", [*EXECUTABLES.values(), *COMMANDS.values()], ids=lambda command: command.name)
def test_no_example_shows_a_canary(command: Command, place: Path) -> None:
    """Every example of the help, on a corpus full of private text, and what it leaves behind."""
    known = snapshot_of(place)
    for example in command.examples:
        tried(place, example)
    for path in place.rglob("*"):
        if path.is_file() and known.get(path) != path.read_bytes():
            text = path.read_text(encoding="utf-8")
            if path.name not in KEEP and path.parent.name != "memory-snapshots":
                said_nothing(appended(known.get(path, b""), text.encode()), path)
            said_nothing(strip_private(text).encode(), path)


# What a decision rewrites keeps the private text that a person or another program put there, in its spans.
KEEP = ("WRITINGSTYLE.md", "PRINCIPAL_MEMORY.md", "pending-proposals.jsonl")


def snapshot_of(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def appended(before: bytes, after: bytes) -> bytes:
    """What is new in a file: its end, where it has grown, else all lines that were not there."""
    if after.startswith(before):
        return after[len(before) :]
    old = set(before.split(b"\n"))
    return b"\n".join(line for line in after.split(b"\n") if line not in old)


# What each executable can be told that it must refuse; further to those that are made of its options.
REFUSED = [["--nothing"], ["x", "y", "z", "w"], ["get"], ["list", "show"], ["show", "nowhere"], []]


def refusals(command: Command) -> list[list[str]]:
    """Command lines of an executable with one bad option each."""
    found = [*REFUSED]
    for option in command.options.values():
        value = ["bogus", "0x1"][: max(option.values, 1)]
        found.append([*(["search"] if command.positionals[1] else []), option.name, *value])
    return found


@pytest.mark.parametrize("name", EXECUTABLES)
def test_no_refusal_shows_a_canary(name: str, place: Path) -> None:
    """Bad arguments, with a listing, records and raw private text on standard input."""
    root = str(place / "root")
    env = environment(CORTEX_MEMORY_ROOT=root, HOME=str(place))
    scan = run("cortex-scan", env=env).stdout
    records = run("cortex-strip", input=scan).stdout
    notes = b"".join(path.read_bytes() for path in sorted((place / "root").rglob("*.md"))[:5])
    item = (place / "item.json").read_bytes()
    streams = [records, notes, records[: len(records) // 2] + notes, item]
    for number, arguments in enumerate(refusals(EXECUTABLES[name])):
        if "restore" not in arguments:
            done = run(name, *arguments, input=streams[number % len(streams)], env=env, cwd=place)
            said_nothing(done.stdout + done.stderr, name, arguments)


@pytest.mark.parametrize("script", [
    "cortex-check",
    "cortex-check --json",
    "cortex-health",
    "cortex-health --json --corpus",
    "cortex-health affirm no-reviewer",
    "cortex-proposals list --all --json",
    "cortex-proposals list --all",
    "cortex-proposals show prop_0123456789ab",
    "cortex-proposals reject prop_0123456789ab --reason 'no <private>zqx77</private>'",
    "cortex-proposals list --all; cortex-proposals show prop_0123456789ab",
    "cortex-restore show PRINCIPAL_MEMORY__2026-01-31T08-00-00-000Z.md",
    "cortex-restore restore PRINCIPAL_MEMORY__2026-01-31T08-00-00-000Z.md; cortex-restore list",
    "cortex-log-retrieval search loom; cortex-log-retrieval search loom --page 0; cat root/OBSERVABILITY/.retr*",
    "cortex-write remember --adapter claude --allow-write < item.json | cortex-envelope remember",
    "cortex-write propose --adapter claude --allow-write < proposal.json; cortex-proposals list; cortex-restore list",
    "cortex remember - --adapter claude --allow-write < proposal.json",
    "cortex propose - --adapter claude --allow-write < root/PRINCIPAL_MEMORY.md",
    "cortex-benchmark label loom --expect idea-vat-monitor > l.jsonl; cortex-benchmark --labels l.jsonl",
    "cortex-benchmark --labels root/KNOWLEDGE/Log/2024.jsonl",
    "cortex-benchmark plot root/PRINCIPAL_MEMORY.md",
    "cortex-scan --parts 3 | cortex-strip --jobs 2 | cortex-rank loom --bodies",
    "cortex-scan | cortex-strip | cortex-through cat | cortex-rank loom --explain",
    "cortex-scan | cortex-strip | cortex-through sh -c 'cat >&2; exit 3' 2>/dev/null",
    "cat root/KNOWLEDGE/*/*.md | cortex-strip --unsealed",
    "cat root/KNOWLEDGE/*/*.md root/KNOWLEDGE/*/*.jsonl | cortex-envelope status --unsealed",
])  # fmt: skip
def test_no_use_shows_a_canary(script: str, place: Path) -> None:
    tried(place, script)


def test_what_the_suite_wrote_itself_holds_no_canary(tmp_path: Path) -> None:
    """Governed writes of items full of private text: notes, hot memory, queue, audit, health, retrievals, benchmark."""
    root = tmp_path / "root"
    (root / "KNOWLEDGE").mkdir(parents=True)
    env = environment(CORTEX_MEMORY_ROOT=str(root), HOME=str(tmp_path))
    for kind, item in ITEMS.items():
        marked = {
            key: f"{value}{SECRET}" if key in ("title", "name", "content", "edit", "rationale") else value
            for key, value in item.items()
        }
        if kind != "memory" and kind != "proposal":
            marked["source_session"] = f"s-a{SECRET}"
        command = "propose" if kind == "proposal" else "remember"
        done = run("cortex", command, json.dumps(marked), "--adapter", "claude", "--allow-write", env=env)
        assert done.returncode == 0, done.stdout
        said_nothing(done.stdout + done.stderr, kind)
        for spoiled in (
            {**marked, "type": SECRET},
            {**marked, SECRET: 1},
            {**marked, "content": f"<privateer>{CANARY}"},
        ):
            done = run("cortex", command, json.dumps(spoiled), "--adapter", "claude", "--allow-write", env=env)
            assert done.returncode == 5, done.stdout
            said_nothing(done.stdout + done.stderr, kind, spoiled)
    for name in ("cortex-health", "cortex-log-retrieval search loom", "cortex-log-retrieval search x"):
        shell(name, env=env)
    found = [path for path in root.rglob("*") if path.is_file()]
    assert len(found) >= 7
    for path in found:
        said_nothing(path.read_bytes(), path)
        said_nothing(os.fsencode(path), path)
