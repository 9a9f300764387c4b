"""An SVG of recall, MRR and injected tokens over reports.

The plotting library is an optional extra: nothing else here needs it.
"""

from __future__ import annotations

import importlib
import io
import os

from cortex_tools.contract.errors import invalid_input
from cortex_tools.evidence import reading
from cortex_tools.evidence.benchmark import SCHEMA
from cortex_tools.evidence.kinds import is_finite, time_ms
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PANELS = (("recall_at_5", "recall at 5"), ("mrr", "MRR"), ("injected_tokens", "injected tokens"))
REPORT_BYTES = 1 << 20
_STYLES = ("o-", "x--", "s:", "d-.")


class Report:
    """What of a report is drawn: when it was made, and of each disclosure the values of the panels."""

    __slots__ = ("configs", "generated_at", "ms")

    def __init__(self, generated_at: str, ms: int, configs: dict[str, dict[str, float]]) -> None:
        self.generated_at = generated_at
        self.ms = ms
        self.configs = configs


def read(path: str) -> Report:
    """A saved report; raises invalid_input where it is none."""
    try:
        opened = reading.open_path(path)
        try:
            value = reading.parse_object(reading.read_small(opened, REPORT_BYTES))
        finally:
            os.close(opened)
    except Missing:
        raise invalid_input(f"{shown(path)} is missing; give reports of cortex-benchmark") from None
    except Unreadable as error:
        raise invalid_input(f"{shown(path)} {error}") from None
    report = None if value is None else _report(value)
    if report is None:
        raise invalid_input(f"{shown(path)} is no report of cortex-benchmark ({SCHEMA})")
    return report


def _report(value: dict[str, Any]) -> Report | None:
    ms = time_ms(value.get("generated_at"))
    configs = value.get("configs")
    if value.get("schema") != SCHEMA or ms is None or not isinstance(configs, list) or not configs:
        return None
    drawn: dict[str, dict[str, float]] = {}
    for config in configs:
        if not isinstance(config, dict) or not isinstance(config.get("name"), str):
            return None
        if not all(is_finite(config.get(key)) for key, _ in PANELS):
            return None
        drawn[config["name"]] = {key: config[key] for key, _ in PANELS}
    return Report(value["generated_at"], ms, drawn)


def draw(reports: list[Report]) -> bytes:
    """The SVG, the same bytes for the same reports; raises invalid_input without the plotting library."""
    matplotlib, figures = _library()
    ordered = sorted(reports, key=lambda report: report.ms)
    names = list(dict.fromkeys(name for report in ordered for name in report.configs))
    out = io.BytesIO()
    # Text stays text, so that an SVG can be searched; a fixed salt and no date make it reproducible.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": SCHEMA}):
        figure = figures.Figure(figsize=(8, 9), layout="constrained")
        for axes, (key, title) in zip(figure.subplots(len(PANELS), 1, sharex=True), PANELS, strict=True):
            _panel(axes, key, title, ordered, names)
        axes.set_xticks(range(len(ordered)), [report.generated_at[:10] for report in ordered], rotation=45)
        figure.savefig(out, format="svg", metadata={"Date": None, "Title": "Retrieval benchmark"})
    return out.getvalue()


def _panel(axes: Any, key: str, title: str, ordered: list[Report], names: list[str]) -> None:
    for number, name in enumerate(names):
        points = [(at, report.configs[name][key]) for at, report in enumerate(ordered) if name in report.configs]
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, _STYLES[number % len(_STYLES)], label=name)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if key == "injected_tokens":
        axes.set_ylim(bottom=0)
    else:
        axes.set_ylim(-0.05, 1.05)
    axes.legend()


def _library() -> tuple[Any, Any]:
    try:
        return importlib.import_module("matplotlib"), importlib.import_module("matplotlib.figure")
    except ImportError:
        raise invalid_input("plotting needs matplotlib; get it with: pip install 'cortex-tools[plot]'") from None
