"""Plans as shell: what cortex-plan prints."""

from __future__ import annotations

import shlex

from cortex_tools.driver.plan import Plan, Step

_PIPE = " |\n  "


def render(plan: Plan) -> str:
    """A POSIX shell pipeline, one stage a line, ready to paste.

    A payload stands in it as it stood in the command line: the pipeline does what the command would do.
    """
    if plan.passes == 0:
        given = [] if plan.payload is None else [f"printf %s {shlex.quote(plan.payload)}"]
        return _PIPE.join([*given, *(_command(step) for step in (*plan.steps, plan.envelope))]) + "\n"
    scan = ["cortex-scan"]
    if plan.root is not None:
        scan += ["--memory-root", plan.root]
    stages = [shlex.join(scan), "cortex-strip", *(_command(step) for step in plan.steps)]
    if plan.passes == 1:
        return _PIPE.join([*stages, _command(plan.envelope)]) + "\n"
    one_pass = _PIPE.join(stages)
    return "{ " + f"{one_pass};\n  " * plan.passes + "}" + _PIPE + _command(plan.envelope) + "\n"


def _command(step: Step) -> str:
    words = [step.name, *step.arguments.positionals]
    for name, value in step.arguments.options.items():
        if value is True:
            words.append(name)
        elif isinstance(value, str):
            words += [name, value]
        elif isinstance(value, list):
            words += [name, *value] if name == "--refuse" else [word for one in value for word in (name, one)]
    return shlex.join(words)
