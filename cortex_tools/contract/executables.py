"""The executables: the driver's two, the stages, and the tools that are no stages.

No read needs to know of the tools, so they are declared apart from what it does need (`options`).
"""

from __future__ import annotations

from cortex_tools.contract import limits
from cortex_tools.contract.options import MEMORY_ROOT, NOTES, SHELLS, STAGES, Command, Option, flag

_BENCHMARK_STATUSES = {
    0: "success",
    1: "an unexpected failure, or standard output cannot be written",
    4: "refused: arguments, labels, corpus, or the place for the report; nothing was kept",
}

_DRIVER = (
    Command(
        "cortex",
        "verifiable search over a folder of Markdown and JSONL notes, behind a privacy boundary",
        (Option("--completion", "text", "SHELL", f"print completion for {', '.join(SHELLS)}", choices=SHELLS),),
        positionals=("COMMAND [OPTION...]", 1, 1),
        reads=NOTES,
        writes="one JSON envelope",
        examples=('cortex search "loom"', "cortex get idea-tension-logger | jq -r '.data.items[].content'"),
    ),
    Command(
        "cortex-plan",
        "print the shell pipeline that a contract command stands for",
        (),
        positionals=("COMMAND [OPTION...]", 1, 1),
        reads="nothing",
        writes="a shell pipeline, one stage a line; for a command line without a plan, its failure envelope",
        examples=('cortex-plan search "loom" --type idea', 'sh -c "$(cortex-plan status)"'),
    ),
)

_TOOLS = (
    Command(
        "cortex-proposals",
        "decide on what was proposed: list the queue, show what a proposal would change, approve or reject it",
        (
            flag("--json", "list or show as JSON instead of for people"),
            flag("--all", "list decided proposals, too"),
            Option("--reason", "text", "TEXT", "with reject: why, kept in the queue"),
            MEMORY_ROOT,
        ),
        positionals=("list | show ID | approve ID | reject ID", 1, 2),
        reads="OBSERVABILITY/pending-proposals.jsonl and the file that a proposal is about",
        writes="a table, a diff or a sentence; approve changes the file, approve and reject mark the proposal",
        examples=(
            "cortex-proposals list",
            "cortex-proposals show prop_0123456789ab",
            'cortex-proposals reject prop_0123456789ab --reason "said once, in jest"',
        ),
    ),
    Command(
        "cortex-restore",
        "go back to a snapshot of hot memory or of a file that a proposal changed",
        (
            flag("--json", "list as JSON instead of a table"),
            MEMORY_ROOT,
        ),
        positionals=("list | show SNAPSHOT | restore SNAPSHOT", 1, 2),
        reads="OBSERVABILITY/memory-snapshots and the file of the snapshot",
        writes="a table, a diff or a sentence; restore changes the file, and keeps what was there as a snapshot",
        examples=(
            "cortex-restore list",
            "cortex-restore show PRINCIPAL_MEMORY__2026-01-31T08-00-00-000Z.md",
        ),
    ),
    Command(
        "cortex-check",
        "list every integrity problem of the corpus, and every place where private text was removed or cut off",
        (
            flag("--json", "print the report as one JSON object instead of a table"),
            MEMORY_ROOT,
        ),
        reads="every note below the memory root",
        writes="a table of problems and notices: file, line, what is wrong, what to do; never text of a note",
        examples=("cortex-check", "cortex-check --json | jq -r '.notices[] | \"\\(.file):\\(.line): \\(.what)\"'"),
        statuses={
            0: "sound; notices do not count",
            1: "unexpected, or standard output cannot be written",
            4: "not sound, so that no command can answer; or bad arguments",
        },
    ),
    Command(
        "cortex-health",
        "measure whether memory is in operation: reviewer, retrieval, proposals, logs, index, hot memory",
        (
            flag("--json", "print the report as one JSON object instead of a table"),
            MEMORY_ROOT,
            flag("--corpus", "also read every note and report those that the privacy boundary cut off"),
        ),
        positionals=("affirm no-index|no-reviewer", 0, 2),
        reads="the evidence below the memory root; with affirm, nothing but what would contradict",
        writes="a report, also as a line of OBSERVABILITY/memory-health.jsonl; with affirm, a policy marker",
        examples=("cortex-health", "cortex-health --json | jq '.findings[].id'", "cortex-health affirm no-index"),
        statuses={
            0: "ok",
            1: "warn",
            2: "critical",
            4: "no verdict: bad arguments, no memory root, nowhere to print",
        },
    ),
    Command(
        "cortex-log-retrieval",
        "run a search and record, in the retrieval log, that it took place",
        (),
        positionals=("search QUERY [OPTION...]", 2, limits.IDS),
        reads="the notes below the memory root",
        writes="the envelope of the search, and a row with a keyed hash of the query in OBSERVABILITY",
        examples=('cortex-log-retrieval search "loom"', 'cortex-log-retrieval search "loom" --type idea | jq .'),
    ),
    Command(
        "cortex-benchmark",
        "measure retrieval on your own labelled queries, and what two ways of disclosure cost",
        (
            Option("--labels", "path", "FILE", "required: the labelled queries (JSONL)"),
            MEMORY_ROOT,
            Option("--output", "path", "FILE", "also keep the report as BENCHMARKS/cortex-benchmark-vN-*.json"),
        ),
        positionals=("label QUERY --expect ID... | plot REPORT...", 0, 0),
        reads="the labels and the notes below the memory root",
        writes="one JSON report; with label, one label row; with plot, an SVG",
        examples=(
            'cortex-benchmark label "loom tension" --expect idea-tension-logger >> labels.jsonl',
            "cortex-benchmark --labels labels.jsonl > report.json",
            "cortex-benchmark plot report.json > report.svg",
        ),
        statuses=_BENCHMARK_STATUSES,
    ),
)

EXECUTABLES = {command.name: command for command in (*_DRIVER, *STAGES.values(), *_TOOLS)}

# What an executable does when its first argument says so: each has a table of its own.
SUBCOMMANDS = {
    command.name: command
    for command in (
        Command(
            "cortex-benchmark label",
            "make a label for the benchmark from a live search",
            (
                Option("--expect", "text", "ID...", "the records that the query should find", repeatable=True),
                Option("--order", "text", "ID...", "the order in which they should come, if another", repeatable=True),
                Option("--false", "text", "ID...", "records that the query should not find", repeatable=True),
                Option("--id", "text", "ID", "the label's own ID (default: made from the query)"),
                Option("--labels", "path", "FILE", "append the label to this file instead of printing it"),
                MEMORY_ROOT,
            ),
            positionals=("QUERY", 1, 1),
            reads=NOTES,
            writes="one label row",
            examples=(
                'cortex-benchmark label "loom tension" --expect idea-tension-logger >> labels.jsonl',
                'cortex-benchmark label "loom" --expect idea-tension-logger idea-open-dobby --labels labels.jsonl',
            ),
            statuses=_BENCHMARK_STATUSES,
        ),
        Command(
            "cortex-benchmark plot",
            "draw recall, MRR and injected tokens over reports as an SVG",
            (),
            positionals=("REPORT", 1, limits.PLOT_REPORTS),
            reads="the reports",
            writes="an SVG",
            examples=(
                "cortex-benchmark plot report.json > report.svg",
                "cortex-benchmark plot BENCHMARKS/cortex-benchmark-v1-*.json > retrieval.svg",
            ),
            statuses=_BENCHMARK_STATUSES,
        ),
    )
}
