"""Observability volume: all logs below OBSERVABILITY, their bytes, their number and the oldest of them."""

from __future__ import annotations

import os
import stat

from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.layout import Layout
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.evidence.thresholds import Thresholds
from cortex_tools.files.names import shown
from cortex_tools.governance.places import OBSERVABILITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECK = "observability"
ENDINGS = (".jsonl", ".log")
_SHOWN_PATHS = 5


class Volume:
    """What a walk found; `unreadable` are the first paths that could not be measured, each with its reason."""

    __slots__ = ("bytes", "files", "oldest", "oldest_ms", "unreadable", "unreadable_paths")

    def __init__(self) -> None:
        self.bytes = 0
        self.files = 0
        self.oldest: str | None = None
        self.oldest_ms = 0
        self.unreadable = 0
        self.unreadable_paths: list[str] = []

    def add(self, path: str, status: os.stat_result) -> None:
        at = status.st_mtime_ns // 1_000_000
        self.bytes += status.st_size
        self.files += 1
        if self.oldest is None or at < self.oldest_ms:
            self.oldest, self.oldest_ms = path, at

    def fail(self, path: str, reason: str) -> None:
        self.unreadable += 1
        if len(self.unreadable_paths) < _SHOWN_PATHS:
            self.unreadable_paths.append(f"{shown(path)} {reason}")


def check(layout: Layout, thresholds: Thresholds, now_ms: int) -> Outcome:
    """Measure the volume of all logs."""
    volume = measure(layout.root.descriptor)
    evidence: dict[str, Any] = {
        "path": OBSERVABILITY,
        "bytes": volume.bytes,
        "files": volume.files,
        "max_bytes": thresholds["observabilityMaxBytes"],
        "max_age_ms": thresholds["observabilityMaxAgeMs"],
    }
    findings = []
    if volume.unreadable:
        evidence |= {"unreadable": volume.unreadable, "unreadable_paths": volume.unreadable_paths}
        what = f"{volume.unreadable} entries cannot be measured, first: {volume.unreadable_paths[0]}"
        findings.append(Finding("observability-evidence-unreadable", what, evidence))
    if volume.oldest is None:
        what = f"{OBSERVABILITY} holds no .jsonl or .log file"
        findings.append(Finding("observability-evidence-missing", what, evidence))
        return Outcome(CHECK, evidence, findings)
    age = now_ms - volume.oldest_ms
    evidence |= {"oldest": shown(volume.oldest), "oldest_mtime": format_ms(volume.oldest_ms), "oldest_age_ms": age}
    if volume.bytes > thresholds["observabilityMaxBytes"]:
        what = f"the logs have {volume.bytes} bytes, more than {thresholds['observabilityMaxBytes']}"
        findings.append(Finding("observability-bytes-exceeded", what, evidence))
    if age > thresholds["observabilityMaxAgeMs"]:
        what = f"{shown(volume.oldest)} was last written on {format_ms(volume.oldest_ms)}"
        findings.append(Finding("observability-age-exceeded", what, evidence))
    return Outcome(CHECK, evidence, findings)


def measure(root_descriptor: int) -> Volume:
    """Walk OBSERVABILITY below the open root; links are counted as unreadable, never followed."""
    volume = Volume()
    waiting = [OBSERVABILITY]
    while waiting:
        folder = waiting.pop()
        try:
            descriptor = reading.open_folder(root_descriptor, folder)
        except Missing:
            continue
        except Unreadable as error:
            volume.fail(folder, str(error))
            continue
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    _take(entry, f"{folder}/{entry.name}", volume, waiting)
        except OSError as error:
            volume.fail(folder, f"cannot be read: {error.strerror}")
        finally:
            os.close(descriptor)
    return volume


def _take(entry: os.DirEntry[str], path: str, volume: Volume, waiting: list[str]) -> None:
    is_log = entry.name.endswith(ENDINGS)
    if entry.is_symlink():
        if is_log or entry.is_dir():  # what stands behind a link is not measured, and must not go unsaid
            volume.fail(path, "is a symbolic link")
    elif entry.is_dir(follow_symlinks=False):
        waiting.append(path)
    elif is_log:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # rotated away a moment ago
        except OSError as error:
            volume.fail(path, f"cannot be read: {error.strerror}")
            return
        if stat.S_ISREG(status.st_mode):
            volume.add(path, status)
        else:
            volume.fail(path, "is no regular file")
