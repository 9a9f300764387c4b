"""The filters that search and timeline share: three exact fields, and bounds on created (sections 4 and 8)."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import Command
from cortex_tools.domain import values
from cortex_tools.domain.records import Card, Record


def build(command: Command, arguments: Arguments) -> Filters:
    """Raises invalid_input for a bound that is no timestamp."""
    from_ms = values.time(command.options["--from"], arguments.text("--from"))
    to_ms = values.time(command.options["--to"], arguments.text("--to"))
    type, source, session = (_any_of(arguments, name) for name in ("--type", "--source", "--session"))
    return Filters(type, source, session, from_ms, to_ms)


def _any_of(arguments: Arguments, name: str) -> frozenset[str] | None:
    """The values given; an executable may take several, a contract command takes one."""
    value = arguments.text(name)
    values = arguments.texts(name) if value is None else [value]
    return frozenset(values) if values else None


class Filters:
    """None stands for a filter that was not given; bounds are ms since 1970, both inclusive.

    `type`, `source` and `session` pass where they equal any of the given values.
    """

    __slots__ = ("_from", "_session", "_source", "_to", "_type")

    def __init__(
        self,
        type: frozenset[str] | None,
        source: frozenset[str] | None,
        session: frozenset[str] | None,
        from_ms: int | None,
        to_ms: int | None,
    ) -> None:
        self._type = type
        self._source = source
        self._session = session
        self._from = from_ms
        self._to = to_ms

    def keep(self, item: Record | Card, created_ms: int) -> bool:
        """Whether a record or card created at `created_ms` passes all of them."""
        return (
            (self._type is None or item.type in self._type)
            and (self._source is None or item.source in self._source)
            and (self._session is None or item.session in self._session)
            and (self._from is None or created_ms >= self._from)
            and (self._to is None or created_ms <= self._to)
        )
