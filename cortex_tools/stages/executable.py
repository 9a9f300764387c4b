"""What all executables of stages share: arguments, standard streams, seals, errors, exit statuses."""

from __future__ import annotations

import os
import time
from functools import partial

from cortex_tools.contract.errors import SUCCESS, CortexError, integrity_error, invalid_input
from cortex_tools.contract.grammar import Arguments, check_utf8, count_positionals, own_words, parse
from cortex_tools.contract.options import STAGES, Command
from cortex_tools.files.stdio import (
    STDIN,
    STDOUT,
    OutputError,
    run,
    say,
    write_all,
)
from cortex_tools.files.walk import NoteFile
from cortex_tools.stages import registry
from cortex_tools.stages.base import Stage
from cortex_tools.stages.census import Census
from cortex_tools.streams.items import Corpus, Item, Seal
from cortex_tools.streams.lines import failure
from cortex_tools.streams.segments import SegmentReader, SegmentWriter, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def main(name: str) -> NoReturn:
    """Run the executable `name` and exit with its status."""
    run(name, partial(_answer, name))


def _answer(name: str, argv: list[str]) -> int:
    own, _ = own_words(STAGES[name], argv)
    if "--help" in own or "--version" in own:
        from cortex_tools.manual.help import show

        return show(name, own)
    if name == "cortex-strip" and "--text" in argv:
        return _text(argv)
    return _envelope(argv) if name == "cortex-envelope" else _stage(name, argv)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _stage(name: str, argv: list[str]) -> int:
    """Any stage but the last: a failure goes down the stream, and is said on standard error where it arose."""
    writer = SegmentWriter(name)
    try:
        _run(name, _arguments(STAGES[name], argv), writer)
    except CortexError as error:
        return _fail(name, error, writer, argv)
    except (OutputError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        return _fail(name, _unexpected(error), writer, argv)
    return SUCCESS


def _text(argv: list[str]) -> int:
    """cortex-strip --text, which is no stage: its failures are said on standard error alone."""
    from cortex_tools.stages import strip_text

    try:
        return strip_text.run(_arguments(STAGES["cortex-strip"], argv))
    except CortexError as error:
        failed = error
    except (OutputError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        failed = _unexpected(error)
    say(f"cortex-strip: {failed.code}: {failed.message}")
    return failed.status


def _unexpected(error: Exception) -> CortexError:
    # By its type alone: its words may quote a note.
    return CortexError("internal_error", f"an unexpected {type(error).__name__} stopped the stage")


def _fail(name: str, error: CortexError, writer: SegmentWriter, argv: list[str]) -> int:
    line = failure(error, name)
    if error.stage is None:
        say(f"{name}: {line.code}: {line.message}")
    if name == "cortex-expand" and "--dot" in argv:
        return error.status  # who reads a graph reads no stream: there is none, and the status tells
    writer.write(line)
    writer.seal()
    return error.status


def _arguments(command: Command, argv: list[str]) -> Arguments:
    arguments = parse(command, argv)
    if not command.ends_options:  # a foreign command gets its bytes as they are
        check_utf8(arguments)
    count_positionals(command, arguments.positionals)
    return arguments


def _run(name: str, arguments: Arguments, writer: SegmentWriter) -> None:
    if name == "cortex-scan":
        from cortex_tools.stages import scan

        scan.run(arguments, writer)
        return
    if name == "cortex-unwrap":
        from cortex_tools.stages import unwrap

        _refuse_terminal(STAGES[name])
        unwrap.run(writer)
        return
    work: Callable[[SegmentReader, SegmentWriter], None]
    if name == "cortex-strip":
        from cortex_tools.stages import strip

        work = partial(strip.run, arguments)
    elif name == "cortex-through":
        from cortex_tools.stages import through

        work = through.build(arguments).run
    else:
        stage = registry.build(name, arguments, now_ms())
        if stage.prints(terminal=os.isatty(STDOUT)):
            from cortex_tools.stages import printing  # not on the path of a stream

            work = partial(printing.run, stage)
        else:
            work = partial(_gather if stage.gathers else _pass_on, stage)
    _refuse_terminal(STAGES[name])
    reader = SegmentReader(STDIN, unsealed=arguments.flag("--unsealed"), complete=name != "cortex-strip")
    if arguments.flag("--unsealed"):
        _warn_unsealed(name)
        writer.unsealed = True
    try:
        work(reader, writer)
    except CortexError as error:
        # A finding of our own gives way to a failure further upstream that has not been read yet.
        raise error if error.stage else reader.upstream_error() or error from None


def _refuse_terminal(command: Command) -> None:
    if os.isatty(STDIN):
        raise invalid_input(
            f"{command.name} reads {command.reads} from standard input, which is a terminal; "
            f"for example: {command.examples[0]}"
        )


def _warn_unsealed(name: str) -> None:
    say(f"{name}: warning: seals are not checked; lines lost on the way go unnoticed")


def _pass_on(stage: Stage, reader: SegmentReader, writer: SegmentWriter) -> None:
    """A stage that answers line by line: a segment out for each segment in."""
    census = Census()
    for item in reader:
        writer.unsealed = reader.unsealed
        if isinstance(item, Seal):
            continue  # ours is written once it is known whether the stage has more to say
        if isinstance(item, Corpus):
            writer.seal()
        _take(stage, item, census, writer)
    census.check()
    for item in stage.finish():
        writer.write(item)
    writer.seal()


def _gather(stage: Stage, reader: SegmentReader, writer: SegmentWriter) -> None:
    """A stage that must see everything first: one segment out, other lines before its own."""
    census = Census()
    heads: list[Corpus] = []
    others: list[Item] = []
    for item in reader:
        if isinstance(item, Corpus):
            heads.append(item)
        elif isinstance(item, NoteFile):
            raise integrity_error("the stream lists notes that nobody has read; put cortex-strip before this stage")
        elif not isinstance(item, Seal):
            census.take(item)
            passed = stage.take(item)
            if passed is not None:
                others.append(passed)
    writer.unsealed = reader.unsealed
    census.check()
    answer = stage.finish()
    first = next(answer, None)  # a failure comes before anything is written
    if heads:
        writer.write(merged(heads))
    for item in others:
        writer.write(item)
    if first is not None:
        writer.write(first)
    for item in answer:
        writer.write(item)
    writer.seal()


def _take(stage: Stage, item: Item, census: Census, writer: SegmentWriter) -> None:
    census.take(item)
    passed = stage.take(item)
    if passed is not None:
        writer.write(passed)


def _envelope(argv: list[str]) -> int:
    """The last stage: reads all, checks all, then prints one envelope."""
    from cortex_tools.domain import envelope as envelopes
    from cortex_tools.stages import envelope

    command = ""
    try:
        arguments = _arguments(STAGES["cortex-envelope"], argv)
        if arguments.flag("--schema"):
            write_all(envelope.schema())
            return SUCCESS
        command = arguments.positionals[0] if arguments.positionals else ""
        answer = envelopes.success(command, _read_all(arguments))
    except CortexError as error:
        answer = envelopes.failed(command, error)
    except (OutputError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 (the last guard of the process)
        answer = envelopes.failed(command, _unexpected(error))
    write_all(answer.line.encode())
    return answer.status


def _read_all(arguments: Arguments) -> envelopes.Raw:
    from cortex_tools.stages import envelope

    stage = envelope.build(arguments, now_ms())
    _refuse_terminal(STAGES["cortex-envelope"])
    passes = 2 if stage.command == "rebuild" else 1
    reader = SegmentReader(STDIN, unsealed=arguments.flag("--unsealed"), passes=passes)
    census = Census()
    try:
        for item in reader:
            if not isinstance(item, Seal):
                census.take(item)
                stage.take(item)
        census.check()
    except CortexError as error:
        raise error if error.stage else reader.upstream_error() or error from None
    if reader.unsealed:
        _warn_unsealed("cortex-envelope")
    return stage.data()


if TYPE_CHECKING:
    from cortex_tools.domain import envelope as envelopes
