"""Completion for fish: one script for each executable."""

from __future__ import annotations

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import Option
from cortex_tools.manual.usage import FILE, FOLDER, FOREIGN, FREE, Context, Value, contexts, summary_of, value


def script(name: str) -> str:
    """The script for one executable."""
    found = contexts(name)
    tables = [context.path[1] for context in found[1:]]
    lines = [f"# Completion of {name} for fish.", *_words(name, found), f"complete -c {name} -f"]
    for context in found:
        lines += _context(name, context, tables)
    return "\n".join(lines) + "\n"


def all_scripts() -> str:
    """One script for all executables."""
    return "\n".join(map(script, EXECUTABLES))


def _words(name: str, found: list[Context]) -> list[str]:
    """A function that gives the words before the cursor that are neither options nor their values."""
    values = {option.name: option.values for context in found for option in context.options if option.values}
    cases = []
    for number in sorted(set(values.values())):
        names = " ".join(name for name in values if values[name] == number)
        cases.append(f"        else if contains -- $word {names}\n            set skip {number}")
    return [
        f"function {_function(name)}_words",
        "    set -l skip 0\n    set -l own 0",
        "    for word in (commandline -opc)[2..]",
        "        if test $skip -gt 0\n            set skip (math $skip - 1)",
        # What follows a foreign command is its own, options and all.
        *(["        else if test $own = 1\n            printf '%s\\n' $word"] if _is_foreign(found[0]) else []),
        *cases,
        "        else if not string match -q -- '--*' $word\n            printf '%s\\n' $word\n            set own 1",
        "        end\n    end\nend",
        # An option that was given, unless it is the one whose value is due.
        f"function {_function(name)}_given\n    set -l given (commandline -opc)",
        '    test "$given[-1]" = $argv[1]; and set -e given[-1]\n    contains -- $argv[1] $given\nend',
    ]


def _function(name: str) -> str:
    return f"__{name.replace('-', '_')}"


def _context(name: str, context: Context, tables: list[str]) -> list[str]:
    words = f"set -l w ({_function(name)}_words)"
    if len(context.path) > 1:
        here, before = f'{words}; test "$w[1]" = {context.path[1]}', 1
    elif tables:  # what stands before the word that chooses a table
        here, before = f'{words}; not contains -- "$w[1]" {" ".join(tables)}', 0
    else:
        here, before = f"{words}; true", 0
    own = f"{here}; and test (count $w) -eq 0" if _is_foreign(context) else here
    lines = [_option(name, option, own) for option in context.options]
    for values in context.alternatives:
        for number, one in enumerate(values):
            if one.kind == FOREIGN:
                lines.append(f"complete -c {name} -x -a {_quoted(_FOREIGN.format(_function(name)))}")
                continue
            condition = f"{here}; and test (count $w) {'-ge' if one.repeats else '-eq'} {before + number}"
            if number and values[0].words:
                condition += f'; and contains -- "$w[1]" {" ".join(values[0].words)}'
            for word in one.words:
                lines.append(f"complete -c {name} -n {_quoted(condition)} -a {word}{_described(word, name)}")
            if not one.words and one.kind != FREE:
                lines.append(f"complete -c {name} -n {_quoted(condition)} {_action(one)}")
    return lines


# What fish would offer for the foreign command line alone.
_FOREIGN = '(complete --do-complete=(string join " " -- (string escape -- ({}_words)) (commandline -ct)))'


def _is_foreign(context: Context) -> bool:
    return any(one.kind == FOREIGN for values in context.alternatives for one in values)


def _option(name: str, option: Option, here: str) -> str:
    given = (
        f"{_function(name)}_given {option.name}" if option.values else f"contains -- {option.name} (commandline -opc)"
    )
    condition = here if option.repeatable else f"{here}; and not {given}"
    line = f"complete -c {name} -n {_quoted(condition)} -l {option.name[2:]} -d {_quoted(option.summary)}"
    if not option.values:
        return line
    one = value(option)
    return f"{line} {_action(one)}" if one.words or one.kind != FREE else f"{line} -x"


def _action(one: Value) -> str:
    if one.words:
        return f"-x -a {_quoted(' '.join(one.words))}"
    return {
        FILE: "-r -F",
        FOLDER: "-x -a '(__fish_complete_directories)'",
    }[one.kind]


def _described(word: str, name: str) -> str:
    summary = summary_of(word, name)
    return f" -d {_quoted(summary)}" if summary else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
