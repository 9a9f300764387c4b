"""remember and propose: permission and payload, before anything is touched (section 10)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.options import Command
from cortex_tools.domain.envelope import Raw
from cortex_tools.driver.request import Request
from cortex_tools.driver.runtime import Runtime
from cortex_tools.files.root import requested_root
from cortex_tools.files.stdio import STDIN
from cortex_tools.stages import write


def run_write(request: Request, runtime: Runtime) -> Raw:
    """The data of the write's envelope; raises CortexError in the order of section 4."""
    command, arguments = request.command.name, request.arguments
    check_payloads(request)
    adapter = write.permitted(command, arguments)
    data = _payload(arguments.positionals[0], request.command)
    requested = requested_root(runtime.memory_root, arguments.text("--memory-root"))
    _, result = write.perform(command, adapter, data, requested, runtime.memory_add, runtime.now_ms)
    return Raw(write.data(result))


def check_payloads(request: Request) -> None:
    """Raise, for another number of payloads than one, write_refused where permission is missing, else invalid_input."""
    number = len(request.arguments.positionals)
    if number != 1:
        write.permitted(request.command.name, request.arguments)
        raise invalid_input(f"{request.command.name} takes exactly one JSON payload, {number} given")


def _payload(argument: str, command: Command) -> bytes:
    if argument == "-":
        if os.isatty(STDIN):  # else it would wait for what nobody knows is wanted
            raise invalid_input(
                f"{command.name} - reads the payload from standard input, which is a terminal; "
                f"for example: {command.examples[0]}"
            )
        return write.read_payload()
    try:
        return argument.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise invalid_input("the payload is not UTF-8") from None
