"""Completion, asked of the shells themselves: the scripts are loaded and each shell says what it would offer."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cortex_tools.contract.errors import EXIT_STATUS
from cortex_tools.contract.executables import EXECUTABLES
from cortex_tools.contract.options import ADAPTERS, COMMANDS, SHELLS
from cortex_tools.manual import completion
from cortex_tools.manual.usage import contexts, value
from tests.support import environment, failure, run

# A command line up to the cursor, and all that can stand there.  FILES and FOLDERS are what lies in the working folder.
FILES, FOLDERS = "notes.jsonl", "notes"
CASES: dict[str, set[str]] = {
    "cortex ": set(COMMANDS),
    "cortex se": {"search"},
    "cortex -": {"--help", "--version", "--completion"},
    "cortex --help ti": {"timeline"},
    "cortex --completion ": set(SHELLS),
    "cortex search ": set(),
    "cortex search loom --pa": {"--page", "--page-size"},
    "cortex search loom --page 1 --pa": {"--page-size"},  # what may be given once is offered once
    "cortex search --type --ty": set(),  # where a value is due, no option is offered
    "cortex search loom --adapter ": set(ADAPTERS),
    "cortex search loom --adapter h": {"hermes"},
    "cortex status --memory-root no": {FOLDERS},
    "cortex get --page": set(),  # an option of another command
    "cortex-plan reb": {"rebuild"},
    "cortex-plan rebuild --from": {"--from-canonical"},
    "cortex-select --id a --i": {"--id"},  # repeatable
    "cortex-select --valid --va": set(),
    "cortex-rank loom --tokens u": {"unicode"},
    "cortex-envelope ": set(COMMANDS),
    "cortex-envelope --refuse ": set(EXIT_STATUS),
    "cortex-envelope --refuse not_": {"not_found"},
    "cortex-through --acc": {"--accept"},
    "cortex-through --accept 1 cortex-sc": {"cortex-scan"},  # a foreign command
    "cortex-through cat no": {FILES, FOLDERS},
    "cortex-through cat --uns": set(),
    "cortex-write ": {"remember", "propose"},
    "cortex-write --adapter claude re": {"remember"},
    "cortex-proposals ": {"list", "show", "approve", "reject"},
    "cortex-proposals show ": set(),
    "cortex-health affirm ": {"no-index", "no-reviewer"},
    "cortex-health --js": {"--json"},
    "cortex-log-retrieval ": {"search"},
    "cortex-log-retrieval search loom --max": {"--max-nodes", "--max-tokens"},
    "cortex-benchmark ": {"label", "plot"},
    "cortex-benchmark label loom --fa": {"--false"},
    "cortex-benchmark plot no": {FILES, FOLDERS},
    "cortex-benchmark plot a.json no": {FILES, FOLDERS},
    "cortex-benchmark --labels no": {FILES, FOLDERS},
}


def declared_cases() -> dict[str, set[str]]:
    """Every option of every table where nothing was given yet, and every word that a value can be."""
    cases = {}
    for name in EXECUTABLES:
        for context in contexts(name):
            line = " ".join(context.path)
            cases[f"{line} --"] = {option.name for option in context.options}
            for option in context.options:
                if option.values and value(option).words:
                    cases[f"{line} {option.name} "] = set(value(option).words)
    return cases


def in_bash(lines: list[str], folder: Path) -> dict[str, set[str]]:
    script = folder / "script"
    script.write_text(completion.script(["bash"]))
    # COMP_WORDS as the shell sets it: the words, the last one empty where the cursor follows a blank.
    asked = f"source {script}\ncd {folder / 'here'}\n"
    for line in lines:
        words = line.split(" ")
        function = words[0].replace("-", "_")
        asked += f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _{function}\n"
        asked += "printf '%s\\n' \"${COMPREPLY[@]}\" --next--\n"
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    return answers(lines, done.stdout)


def in_fish(lines: list[str], folder: Path) -> dict[str, set[str]]:
    script = folder / "script"
    script.write_text(completion.script(["fish"]))
    asked = f"source {script}; cd {folder / 'here'}\n"
    for line in lines:
        asked += f"complete -C '{line}' | string split -f 1 \\t; echo --next--\n"
    env = environment(HOME=str(folder), XDG_CONFIG_HOME=str(folder), XDG_DATA_HOME=str(folder))
    done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, env=env)
    assert done.stderr == ""
    return answers(lines, done.stdout.replace(f"{FOLDERS}/", FOLDERS))


# Each match that zsh's own completion system would add, into a file.
_ZSH = """PROMPT= RPROMPT= PS2=
autoload -Uz compinit; compinit -D -u; source {script}; cd {here}
compadd() {{
    if [[ " $* " == *" -"(O|A|D)" "* ]]; then builtin compadd "$@"; return; fi
    local -a found; builtin compadd -O found "$@"; print -rl -- "="${{^found}} >> {out}; builtin compadd "$@"
}}
ask() {{ _main_complete; compstate[insert]= compstate[list]=; print -r -- --next-- >> {out} }}
zle -C ask list-choices ask; bindkey '^T' ask
"""


def in_zsh(lines: list[str], folder: Path) -> dict[str, set[str]]:
    script, setup, out = folder / "script", folder / "setup", folder / "out"
    script.write_text(completion.script(["zsh"]))
    setup.write_text(_ZSH.format(script=script, here=folder / "here", out=out))
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment(TERM="dumb", HOME=str(folder)))
    try:
        os.write(terminal, f"source {setup}; print REA''DY\n".encode())
        wait(terminal, lambda seen: b"READY" in seen)
        for number, line in enumerate(lines, 1):
            os.write(terminal, line.encode() + b"\x14")  # the key bound above
            wait(terminal, lambda _, wanted=number: out.exists() and out.read_text().count("--next--\n") == wanted)
            os.write(terminal, b"\x15")  # forget the line
    finally:
        os.kill(shell, 9)
        os.waitpid(shell, 0)
        os.close(terminal)
    offered = answers(lines, out.read_text().replace("=\n", "\n"))
    return {line: {one.removeprefix("=").rstrip("/") for one in found} for line, found in offered.items()}


def wait(terminal: int, condition: object) -> None:
    """Read what the shell shows, which would else block it, until the condition holds of it."""
    seen, end = b"", time.monotonic() + 60
    while not condition(seen):  # type: ignore[operator]
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.01)[0]:
            seen += os.read(terminal, 65_536)


def answers(lines: list[str], output: str) -> dict[str, set[str]]:
    parts = output.split("--next--\n")
    assert len(parts) == len(lines) + 1
    return {line: set(filter(None, part.split("\n"))) for line, part in zip(lines, parts, strict=False)}


ASK = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_offers_what_is_declared(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "here" / FOLDERS).mkdir(parents=True)
    (tmp_path / "here" / FILES).touch()
    cases = CASES | declared_cases()
    if shell == "fish":
        del cases["cortex search --type --ty"]  # it offers options of its own accord where a value is due
    offered = ASK[shell](list(cases), tmp_path)
    wrong = {line: (offered[line], cases[line]) for line in cases if offered[line] != cases[line]}
    assert not wrong


@pytest.mark.parametrize("shell", SHELLS)
def test_each_installed_script_stands_alone(shell: str, tmp_path: Path) -> None:
    """bash and fish load one file for the command at hand, zsh one for all."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    mine = {path: text for path, text in completion.files().items() if path.startswith(shell)}
    assert len(mine) == (1 if shell == "zsh" else len(EXECUTABLES))
    for path, text in mine.items():
        file = tmp_path / Path(path).name
        file.write_text(text)
        assert subprocess.run([shell, "-n", file], capture_output=True).stderr == b""
    if shell == "bash":
        ask = "source ./cortex-write; COMP_WORDS=(cortex-write p); COMP_CWORD=1; _cortex_write; echo $COMPREPLY"
    elif shell == "fish":
        ask = "source ./cortex-write.fish; complete -C 'cortex-write p' | string split -f 1 \\t"
    else:
        assert mine["zsh/site-functions/_cortex"].startswith(f"#compdef {' '.join(EXECUTABLES)}\n")
        return
    env = environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path))
    done = subprocess.run([shell, "-c", ask], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (done.stdout, done.stderr) == ("propose\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_cortex_prints_the_script(shell: str) -> None:
    done = run("cortex", "--completion", shell)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, completion.script([shell]), b"")


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"], ["--help"]])
def test_another_shell_is_refused_by_name(words: list[str]) -> None:
    failure(run("cortex", "--completion", *words), 4, "invalid_input", "--completion", "bash, zsh, fish")
