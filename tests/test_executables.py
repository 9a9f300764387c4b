"""What the executables of the read side say of bad input and bad values; tests/test_alike.py is about all of them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import NamedTuple

import pytest

from cortex_tools.contract.errors import EXIT_STATUS
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS
from tests.support import BIN, SAMPLE, failure, run, with_options

# Name: arguments that succeed, and the stream it reads ("" for what reads none).  ROOT stands for the corpus.
READ_SIDE = {
    "cortex": (["status", "--memory-root", "ROOT"], ""),
    "cortex-plan": (["search", "loom", "--memory-root", "ROOT"], ""),
    "cortex-scan": (["--memory-root", "ROOT"], ""),
    "cortex-strip": ([], "listing"),
    "cortex-select": (["--valid"], "records"),
    "cortex-rank": (["loom"], "records"),
    "cortex-window": (["--anchor", "2024-06-01", "--before", "100", "--after", "100"], "records"),
    "cortex-expand": (["idea-tension-logger"], "records"),
    "cortex-digest": ([], "records"),
    "cortex-card": ([], "records"),
    "cortex-through": (["cat"], "records"),
    "cortex-unwrap": ([], "answer"),
    "cortex-envelope": (["status"], "records"),
}
ALL = list(READ_SIDE)
READERS = [name for name in ALL if READ_SIDE[name][1] in ("listing", "records")]
# The end of a command line: its failures are envelopes on standard output, and silence on standard error.
ENVELOPES = ("cortex", "cortex-plan", "cortex-envelope")


class Streams(NamedTuple):
    root: str
    listing: bytes
    records: bytes
    answer: bytes


def streams_of(root: str) -> Streams:
    listing = run("cortex-scan", "--memory-root", root).stdout
    answer = run("cortex", "get", "idea-tension-logger", "--memory-root", root).stdout
    return Streams(root, listing, run("cortex-strip", input=listing).stdout, answer)


def command_line(name: str, streams: Streams) -> tuple[list[str], bytes]:
    """Arguments and standard input with which the executable succeeds."""
    arguments, reads = READ_SIDE[name]
    return [streams.root if word == "ROOT" else word for word in arguments], getattr(streams, reads or "x", b"")


@pytest.fixture(scope="module")
def streams() -> Streams:
    return streams_of(str(SAMPLE))


def refused(done: subprocess.CompletedProcess[bytes], name: str, code: str) -> str:
    """The message of an executable that failed as it must, on the channel that is its own."""
    assert b"Traceback" not in done.stderr
    if name in ENVELOPES:
        assert done.stderr == b""
        return failure(done, EXIT_STATUS[code], code)
    error, seal = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert (error["kind"], error["code"], error["exit"], error["stage"]) == ("error", code, EXIT_STATUS[code], name)
    assert seal["kind"] == "seal" and done.returncode == EXIT_STATUS[code]
    assert done.stderr.decode() == f"{name}: {code}: {error['message']}\n"
    return str(error["message"])


def test_every_read_executable_is_declared_and_installed() -> None:
    assert set(READ_SIDE) <= set(EXECUTABLES)
    for name in ALL:
        assert os.access(BIN / name, os.X_OK)


@pytest.mark.parametrize("name", READERS)
def test_empty_input_is_no_stream(name: str, streams: Streams) -> None:
    """Nothing on standard input means that the stage before died, not that there is nothing to find."""
    arguments, _ = command_line(name, streams)
    assert "cortex-scan" in refused(run(name, *arguments), name, "integrity_error")


@pytest.mark.parametrize("name", READERS)
def test_a_stream_of_another_kind_gets_no_answer(name: str, streams: Streams) -> None:
    """Notes that nobody has read are never counted as none: refused at once, or passed on to one who refuses."""
    arguments, _ = command_line(name, streams)
    if name == "cortex-strip":
        assert "record" in refused(run(name, input=streams.records), name, "integrity_error")
        return
    done = run(name, *arguments, input=streams.listing)
    if name in ("cortex-rank", "cortex-window", "cortex-digest"):  # their answer is over all records
        assert "cortex-strip" in refused(done, name, "integrity_error")
    elif name == "cortex-expand":
        refused(done, name, "not_found")
    elif name == "cortex-envelope":
        assert "file" in refused(done, name, "integrity_error")
    else:
        assert (done.returncode, done.stdout.splitlines()[:-1]) == (0, streams.listing.splitlines()[:-1])
        ended = run("cortex-envelope", "search", input=done.stdout)
        assert "file" in refused(ended, "cortex-envelope", "integrity_error")


@pytest.mark.parametrize("name", READERS)
def test_a_broken_seal_is_refused(name: str, streams: Streams) -> None:
    arguments, data = command_line(name, streams)
    done = run(name, *arguments, input=data.replace(b'"bytes":', b'"bytes":1', 1))
    message = refused(done, name, "integrity_error")
    assert "seal" in message and "altered" in message


@pytest.mark.parametrize("name", ALL)
def test_a_value_option_without_its_value_or_given_twice_is_invalid_input(name: str, streams: Streams) -> None:
    arguments, data = command_line(name, streams)
    declared = COMMANDS[arguments[0]] if name in ("cortex", "cortex-plan") else EXECUTABLES[name]
    options = [option for option in declared.options.values() if option.name not in arguments]
    for option in options:
        if option.values and option.kind not in ("any", "refusal"):
            for words in ([option.name], [option.name, ""], [option.name, "--unsealed"]):
                given = words if EXECUTABLES[name].ends_options else [*arguments, *words]
                done = run(name, *given, input=data)
                assert option.name in refused(done, name, "invalid_input")
        if not option.repeatable:
            value = ["1"] * option.values
            twice = with_options(name, arguments, *[option.name, *value] * 2)
            done = run(name, *twice, input=data)
            assert "twice" in refused(done, name, "invalid_input")
            break  # the grammar is one: the rest of the table is its own test's
