"""cortex-through: foreign filters between two stages, with the seal kept."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.contract.errors import EXIT_STATUS
from tests.support import SAMPLE, environment, failure, note, row, run, shell, write_corpus
from tests.test_streams import of_kind, sealed, seals, segments, split_lines

NAME = "cortex-through"
SCAN = f"cortex-scan --memory-root {shlex.quote(str(SAMPLE))}"
PYTHON = shlex.quote(sys.executable)
TO_CARD = 'kind: "card", id, type, created, updated, provenance, score: 0, est_tokens: 1'
RECORD_TITLES = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    value = json.loads(line)\n"
    "    assert value['kind'] == 'record'\n"
    "    print(json.dumps({**value, 'title': value['title'].upper()}))\n"
)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The records of a corpus whose lines hold what a careless filter breaks."""
    root = write_corpus(
        tmp_path_factory.mktemp("odd"),
        {
            "KNOWLEDGE/crlf.md": note("crlf", "loom\r\nvat").replace("\n", "\r\n"),
            "KNOWLEDGE/chinese.md": note("織機", "織機與染缸"),
            "KNOWLEDGE/lines.md": note("lines", "loom\u2028vat\u2029end", type="idea"),
            "KNOWLEDGE/emoji.jsonl": row("emoji 🧵", content='loom 🧵 \\ "quoted"', related=["lines"]) + row("two"),
            "HOT_MEMORY.md": note("hot", 'say "loom" \\n \\u003cb\\u003e <b>bold</b>', type="idea"),
        },
    )
    done = shell(f"cortex-scan --memory-root {root} | cortex-strip")
    assert done.returncode == 0
    return done.stdout


@pytest.fixture(scope="module")
def in_parts() -> bytes:
    return shell(f"{SCAN} --parts 3 | cortex-strip").stdout


def through(stream: bytes, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return run(NAME, *words, input=stream, **options)


def refused(done: subprocess.CompletedProcess[bytes], code: str, *mentions: str) -> None:
    """It failed with one error line, sealed and said once, and nothing else on standard output."""
    (error,) = (value for segment in segments(done.stdout) for value in segment)
    assert (error["kind"], error["code"], error["stage"]) == ("error", code, NAME), error
    assert done.returncode == EXIT_STATUS[code]
    assert f"{NAME}: {code}: {error['message']}\n".encode() in done.stderr
    for word in mentions:
        assert word in error["message"], error
    assert b"Traceback" not in done.stderr


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


# A filter, and the stage that must give the same lines.
FILTERS = {
    "cat": (["cat"], "cat"),
    "jq": (["jq", "-c", 'select(.type == "idea")'], "cortex-select --type idea"),
    "jq with sorted keys": (["jq", "-cS", "."], "cat"),
    "jq in ASCII": (["jq", "-ca", "."], "cat"),
    "grep": (["grep", '"type":"idea"'], "cortex-select --type idea"),
    "grep -v": (["grep", "-v", '"type":"idea"'], "cortex-select --type log"),
    "sed": (["sed", "-n", '/"type":"idea"/p'], "cortex-select --type idea"),
    "awk": (["awk", '/"type":"idea"/'], "cortex-select --type idea"),
    "Miller": (["mlr", "--ijsonl", "--ojsonl", "filter", '$type == "idea"'], "cortex-select --type idea"),
    "blank lines": (["sed", "G"], "cat"),
    "CRLF": (["sed", "s/$/\r/"], "cat"),
    "no line end at the end": ([sys.executable, "-c", "import sys; print(end=sys.stdin.read()[:-1])"], "cat"),
    "a shell": (["sh", "-c", "cat | cat"], "cat"),
}


@pytest.mark.parametrize("case", FILTERS)
def test_a_filter_gives_what_a_stage_would(case: str, records: bytes) -> None:
    words, stage = FILTERS[case]
    needs(words[0])
    if case == "grep -v":
        records = b"".join(line for line in split_lines(records) if b'"memory"' not in line and b'"seal"' not in line)
        records = sealed(split_lines(records))
    done = through(records, *words)
    assert (done.returncode, done.stderr) == (0, b"")
    expected = shell(stage, input=records).stdout
    assert split_lines(done.stdout)[:-1] == split_lines(expected)[:-1]
    (seal,) = seals(done.stdout)
    assert seal["stage"] == NAME and "unsealed" not in seal and segments(done.stdout)


def test_a_script_changes_records_and_they_are_sealed_anew(records: bytes) -> None:
    done = through(records, sys.executable, "-c", RECORD_TITLES)
    assert done.returncode == 0
    before, after = of_kind(records, "record"), of_kind(done.stdout, "record")
    assert after == [{**record, "title": record["title"].upper()} for record in before]
    answer = run("cortex-envelope", "status", input=done.stdout)
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_a_sort_runs_once_over_all_segments_and_its_order_is_kept(in_parts: bytes) -> None:
    done = through(in_parts, "sort", "-r", env=environment(LC_ALL="C"))
    (segment,) = segments(done.stdout)
    whole = shell(f"{SCAN} | cortex-strip").stdout
    assert [line for line in split_lines(done.stdout) if b'"kind":"corpus"' in line] == split_lines(whole)[:1]
    lines = [line for line in split_lines(whole) if line.startswith(b'{"kind":"record"')]
    assert split_lines(done.stdout)[1:-1] == sorted(lines, reverse=True)
    assert segment[0] == of_kind(whole, "corpus")[0]
    assert (
        run("cortex-digest", input=done.stdout).stdout.splitlines()[1]
        == (run("cortex-digest", input=whole).stdout.splitlines()[1])
    )


def test_the_filter_sees_record_and_card_lines_alone_and_all_others_stay(tmp_path: Path) -> None:
    needs("tee")
    head = f"{SCAN} | cortex-strip | cortex-expand idea-tension-logger | cortex-rank loom"
    direct = shell(f"{head} | cortex-envelope search")
    done = shell(f"{head} | {NAME} tee seen | cortex-envelope search", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, direct.stdout) and b'"expansion"' in done.stdout
    seen = (tmp_path / "seen").read_bytes()
    assert {json.loads(line)["kind"] for line in split_lines(seen)} == {"card"}
    assert seen.splitlines() == [line for line in shell(head).stdout.splitlines() if line.startswith(b'{"kind":"card"')]
    head = f"{SCAN} | cortex-strip | cortex-window --anchor 2024-06-01"
    assert shell(f"{head} | {NAME} cat | cortex-envelope timeline").stdout == (
        shell(f"{head} | cortex-envelope timeline").stdout
    )


def test_a_listing_passes_untouched_and_can_still_be_stripped() -> None:
    listing = shell(SCAN).stdout
    done = through(listing, "cat")
    assert split_lines(done.stdout)[:-1] == split_lines(listing)[:-1]
    assert run("cortex-envelope", "status", input=run("cortex-strip", input=done.stdout).stdout).returncode == 0


def test_no_record_in_and_none_out_is_a_sound_stream(records: bytes) -> None:
    empty = run("cortex-select", "--type", "nothing", input=records).stdout
    done = through(empty, "cat")
    assert (done.returncode, split_lines(done.stdout)[:-1]) == (0, split_lines(empty)[:-1])
    refused(through(empty, "cat", os.devnull, __file__), "integrity_error", "line 1")


# --- statuses ------------------------------------------------------------------------------------------------------


def test_grep_s_status_for_no_match_is_a_failure_unless_it_is_accepted(records: bytes) -> None:
    refused(through(records, "grep", "nowhere"), "integrity_error", "grep", "status 1", "--accept 1")
    done = through(records, "--accept", "1", "grep", "nowhere")
    assert (done.returncode, done.stderr, of_kind(done.stdout, "record")) == (0, b"", [])
    answer = run("cortex-envelope", "search", input=run("cortex-card", input=done.stdout).stdout)
    assert json.loads(answer.stdout)["data"]["total"] == 0
    bad = through(records, "--accept", "1", "grep", "(", "-E")
    assert b"grep" in bad.stderr.splitlines()[0]  # its own words
    refused(bad, "integrity_error", "status 2")
    assert through(records, "--accept", "1", "--accept", "2", "sh", "-c", "cat; exit 2").returncode == 0


FAILING = {
    "a status": (["sh", "-c", "cat; exit 3"], "status 3"),
    "a status that is not accepted": (["--accept", "4", "sh", "-c", "cat; exit 3"], "status 3"),
    "a signal": (["sh", "-c", "cat; kill -9 $$"], "signal 9"),
    "a signal, whatever is accepted": (["--accept", "9", "--accept", "137", "sh", "-c", "cat; kill -9 $$"], "signal 9"),
    "a failure before reading": (["sh", "-c", "exit 3"], "status 3"),
    "half a line, then a failure": (["sh", "-c", "head -c 100; exit 3"], "status 3"),
    "garbage, then a failure": (["sh", "-c", "cat > /dev/null; echo usage; exit 3"], "status 3"),
    "reading one line": (["sed", "q"], "cortex-select --limit"),
    "reading nothing": (["true"], "cortex-select --limit"),
    "reading nothing and closing its input": (["sh", "-c", "exec <&-; sleep 0.1"], "cortex-select --limit"),
    "closing its output and reading nothing": (["sh", "-c", "exec >&-; sleep 0.1"], "cortex-select --limit"),
    "no line of a stream": (["jq", "-c", ".id"], "line 1 of what jq wrote"),
    "pretty lines": (["jq", "."], "jq: -c"),
    "a line twice": (["sed", "p"], "line 2"),
    "a line cut off": (["sed", "s/.$//"], "line 1"),
    "an altered date": (["sed", '2s/"created":"[^"]*/"created":"2024-02-30/'], "line 2"),
    "a key less": (["jq", "-c", "del(.related)"], "line 1"),
    "a key more": (["jq", "-c", ".score = 1"], "line 1"),
    "another kind": (["jq", "-c", f"{{{TO_CARD}}}"], "of kind card"),
    "a kind from elsewhere": (["sh", "-c", 'cat; echo \'{"kind":"anchor","id":null,"date":"2024-01-01"}\''], "anchor"),
    "a seal": (["cortex-select", "--unsealed"], "seal"),
    "an error": (["sh", "-c", "cat; cortex-rank || true"], "error"),
    "a private span": (["sed", '3s/"title":"/&<private>/'], "line 3"),
    "NUL": (["tr", "a", "\\000"], "line 1"),
    "UTF-16": (["iconv", "-t", "UTF-16"], "line 1"),
    "a BOM": (["sh", "-c", "printf '\\357\\273\\277'; cat"], "line 1"),
    "garbage without end": (["yes"], "line 1"),
    "one line without end": ([sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)"], "line"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILING)
def test_a_filter_that_fails_is_a_failure_and_nothing_of_it_is_passed_on(case: str, in_parts: bytes) -> None:
    words, mention = FAILING[case]
    needs(next(word for word in words if word[0] not in "-123456789"))
    done = through(in_parts, *words)
    refused(done, "integrity_error", mention)
    assert b"dobby" not in done.stdout + done.stderr  # no text of a note in a message
    answer = shell("cortex-card | cortex-envelope search", input=done.stdout)
    failure(answer, 4, "integrity_error")


def test_usage_errors_do_not_read(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    cases: list[tuple[list[str], str]] = [
        ([], "needs a command"),
        (["--"], "needs a command"),
        (["--unsealed"], "needs a command"),
        ([""], "empty"),
        (["no-such-program-here"], "no-such-program-here"),
        (["./no-such-program"], "./no-such-program"),
        ([str(tmp_path)], "no command"),
        ([str(plain)], "executable"),
        (["--accept", "cat"], "needs a command"),
        (["--accept", "one", "cat"], "--accept"),
        (["--accept", "0", "cat"], "--accept"),
        (["--accept", "256", "cat"], "--accept"),
        (["--accept"], "--accept"),
        (["--accept", "--unsealed", "cat"], "--accept"),
        (["--nothing", "cat"], "--nothing"),
        (["--unsealed", "--unsealed", "cat"], "twice"),
    ]
    reading, writing = os.pipe()  # stays open: a stage that read would hang
    try:
        for words, mention in cases:
            done = subprocess.run(
                [shutil.which(NAME, path=environment()["PATH"]) or "", *words],
                stdin=reading, capture_output=True, env=environment(), timeout=30,
            )  # fmt: skip
            refused(done, "invalid_input", mention)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_that_is_no_program_of_this_machine_is_refused(records: bytes, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    refused(through(records, str(broken)), "invalid_input", "cannot be run")


def test_all_from_the_command_on_belongs_to_it(records: bytes, tmp_path: Path) -> None:
    """Options of the filter are its own, also those that we have too, and its bytes need be no UTF-8."""
    shown = 'printf "%s\\n" "$@" > "$OUT"; cat'
    words: list[Any] = ["--help", "--version", "--unsealed", "--accept", "--", "-x", "", "two words", b"\xff", "é"]
    for own in ([], ["--"], ["--accept", "1", "--"]):
        out = tmp_path / "words"
        done = through(records, *own, "sh", "-c", shown, "sh", *words, env=environment(OUT=str(out), LC_ALL="C"))
        assert (done.returncode, done.stderr) == (0, b"")
        assert out.read_bytes().splitlines() == [os.fsencode(word) for word in words]
    assert b"Usage" in through(b"", "--help", "cat").stdout
    script = tmp_path / "--odd name"
    script.write_text("#!/bin/sh\nexec cat\n")
    script.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{environment()['PATH']}"
    assert through(records, "--", "--odd name", env=environment(PATH=path)).returncode == 0
