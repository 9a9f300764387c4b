"""cortex-envelope: the end of a pipeline, one contract envelope (sections 3 and 10)."""

from __future__ import annotations

from cortex_tools.contract.errors import EXIT_STATUS, CortexError, integrity_error, invalid_input, not_found
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import COMMANDS, STAGES
from cortex_tools.domain import values
from cortex_tools.domain.envelope import Raw
from cortex_tools.domain.expansion import Expansion
from cortex_tools.domain.jsontext import json_text
from cortex_tools.domain.records import Card, Record
from cortex_tools.files.names import shown
from cortex_tools.stages.base import Stage
from cortex_tools.streams.items import Anchor, Corpus, Digest, Item, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DECLARED = STAGES["cortex-envelope"]
EXPORT_FORMAT = "lifeos-cortex-export/v1"
REBUILD_FORMAT = "lifeos-cortex-canonical-rebuild/v1"
MODE = "local-read-only"


def build(arguments: Arguments, now_ms: int) -> Envelope:
    """Raises invalid_input for an unknown command, and for values outside their bounds."""
    command, *rest = arguments.positionals or [""]
    if command not in COMMANDS:
        raise invalid_input(f"cortex-envelope takes one of {', '.join(COMMANDS)} as its first argument")
    return Envelope(command, _answer(command, rest, arguments), _refusal(arguments))


def _refusal(arguments: Arguments) -> CortexError | None:
    if "--refuse" not in arguments.options:
        return None
    code, message = arguments.texts("--refuse")
    if code not in EXIT_STATUS or not message:
        raise invalid_input(f"--refuse takes one of {', '.join(EXIT_STATUS)} and a message")
    return CortexError(code, message)


def _answer(command: str, rest: list[str], arguments: Arguments) -> _Answer:
    wants_ids = command in ("get", "export")
    least, most = COMMANDS[command].positionals[1:] if wants_ids else (0, 0)
    if "--refuse" not in arguments.options and not least <= len(rest) <= most:
        wanted = f"{least} to {most} IDs" if most else "no further argument"
        raise invalid_input(f"cortex-envelope {command} takes {wanted}, {len(rest)} given")
    if command in ("search", "timeline"):
        page = values.count(_DECLARED.options["--page"], arguments.text("--page")) or 0
        size = values.count(_DECLARED.options["--page-size"], arguments.text("--page-size")) or 0
        return _Cards(command, page, size)
    for name in ("--page", "--page-size"):
        if name in arguments.options:
            raise invalid_input(f"{name} goes with search and timeline")
    if wants_ids:
        return _Records(rest)
    if command in ("remember", "propose"):
        return _Written()
    return _Status() if command == "status" else _Rebuild()


def schema() -> bytes:
    """The envelope's JSON Schema, as it ships with the package."""
    from importlib.resources import files

    return files("cortex_tools").joinpath("schemas", "lifeos-cortex-v1.schema.json").read_bytes()


class Envelope(Stage):
    """Takes what its command needs; `data` gives the answer once all has gone by."""

    gathers = True

    def __init__(self, command: str, answer: _Answer, refusal: CortexError | None) -> None:
        self.command = command
        self._answer = answer
        self._refusal = refusal

    def take(self, item: Item) -> None:
        if self._refusal is None:
            self._answer.take(item)

    def partial(self) -> Any:
        return self._answer.partial()

    def absorb(self, partial: Any) -> None:
        self._answer.absorb(partial)

    def data(self) -> Raw:
        """The envelope's data as JSON; raises CortexError where the answer is a failure."""
        if self._refusal is not None:
            raise self._refusal
        return self._answer.data()


class _Answer:
    """What one command collects and answers."""

    takes = ""

    def take(self, item: Item) -> None:
        raise integrity_error(f"a line of kind {item.kind} has no place here; this command takes {self.takes}")

    def partial(self) -> Any:
        return None

    def absorb(self, partial: Any) -> None:
        pass

    def data(self) -> Raw:
        raise NotImplementedError


class _Status(_Answer):
    takes = "record lines below one corpus line (cortex-scan | cortex-strip)"

    def __init__(self) -> None:
        self._records = 0
        self._root: str | None = None

    def take(self, item: Item) -> None:
        if isinstance(item, Record):
            self._records += 1
        elif isinstance(item, Corpus):
            self._root = item.root
        else:
            super().take(item)

    def partial(self) -> int:
        return self._records

    def absorb(self, partial: int) -> None:
        self._records += partial

    def data(self) -> Raw:
        if self._root is None:
            raise integrity_error("status needs the corpus line of cortex-scan, with the root; do not filter it away")
        root = json_text(self._root)
        return Raw(f'{{"canonical":{{"root":{root},"records":{self._records}}},"mode":"{MODE}","indexes":[]}}')


class _Cards(_Answer):
    """search and timeline: one page of cards, with an expansion or an anchor."""

    def __init__(self, command: str, page: int, page_size: int) -> None:
        self._search = command == "search"
        self.takes = "card lines and an expansion" if self._search else "card lines below one anchor line"
        self._page = page
        self._page_size = page_size
        self._total = 0
        self._shown: list[Card] = []
        self._expansion: Expansion | None = None
        self._anchor: Anchor | None = None

    def take(self, item: Item) -> None:
        if isinstance(item, Card):
            if (self._page - 1) * self._page_size <= self._total < self._page * self._page_size:
                self._shown.append(item)
            self._total += 1
        elif isinstance(item, Expansion) and self._search and self._expansion is None:
            self._expansion = item
        elif isinstance(item, Anchor) and not self._search and self._anchor is None:
            self._anchor = item
        elif not isinstance(item, Corpus):
            super().take(item)

    def data(self) -> Raw:
        items = ",".join(card.json() for card in self._shown)
        text = f'{{"items":[{items}],"total":{self._total},"page":{self._page},"page_size":{self._page_size}'
        if self._expansion is not None:
            text += f',"expansion":{self._expansion.json()}'
        if not self._search:
            if self._anchor is None:
                raise integrity_error("timeline needs the anchor line of cortex-window; do not filter it away")
            text += f',"anchor":{json_text({"id": self._anchor.id, "date": self._anchor.date})}'
        return Raw(text + "}")


class _Records(_Answer):
    """get and export: the records asked for, in that order, repeats kept, all or none."""

    takes = "record lines"

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids
        self._wanted = frozenset(ids)
        self._found: dict[str, str] = {}

    def take(self, item: Item) -> None:
        if isinstance(item, Record):
            if item.id in self._wanted:
                self._found[item.id] = item.json()
        elif not isinstance(item, Corpus):
            super().take(item)

    def partial(self) -> dict[str, str]:
        return self._found

    def absorb(self, partial: dict[str, str]) -> None:
        self._found.update(partial)

    def data(self) -> Raw:
        missing = [shown(identifier) for identifier in dict.fromkeys(self._ids) if identifier not in self._found]
        if missing:
            others = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
            raise not_found(f"no valid record has the ID {', '.join(missing[:10])}{others}; nothing is given")
        items = ",".join(self._found[identifier] for identifier in self._ids)
        return Raw(f'{{"format":"{EXPORT_FORMAT}","items":[{items}]}}')


class _Rebuild(_Answer):
    """rebuild: the digests of two independent passes."""

    takes = "two digest lines, each below its own corpus line"

    def __init__(self) -> None:
        self._digests: list[Digest] = []
        self._head: Corpus | None = None

    def take(self, item: Item) -> None:
        if isinstance(item, Digest) and len(self._digests) < 2:
            self._digests.append(item)
        elif not isinstance(item, Corpus):
            super().take(item)
        elif self._head is None:
            self._head = item
        elif item.root != self._head.root:
            raise integrity_error("the passes of rebuild read different memory roots; give both the same one")

    def data(self) -> Raw:
        if len(self._digests) != 2:
            raise integrity_error(f"rebuild needs two digests, the stream holds {len(self._digests)}")
        first, second = self._digests
        equivalent = "true" if first.sha256 == second.sha256 and first.records == second.records else "false"
        return Raw(
            f'{{"format":"{REBUILD_FORMAT}","canonical_digest":"{first.sha256}","rebuilt_digest":"{second.sha256}",'
            f'"equivalent":{equivalent},"records":{first.records},"indexes":[]}}'
        )


class _Written(_Answer):
    """remember and propose: the one result of a write."""

    takes = "one result line (cortex-write)"

    def __init__(self) -> None:
        self._result: Result | None = None

    def take(self, item: Item) -> None:
        if isinstance(item, Result) and self._result is None:
            self._result = item
        elif not isinstance(item, Corpus):
            super().take(item)

    def data(self) -> Raw:
        if self._result is None:
            raise integrity_error("the stream holds no result line; feed it from cortex-write")
        from cortex_tools.stages import write  # not on the path of a read

        return Raw(write.data(self._result))
