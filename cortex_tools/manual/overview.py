"""cortex-tools(7): a line for each tool, then pipelines that grow out of a question."""

from __future__ import annotations

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import COMMANDS, DEFAULT_ROOT, ROOT_VARIABLE
from cortex_tools.manual import roff
from cortex_tools.manual.statuses import statuses

ENVELOPE = (
    "The answer is one JSON envelope on standard output, also where it is a failure; read the exit status and the "
    "envelope together. Nothing is answered from a corpus that is not sound, and nothing that is marked private "
    "leaves the files."
)
SEALED = (
    "Streams are JSON lines that end in a seal, a hash of them all. A stream without its seal, or with a wrong one, is "
    "refused, so that what was cut off on the way never looks like a small answer. A failure travels down the stream: "
    "stages after it pass it on and exit with the same status."
)

# A question, and the command that answers it; each grows out of the one before.  All are run by the tests.
STEPS = (
    ("What do my notes say about the tension of a loom?", 'cortex search "loom tension"'),
    (
        "That was for a program. For the eye, the best three:",
        'cortex search "loom tension" --page-size 3 | jq -r \'.data.items[] | "\\(.score) \\(.id)"\'',
    ),
    ("What does that command consist of?", 'cortex-plan search "loom tension"'),
    (
        "So the stages can be put together by hand, and changed on the way. What was the answer in June 2024?",
        'cortex-scan | cortex-strip | cortex-select --at 2024-06-01 | cortex-rank "loom tension" |\n'
        "    cortex-envelope search",
    ),
    (
        "Only long notes? No stage knows that, but jq does, and cortex-through keeps the seal:",
        "cortex-scan | cortex-strip | cortex-through jq -c 'select(.content | length > 1500)' |\n"
        '    cortex-rank "loom tension" | cortex-envelope search',
    ),
    (
        "Why does one note come before another?",
        'cortex-scan | cortex-strip | cortex-rank "loom tension" --explain |\n'
        "    jq -c 'select(.terms) | [.id, .terms]'",
    ),
    (
        "What happened around the time of the best one?",
        "cortex-scan | cortex-strip | cortex-select --valid |\n"
        "    cortex-window --anchor idea-tension-logger --before 2 --after 2 |\n"
        '    jq -r \'select(.kind=="card") | .created + " " + .id\'',
    ),
    (
        "Which notes are linked to most?",
        "cortex-scan | cortex-strip | jq -r 'select(.kind==\"record\").related[]' | sort | uniq -c | sort -rn",
    ),
    (
        "Reading the notes is most of the work. For many questions, read them once; the file holds what the notes "
        "hold, without what is private, and its seal shows that it is whole:",
        'cortex-scan | cortex-strip > notes.stream\ncortex-rank "loom" < notes.stream | cortex-envelope search\n'
        "cortex-digest < notes.stream",
    ),
    (
        "With several processors, or several machines that see the same files:",
        'cortex-scan | cortex-strip --jobs 4 | cortex-rank "loom" | cortex-envelope search\n'
        "cortex-scan --parts 2 | cortex-strip | cortex-digest",
    ),
)

_INTRODUCTION = (
    "Cortex Tools search, read and prove a folder of Markdown and JSONL notes, from agents and from the shell, without "
    "an index, a daemon or a network. `cortex` answers whole questions with one envelope each; it is made of small "
    "filters that pass JSON lines over pipes, and the same filters are yours to compose.",
    "What is marked `<private>`...`</private>` is removed before anything else sees the text. Nothing is answered from "
    "a corpus that is not sound. Nothing is written without permission for that one call.",
)

_SIGNALS = (
    "A tool whose reader is gone ends silently, by SIGPIPE, and one that is interrupted by SIGINT; a shell shows them "
    "as 141 and 130."
)


def body() -> str:
    """The page below its head."""
    parts = [roff.section("NAME"), roff.paragraph("cortex-tools - search, read and prove a folder of notes")]
    parts.append(roff.section("DESCRIPTION"))
    parts.append(".PP\n".join(map(roff.paragraph, _INTRODUCTION)))
    parts.append(roff.section("TOOLS"))
    parts += [roff.tagged(f"{roff.bold(name)}(1)", roff.sentence(one.summary)) for name, one in EXECUTABLES.items()]
    parts.append(roff.section("COMMANDS OF CORTEX"))
    parts += [roff.tagged(roff.bold(f"cortex {name}"), roff.sentence(one.summary)) for name, one in COMMANDS.items()]
    parts.append(roff.section("STREAMS"))
    parts.append(roff.paragraph(SEALED))
    parts.append(roff.section("EXAMPLES"))
    for number, (question, command) in enumerate(STEPS):
        parts.append((".PP\n" if number else "") + roff.paragraph(question) + ".PP\n" + roff.example(command))
    parts.append(roff.section("ENVIRONMENT"))
    root = f"The memory root where `--memory-root` names none; where neither is set, `{DEFAULT_ROOT}`."
    parts.append(roff.tagged(roff.bold(ROOT_VARIABLE), root))
    parts.append(roff.section("EXIT STATUS"))
    parts += [roff.tagged(roff.bold(str(s)), f"{meaning}.") for s, meaning in statuses(EXECUTABLES["cortex"]).items()]
    parts.append(".PP\n" + roff.paragraph(_SIGNALS))
    parts.append(roff.section("SEE ALSO"))
    others = sorted([*EXECUTABLES, *(f"cortex-{name}" for name in COMMANDS)])
    parts.append(",\n".join(f"{roff.bold(name)}(1)" for name in [*others, "jq"]) + "\n")
    return "".join(parts)
