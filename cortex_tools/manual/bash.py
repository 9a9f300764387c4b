"""Completion for bash, 3.2 and later: one self-contained script for each executable.

Static on purpose: Typer's own completion would start Python and import Typer at each press of the key.
"""

from __future__ import annotations

import shlex

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.manual.usage import FREE, Context, Value, contexts, value

# Shared by the scripts of all executables; each may be loaded alone, so each brings it along.
_ENGINE = r"""
# What may stand at the cursor, by the function of the executable: it sets `options` and `once` for a context, and
# `takes` (a word for each value: a kind, or =A,B for words) for an option or, with an empty one, for the positionals.
__cortex_tools() {
    local describe=$1 current=${COMP_WORDS[COMP_CWORD]} context= first= place=0 at word IFS=$' \t\n'
    local options once takes tables given=' ' pending=()
    COMPREPLY=()
    "$describe" ''
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]} takes=
        if ((${#pending[@]})); then
            pending=("${pending[@]:1}")
        elif [[ $word == --* ]]; then
            given+="$word "
            "$describe" "$context" "$word"
            pending=($takes)
        elif ((place == 0)) && [[ -z $context && $tables == *" $word "* ]]; then
            context=$word
            "$describe" "$context"
        else
            first=${first:-$word}
            ((place++))
            "$describe" "$context" '' "$first" "$place"
            if [[ $takes == foreign ]]; then
                if declare -F _command_offset >/dev/null; then _command_offset "$at"; else __cortex_tools_value file; fi
                return
            fi
        fi
    done
    takes=
    if ((${#pending[@]})); then
        __cortex_tools_value "${pending[0]}"
    elif [[ $current == -* ]]; then
        for word in $options; do
            [[ $given == *" $word "* && $once == *" $word "* ]] || COMPREPLY+=("$word")
        done
        COMPREPLY=($(compgen -W "${COMPREPLY[*]}" -- "$current"))
    else
        "$describe" "$context" '' "$first" "$((place + 1))"
        __cortex_tools_value "$takes"
    fi
}

__cortex_tools_value() {
    case $1 in
        =*) COMPREPLY=($(compgen -W "${1//[=,]/ }" -- "$current")) ;;
        file) compopt -o default 2>/dev/null || { local IFS=$'\n'; COMPREPLY=($(compgen -f -- "$current")); } ;;
        folder) compopt -o dirnames 2>/dev/null || { local IFS=$'\n'; COMPREPLY=($(compgen -d -- "$current")); } ;;
        foreign) COMPREPLY=($(compgen -c -- "$current")) ;;
    esac
}
"""


def script(name: str) -> str:
    """The whole script for one executable."""
    return f"# Completion of {name} for bash.\n{_ENGINE}{_described(name)}"


def all_scripts() -> str:
    """One script for all executables, as for a shell's own start-up file."""
    return "# Completion of Cortex Tools for bash.\n" + _ENGINE + "".join(map(_described, EXECUTABLES))


def _described(name: str) -> str:
    function = "__" + name.replace("-", "_")
    found = contexts(name)
    tables = " ".join(context.path[1] for context in found[1:])
    body = "".join(_case(context) for context in found)
    return (
        f"\n{function}() {{  # CONTEXT [OPTION [FIRST-WORD PLACE]]\n"
        f'    tables=" {tables} "\n    case $#:$1 in\n{body}    esac\n}}\n'
        f"_{function[2:]}() {{ __cortex_tools {function}; }}\ncomplete -F _{function[2:]} {name}\n"
    )


def _case(context: Context) -> str:
    word = context.path[1] if len(context.path) > 1 else ""
    names = " ".join(option.name for option in context.options)
    once = " ".join(option.name for option in context.options if not option.repeatable)
    lines = [f'        1:{word}) options="{names}" once=" {once} " ;;']
    taking = [option for option in context.options if option.values]
    if taking:
        lines.append(f"        2:{word}) case $2 in")
        for option in taking:
            takes = " ".join(_takes(value(option, number)) for number in range(option.values))
            if option.metavar.endswith("..."):
                takes = _takes(value(option))
            lines.append(f'            {option.name}) takes="{takes}" ;;')
        lines.append("            esac ;;")
    lines.append(f"        4:{word}) case $4:$3 in")
    lines += _places(context)
    lines.append("            esac ;;")
    return "\n".join(lines) + "\n"


def _places(context: Context) -> list[str]:
    """A case for each place where something is known, and for the word that must have stood first."""
    found = (
        [f"            1:) takes={shlex.quote('=' + ','.join(context.first_words))} ;;"] if context.first_words else []
    )
    for values in context.alternatives:
        for place, one in enumerate(values, 1):
            takes = _takes(one)
            if takes != FREE and not (place == 1 and one.words):
                before = "|".join(f"*:{word}" for word in values[0].words) if place > 1 and values[0].words else ""
                pattern = before.replace("*", str(place)) or ("*" if one.repeats else f"{place}:*")
                found.append(f"            {pattern}) takes={shlex.quote(takes)} ;;")
    return found


def _takes(one: Value) -> str:
    return "=" + ",".join(one.words) if one.words else one.kind
