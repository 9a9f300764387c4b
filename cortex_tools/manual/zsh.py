"""Completion for zsh: one script, `_cortex`, for all executables."""

from __future__ import annotations

from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import Option
from cortex_tools.manual.usage import FILE, FOLDER, FOREIGN, FREE, Context, Value, contexts, summary_of, value


def script() -> str:
    """The script, to be put into a folder of $fpath as `_cortex`, or sourced once compinit has run."""
    functions = "".join(map(_functions, EXECUTABLES))
    names = " ".join(EXECUTABLES)
    return f"""#compdef {names}
# Completion of Cortex Tools for zsh.
{functions}
if [[ $funcstack[1] == _cortex ]]; then
    _cortex_tools-${{service:t}} "$@"
else
    for name in {names}; do compdef _cortex_tools-$name $name; done
    unset name
fi
"""


def _functions(name: str) -> str:
    own, *others = contexts(name)
    if not others:
        return f"\n_cortex_tools-{name}() {{\n{_arguments(name, own, '')}}}\n"
    # The first word chooses the table: with one of its own, all after it is read by that.
    cases = ""
    for other in others:
        cases += f"        {other.path[1]}) shift words; ((CURRENT--))\n"
        cases += _arguments(name, other, "            ") + "            ;;\n"
    return f"""
_cortex_tools-{name}() {{
    local at=2
    while [[ $at -lt $CURRENT && $words[at] == --(help|version) ]]; do ((at++)); done
    if ((at < CURRENT)); then
        case $words[at] in
{cases}        *)
{_arguments(name, own, "            ")}            ;;
        esac
        return
    fi
{_arguments(name, own, "")}}}
"""


def _arguments(name: str, context: Context, indent: str) -> str:
    specs = [_option(option) for option in context.options]
    specs += _places(name, context)
    lines = [f"{indent}    _arguments : \\"]
    lines += [f"{indent}        {_quoted(spec)} \\" for spec in specs]
    lines[-1] = lines[-1].removesuffix(" \\")
    return "\n".join(lines) + "\n"


def _option(option: Option) -> str:
    star = "*" if option.repeatable else ""
    spec = f"{star}{option.name}[{_clean(option.summary)}]"
    for number in range(option.values):
        one = value(option, number)
        spec += f":{_clean(one.name)}:{_action(one)}"
    return spec


def _places(name: str, context: Context) -> list[str]:
    specs: list[str] = []
    if context.first_words:
        described = " ".join(f"{word}\\:{_double(summary_of(word, name))}" for word in context.first_words)
        what = context.alternatives[0][0].name if len(context.alternatives) == 1 else "action"
        specs.append(f"1:{_clean(what)}:(({described}))")
    longest = max((len(values) for values in context.alternatives), default=0)
    for place in range(2 if specs else 1, longest + 1):
        values = [one[place - 1] for one in context.alternatives if len(one) >= place]
        one = next((one for one in values if one.words or one.kind != FREE), values[0])
        if one.kind == FOREIGN:
            specs += ["(-)1:command: _command_names -e", "*::argument: _normal"]
            return specs
        specs.append(f"{'*' if one.repeats else place}:{_clean(one.name)}:{_action(one)}")
    return specs


def _action(one: Value) -> str:
    if one.words:
        return f"({' '.join(one.words)})"
    return {FILE: "_files", FOLDER: "_files -/"}.get(one.kind, " ")


def _clean(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _double(text: str) -> str:
    return '"' + _clean(text).replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
