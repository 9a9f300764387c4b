"""The library (section 11): `run_cortex` and `create_cortex_adapter`.

Both run the plans of the command line in the calling process: nothing is printed, nothing forked, the
process never exited.  Arguments are values, never options, whatever they begin with.
"""

from __future__ import annotations

import json
import math

from cortex_tools.contract.errors import invalid_input
from cortex_tools.contract.grammar import Arguments, check_adapter
from cortex_tools.contract.options import ADAPTERS
from cortex_tools.domain.capture import create_capture_envelope, ingest_capture_envelope, is_capture_valid_at
from cortex_tools.domain.envelope import Answer, Raw
from cortex_tools.domain.privacy import strip_private
from cortex_tools.driver import respond
from cortex_tools.driver.request import checked_request
from cortex_tools.driver.run import Layout
from cortex_tools.driver.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Outcome = tuple[int, dict[str, Any]]

__all__ = [
    "CortexAdapter",
    "Runtime",
    "create_capture_envelope",
    "create_cortex_adapter",
    "ingest_capture_envelope",
    "is_capture_valid_at",
    "run_cortex",
    "strip_private",
]


def run_cortex(args: Iterable[str], runtime: Runtime | None = None) -> Outcome:
    """What `cortex ARGS...` would answer, as (exit status, envelope).

    `args` is a command line, so that options in it are options; `runtime` injects the memory root, the
    writer and the clock.  Never raises for anything in the arguments or the corpus.
    """
    try:
        argv = None if isinstance(args, str) else list(args)
    except TypeError:
        argv = None
    if argv is None or not all(isinstance(argument, str) for argument in argv):
        return _outcome(respond.answer("", _refuse("the arguments are a sequence of strings")))
    return _outcome(respond.respond(argv, runtime or Runtime(), Layout()))


def create_cortex_adapter(name: str, runtime: Runtime | None = None) -> CortexAdapter:
    """An adapter for one of the four identities.

    With any other name every call of it is invalid_input.  The identity grants nothing.
    """
    return CortexAdapter(name, runtime or Runtime())


class CortexAdapter:
    """The contract's commands as methods; each answers (exit status, envelope).  Immutable."""

    __slots__ = ("_name", "_runtime")

    def __init__(self, name: str, runtime: Runtime) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_runtime", runtime)

    def __setattr__(self, attribute: str, value: object) -> None:
        raise AttributeError("a Cortex adapter is immutable")

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError("a Cortex adapter is immutable")

    @property
    def name(self) -> str:
        return self._name  # type: ignore[attr-defined, no-any-return]

    def status(self) -> Outcome:
        return self._call("status", [])

    def search(self, query: str) -> Outcome:
        return self._call("search", [query])

    def timeline(self, anchor: str) -> Outcome:
        return self._call("timeline", [], {"--anchor": anchor})

    def get(self, *ids: str) -> Outcome:
        return self._call("get", list(ids))

    def export(self, *ids: str) -> Outcome:
        return self._call("export", list(ids))

    def remember(self, item: Any, options: Any = None) -> Outcome:
        """Persist an item; read-only unless `options` is exactly {"allow_write": True}."""
        return self._write("remember", item, options)

    def propose(self, item: Any, options: Any = None) -> Outcome:
        """Queue a proposal; read-only unless `options` is exactly {"allow_write": True}."""
        return self._write("propose", item, options)

    def _call(self, command: str, positionals: list[str], options: dict[str, str | bool] | None = None) -> Outcome:
        def work() -> Raw:
            check_name(self.name)
            given = [*positionals, *(options or {}).values()]
            if not all(isinstance(value, str) for value in given):
                raise invalid_input(f"{command} takes strings")
            arguments = Arguments({"--adapter": self.name, **(options or {})}, positionals)
            if any(value == "" for value in arguments.options.values()):
                raise invalid_input(f"{command} was given an empty value")
            request = checked_request(command, lambda _: arguments)
            return respond.execute(request, self._runtime_given(), Layout())

        return _outcome(respond.answer(command, work))

    def _write(self, command: str, item: Any, options: Any) -> Outcome:
        def work() -> Raw:
            from cortex_tools.driver.writes import run_write

            check_name(self.name)
            granted = _grants(options)
            payload = _as_json(item)
            given: dict[str, str | bool | list[str]] = {"--adapter": self.name}
            if granted:
                given["--allow-write"] = True
            request = checked_request(command, lambda _: Arguments(given, [payload]))
            return run_write(request, self._runtime_given())

        return _outcome(respond.answer(command, work))

    def _runtime_given(self) -> Runtime:
        return self._runtime  # type: ignore[attr-defined, no-any-return]


def check_name(name: object) -> None:
    """Raise invalid_input for an identity that is none of the four."""
    if not isinstance(name, str):
        raise invalid_input(f"the adapter's name must be one of {', '.join(ADAPTERS)}")
    check_adapter(name)


def _grants(options: Any) -> bool:
    if options is None:
        return False
    if not isinstance(options, dict) or set(options) - {"allow_write"}:
        raise invalid_input('the options of a write are {"allow_write": True} or {"allow_write": False}, nothing else')
    granted = options.get("allow_write", False)
    if type(granted) is not bool:
        raise invalid_input("allow_write must be True or False")
    return granted


def _as_json(item: Any) -> str:
    """The item as JSON text; raises invalid_input where it is no JSON value."""
    try:
        if not _is_json(item):
            raise invalid_input("the item is no JSON value")
        text = json.dumps(item, ensure_ascii=False)
        text.encode()
    except (RecursionError, ValueError):
        raise invalid_input("the item is no JSON value: too deep, or text that is not UTF-8") from None
    return text


def _is_json(value: Any) -> bool:
    if value is None or isinstance(value, (str, bool, int)):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(_is_json(part) for part in value)
    return isinstance(value, dict) and all(isinstance(key, str) and _is_json(part) for key, part in value.items())


def _refuse(message: str) -> Any:
    def work() -> Raw:
        raise invalid_input(message)

    return work


def _outcome(answer: Answer) -> Outcome:
    return answer.status, answer.envelope
