"""One declaration of every command and stage: options, positionals, summaries, examples (`executables` has the rest).

The strict parser, the judging of values, help and completion all read these tables (section 4;
stages in docs/streams.md). Nothing here imports anything: it is data on the path of every call.
"""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.errors import EXIT_STATUS

ADAPTERS = ("claude", "hermes", "codex", "subagent")
DEFAULT_ROOT = "~/.claude/LIFEOS/MEMORY"
SHELLS = ("bash", "zsh", "fish")
ROOT_VARIABLE = "CORTEX_MEMORY_ROOT"


class Option:
    """One option. `kind` says how its value is judged: see `domain.values`.

    `values` is how many arguments follow it: 0 makes it a flag.  `choices` are the words that the (first)
    value can be, for completion; empty where it can be anything.
    """

    __slots__ = ("choices", "default", "high", "kind", "low", "metavar", "name", "repeatable", "summary", "values")

    def __init__(
        self,
        name: str,
        kind: str,
        metavar: str,
        summary: str,
        *,
        low: int = 0,
        high: int = 0,
        default: int | None = None,
        values: int = 1,
        repeatable: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.choices = choices
        self.name = name
        self.kind = kind
        self.metavar = metavar
        self.summary = summary
        self.low = low
        self.high = high
        self.default = default
        self.values = values
        self.repeatable = repeatable


def flag(name: str, summary: str) -> Option:
    """An option without a value."""
    return Option(name, "flag", "", summary, values=0)


def _count(name: str, summary: str, low: int, high: int, default: int | None) -> Option:
    return Option(name, "count", "N", summary, low=low, high=high, default=default)


MEMORY_ROOT = Option("--memory-root", "path", "DIR", f"memory root (else ${ROOT_VARIABLE}, else {DEFAULT_ROOT})")
ADAPTER = Option("--adapter", "adapter", "NAME", "who is calling: " + ", ".join(ADAPTERS), choices=ADAPTERS)
TYPE = Option("--type", "text", "TYPE", "only records of exactly this type")
SOURCE = Option("--source", "text", "SOURCE", "only records of exactly this provenance.source")
SESSION = Option("--session", "text", "SESSION", "only records of exactly this provenance.session")
FROM = Option("--from", "time", "TIME", "only records created at or after this timestamp")
TO = Option("--to", "time", "TIME", "only records created at or before this timestamp")
PAGE = _count("--page", "which page, from 1", 1, limits.PAGE, limits.DEFAULT_PAGE)
PAGE_SIZE = _count("--page-size", "cards a page", 1, limits.PAGE_SIZE, limits.DEFAULT_PAGE_SIZE)
RECENCY = Option("--recency", "recency", "WEIGHT", "weight of the updated time beside relevance (default 0)")
EXPAND = Option("--expand", "text", "ID", "also walk the related links breadth-first from this ID")
MAX_NODES = _count(
    "--max-nodes", "expansion: at most N cards", 1, limits.EXPANSION_NODES, limits.DEFAULT_EXPANSION_NODES
)
MAX_TOKENS = _count(
    "--max-tokens", "expansion: at most N estimated tokens", 1, limits.EXPANSION_TOKENS, limits.DEFAULT_EXPANSION_TOKENS
)
ANCHOR = Option("--anchor", "text", "ID|TIME", "the centre: a record's ID, or a timestamp")
BEFORE = _count("--before", "records strictly earlier", 0, limits.NEIGHBOURS, limits.DEFAULT_NEIGHBOURS)
AFTER = _count("--after", "records strictly later", 0, limits.NEIGHBOURS, limits.DEFAULT_NEIGHBOURS)
FROM_CANONICAL = flag("--from-canonical", "required: rebuild from the canonical files")
ALLOW_WRITE = flag("--allow-write", "grant this one call permission to write")
UNSEALED = flag("--unsealed", "accept a stream without seals (validates every line, warns, marks its own seal)")
BODIES = flag("--bodies", "write whole records instead of cards")

FILTERS = (TYPE, SOURCE, SESSION, FROM, TO)


def _any_of(option: Option) -> Option:
    summary = f"{option.summary} (repeatable: any of these)"
    return Option(option.name, option.kind, option.metavar, summary, repeatable=True)


class Command:
    """A contract command or an executable: what it takes and what it is for.

    `positionals` is (metavar, least, most), the metavar as `manual.usage` reads it: ` | ` between
    alternatives, lower case for words that stand for themselves.  `values` names, in the contract's
    order, what is judged once the corpus has proved sound ("query" stands for the positional).  `statuses`
    are the exit statuses of an executable that has its own; None means the contract's.  `ends_options` says
    that the first positional ends the options: from there on all belongs to a foreign command.
    """

    __slots__ = (
        "ends_options",
        "examples",
        "name",
        "options",
        "positionals",
        "reads",
        "statuses",
        "summary",
        "values",
        "writes",
    )

    def __init__(
        self,
        name: str,
        summary: str,
        options: tuple[Option, ...],
        *,
        positionals: tuple[str, int, int] = ("", 0, 0),
        values: tuple[str, ...] = (),
        reads: str = "",
        writes: str = "",
        examples: tuple[str, ...] = (),
        statuses: dict[int, str] | None = None,
        ends_options: bool = False,
    ) -> None:
        self.name = name
        self.ends_options = ends_options
        self.summary = summary
        self.statuses = statuses
        self.options = {option.name: option for option in options}
        self.positionals = positionals
        self.values = values
        self.reads = reads
        self.writes = writes
        self.examples = examples


_COMMON = (MEMORY_ROOT, ADAPTER)
_IDS = ("ID", 1, limits.IDS)
_PAYLOAD = ("JSON", 1, 1)
NOTES = "the notes below the memory root"
_ITEM = "the payload: its argument, or standard input where that is -"

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "status",
            "the shape of the corpus: its pinned root and how many records it holds",
            _COMMON,
            reads=NOTES,
            writes="one JSON envelope",
            examples=("cortex status", "cortex status | jq .data.canonical.records"),
        ),
        Command(
            "search",
            "rank the valid records for a query (BM25) and answer with cards, never bodies",
            (*_COMMON, *FILTERS, PAGE, PAGE_SIZE, RECENCY, EXPAND, MAX_NODES, MAX_TOKENS),
            positionals=("QUERY", 1, 1),
            values=("query", "--from", "--to", "--recency", "--page", "--page-size", "--max-nodes", "--max-tokens"),
            reads=NOTES,
            writes="one JSON envelope with a page of cards",
            examples=('cortex search "loom tension" --type idea', 'cortex search "loom" --expand idea-tension-logger'),
        ),
        Command(
            "timeline",
            "the records created just before and after an anchor",
            (*_COMMON, ANCHOR, BEFORE, AFTER, *FILTERS, PAGE, PAGE_SIZE),
            values=("--anchor", "--from", "--to", "--before", "--after", "--page", "--page-size"),
            reads=NOTES,
            writes="one JSON envelope with a page of cards, in time order",
            examples=(
                "cortex timeline --anchor 2024-06-01 --before 3 --after 3",
                "cortex timeline --anchor idea-tension-logger --type log",
            ),
        ),
        Command(
            "get",
            "the whole records of the given IDs, all of them or none",
            _COMMON,
            positionals=_IDS,
            reads=NOTES,
            writes="one JSON envelope with the records in the order asked for",
            examples=(
                "cortex get idea-tension-logger",
                "cortex get idea-tension-logger log-2025-03-08 | jq -r '.data.items[].title'",
            ),
        ),
        Command(
            "export",
            "like get, for keeping: the same records in the export format",
            _COMMON,
            positionals=_IDS,
            reads=NOTES,
            writes="one JSON envelope with the records, and what they were taken from",
            examples=(
                "cortex export idea-tension-logger > tension.json",
                "cortex export idea-tension-logger log-2025-03-08 | jq '.data.items | length'",
            ),
        ),
        Command(
            "rebuild",
            "prove that two independent readings of the canonical files agree",
            (*_COMMON, FROM_CANONICAL),
            reads=NOTES,
            writes="one JSON envelope with both digests",
            examples=("cortex rebuild --from-canonical", "cortex rebuild --from-canonical | jq .data.equivalent"),
        ),
        Command(
            "remember",
            "persist one memory, idea or knowledge item (a JSON payload, or - for standard input)",
            (*_COMMON, ALLOW_WRITE),
            positionals=_PAYLOAD,
            reads=_ITEM,
            writes="the item below the memory root, and one JSON envelope",
            examples=(
                "cortex remember - --adapter claude --allow-write < item.json",
                'cortex remember \'{"type":"idea","title":"Heddles","content":"Wax them in spring."}\''
                " --adapter claude --allow-write",
            ),
        ),
        Command(
            "propose",
            "queue one proposal for a person to decide (a JSON payload, or - for standard input)",
            (*_COMMON, ALLOW_WRITE),
            positionals=_PAYLOAD,
            reads=_ITEM,
            writes="the proposal into the queue below the memory root, and one JSON envelope",
            examples=(
                "cortex propose - --adapter claude --allow-write < proposal.json",
                "cortex propose - --adapter claude --allow-write < proposal.json | jq .data.result",
            ),
        ),
    )
}

# The stages; `executables` has all that can be run.
STAGES = {
    command.name: command
    for command in (
        Command(
            "cortex-scan",
            "list the corpus: pin the root, walk it, apply every check that needs no content",
            (
                MEMORY_ROOT,
                _count("--parts", "split the listing into N segments of about equal bytes", 1, limits.CORPUS_FILES, 1),
            ),
            reads="the folders below the memory root, never a note's content",
            writes="a corpus line and a file line for each note",
            examples=("cortex-scan | cortex-strip | cortex-select --valid | cortex-card", "cortex-scan --parts 4"),
        ),
        Command(
            "cortex-strip",
            "read the listed notes behind the privacy boundary and parse them into records",
            (
                _count("--jobs", "read with N processes", 1, limits.JOBS, 1),
                flag("--text", "be a filter for any text instead: plain text in, stripped plain text out"),
                UNSEALED,
            ),
            reads="file lines, and the notes that they name",
            writes="record lines, private spans removed",
            examples=(
                "cortex-scan | cortex-strip | jq -r 'select(.kind==\"record\").title'",
                "cortex-scan | cortex-strip --jobs 8 | cortex-envelope status",
                "echo 'said <private>and not said</private>' | cortex-strip --text",
            ),
        ),
        Command(
            "cortex-select",
            "keep the records that are valid and match the filters",
            (
                flag("--valid", "only records valid now"),
                Option("--at", "time", "TIME", "only records valid at this timestamp"),
                *(_any_of(option) for option in (TYPE, SOURCE, SESSION)),
                FROM,
                TO,
                Option("--id", "any", "ID", "only this record (repeatable: any of these)", repeatable=True),
                _count("--limit", "at most N records", 0, limits.PAGE, None),
                UNSEALED,
            ),
            reads="record lines (or cards, for every filter but validity)",
            writes="those that match",
            examples=(
                "cortex-scan | cortex-strip | cortex-select --at 2024-05-01 --type idea | cortex-card",
                "cortex-scan | cortex-strip | cortex-select --type idea --type log --limit 3 | cortex-card",
                "cortex-scan | cortex-strip | cortex-select --id idea-vat-monitor | cortex-digest",
            ),
        ),
        Command(
            "cortex-rank",
            "rank records for a query with BM25, best first",
            (
                RECENCY,
                Option(
                    "--tokens",
                    "text",
                    "SORT",
                    "what a term is: ascii (default, the contract's) or unicode",
                    choices=("ascii", "unicode"),
                ),
                flag("--explain", "tell after each card what its score is made of (on a terminal: as a table)"),
                BODIES,
                UNSEALED,
            ),
            positionals=("QUERY", 1, 1),
            values=("query", "--recency"),
            reads="record lines",
            writes="card lines, best first; with --explain an explanation line after each",
            examples=(
                'cortex-scan | cortex-strip | cortex-rank "loom" | jq -r \'select(.kind=="card").id\'',
                'cortex-scan | cortex-strip | cortex-select --valid | cortex-rank "loom" --bodies | cortex-digest',
                "cortex-scan | cortex-strip | cortex-rank \"loom tension\" --explain | jq 'select(.terms).terms'",
                'cortex-scan | cortex-strip | cortex-rank "café" --tokens unicode',
            ),
        ),
        Command(
            "cortex-window",
            "the records created just before and after an anchor, in time order",
            (ANCHOR, BEFORE, AFTER, *FILTERS, BODIES, UNSEALED),
            values=("--anchor", "--from", "--to", "--before", "--after"),
            reads="record lines (or cards, without --bodies)",
            writes="an anchor line and card lines",
            examples=(
                "cortex-scan | cortex-strip | cortex-select --valid | cortex-window --anchor 2024-06-01",
                "cortex-scan | cortex-strip | cortex-window --anchor idea-tension-logger --type log",
                'cortex-scan | cortex-strip | cortex-rank "loom" | cortex-window --anchor 2024-06-01 --after 2',
            ),
        ),
        Command(
            "cortex-expand",
            "walk the related links breadth-first from one record, within a node and a token budget",
            (MAX_NODES, MAX_TOKENS, flag("--dot", "print the walk as a graph for Graphviz, and no stream"), UNSEALED),
            positionals=("ID", 1, 1),
            values=("--max-nodes", "--max-tokens"),
            reads="record lines",
            writes="the same lines and one expansion line; with --dot a graph alone",
            examples=(
                "cortex-scan | cortex-strip | cortex-select --valid | cortex-expand idea-tension-logger | tail -n 2",
                "cortex-scan | cortex-strip | cortex-expand idea-tension-logger | cortex-card | cortex-envelope search",
                "cortex-scan | cortex-strip | cortex-select --valid | cortex-expand idea-tension-logger --dot",
            ),
        ),
        Command(
            "cortex-digest",
            "the canonical SHA-256 over all records in ID order, and their number",
            (UNSEALED,),
            reads="record lines",
            writes="one digest line",
            examples=(
                "cortex-scan | cortex-strip | cortex-digest | jq -r 'select(.kind==\"digest\").sha256'",
                "cortex-scan | cortex-strip | cortex-select --type idea | cortex-digest",
            ),
        ),
        Command(
            "cortex-card",
            "drop the bodies: turn records into cards with their estimated tokens",
            (UNSEALED,),
            reads="record or card lines",
            writes="card lines",
            examples=(
                "cortex-scan | cortex-strip | cortex-card | jq 'select(.kind==\"card\").est_tokens'",
                "cortex-scan | cortex-strip | cortex-select --valid | cortex-card | cortex-envelope search",
            ),
        ),
        Command(
            "cortex-through",
            "send the record and card lines through a foreign filter, and seal what comes back",
            (
                Option(
                    "--accept",
                    "count",
                    "STATUS",
                    "take this exit status of the filter for success, too, as 1 of grep (repeatable)",
                    low=1,
                    high=255,
                    repeatable=True,
                ),
                UNSEALED,
            ),
            positionals=("CMD [ARGUMENT...]", 1, limits.PAGE),
            ends_options=True,
            reads="any stream; the filter reads its record and card lines alone",
            writes="all other lines, and then what the filter wrote, each line checked",
            examples=(
                "cortex-scan | cortex-strip | cortex-through jq -c 'select(.related != [])' | cortex-rank \"loom\"",
                'cortex-scan | cortex-strip | cortex-card | cortex-through --accept 1 grep \'"type":"log"\'',
            ),
        ),
        Command(
            "cortex-unwrap",
            "turn an envelope back into a stream: the records of get and export, the cards of search and timeline",
            (),
            reads="one envelope, or what export has saved",
            writes="record lines, or card lines and their anchor or expansion",
            examples=(
                'cortex search "loom" --page-size 100 | cortex-unwrap | cortex-select --type idea',
                "cortex export idea-tension-logger idea-vat-monitor | cortex-unwrap | cortex-card",
            ),
        ),
        Command(
            "cortex-envelope",
            "the end of a pipeline: check the stream, page it, print one contract envelope",
            (
                PAGE,
                PAGE_SIZE,
                Option(
                    "--refuse",
                    "refusal",
                    "CODE MESSAGE",
                    "refuse with this error if the stream is sound",
                    values=2,
                    choices=tuple(EXIT_STATUS),
                ),
                flag("--schema", "print the envelope's JSON Schema and read nothing"),
                UNSEALED,
            ),
            positionals=("COMMAND [ID...]", 0, 1 + limits.IDS),
            values=("--page", "--page-size"),
            reads="what its command needs: records, cards, an anchor, an expansion, digests",
            writes="one JSON envelope; its exit status is the contract's",
            examples=(
                'cortex-scan | cortex-strip | cortex-select --valid | cortex-rank "loom" | cortex-envelope search',
                "cortex-envelope --schema",
            ),
        ),
        Command(
            "cortex-write",
            "persist one typed item below the memory root, governed: locked, audited, all or nothing",
            (MEMORY_ROOT, ADAPTER, ALLOW_WRITE),
            positionals=("remember|propose", 1, 1),
            reads="one typed item as JSON",
            writes="a corpus line for the root and a result line",
            examples=(
                "cortex-write remember --adapter claude --allow-write < item.json | cortex-envelope remember",
                "cortex-write propose --adapter claude --allow-write < proposal.json | cortex-envelope propose",
            ),
        ),
    )
}
