"""Locks: `flock` on the target's folder among our processes, a lock file for the other program.

The folder's lock goes with a descriptor, so it ends with its holder, however that ends.  The lock file
`NAME.lock` is only looked at, made, broken and removed under the folder's lock, which is what makes
breaking free of races among our own processes; against the other program it is renamed away first and
compared with what was judged.
"""

from __future__ import annotations

import json
import os
import random
import stat
import time

from cortex_tools.contract import limits
from cortex_tools.domain.jsontext import json_text
from cortex_tools.domain.timestamps import format_ms, parse_ms
from cortex_tools.files.durable import temporary_name
from cortex_tools.files.walk import Identity, identity
from cortex_tools.governance.folders import Folder
from cortex_tools.governance.refusal import write_failed
from cortex_tools.governance.store import NOTE_MODE, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    # Writes one row to the log of locks.
    Log = Callable[[dict[str, Any]], None]
    # Finds the folder, and makes it where it is missing.
    Find = Callable[[], Folder]

_LOCK_BYTES = 4_096
_PAUSES = (0.002, 0.015)
# Lock files of this process that could not be removed (device, inode): they hold nothing any more.
_left_behind: set[tuple[int, int]] = set()


class Holder:
    """Who has a lock file, as far as it tells: `state` is live, gone, stale or unknown.

    `identity` is that of the lock file when it was judged, None for a folder.
    """

    __slots__ = ("host", "identity", "pid", "state")

    def __init__(self, pid: int | None, host: str | None, state: str, identity: Identity | None = None) -> None:
        self.pid = pid
        self.host = host
        self.state = state
        self.identity = identity


class Locks:
    """The locks of one write.  `log` is called, with its row, for each refusal and each broken lock."""

    def __init__(self, store: Store, now_ms: int, log: Log) -> None:
        self._store = store
        self._now_ms = now_ms
        self._log = log
        self._held: dict[str, Folder] = {}

    def holds(self, key: str) -> bool:
        return key in self._held

    def enter(self, key: str, find: Find) -> Folder:
        """The folder that `find` gives, its lock taken; `key` is the name under which this write keeps it."""
        if key not in self._held:
            self._held[key] = self._enter("", find, _deadline())
        return self._held[key]

    def _enter(self, path: str, find: Find, deadline: float) -> Folder:
        """`path` is the file wanted in the folder, "" for the folder itself."""
        while True:
            folder = find()
            self._wait_for(folder, path or folder.path, deadline)
            if self._store.is_in_place(folder):
                self._store.sweep(folder)
                return folder
            # Another writer took back a folder that it had made, and it is made again; but nobody makes a base.
            if not self._store.is_in_place(folder.base_folder()) or time.monotonic() > deadline:
                raise write_failed(f"{folder.path or 'the memory root'} is being moved or replaced; try again")
            self._store.close(folder)

    def _wait_for(self, folder: Folder, path: str, deadline: float) -> None:
        while not self._store.lock(folder):
            if time.monotonic() > deadline:
                self._refuse(path, self._any_holder(folder))
            time.sleep(random.uniform(*_PAUSES))

    def take(self, key: str, find: Find, choose: Callable[[Folder], str], path: str) -> tuple[Folder, str]:
        """The locked folder and the name that `choose` picks in it, whose lock file is ours until the end.

        `path` is the file that a refusal names where the folder itself is held.  While another holder is
        waited for the folder is free for other writers, so `choose` may be asked again.
        """
        deadline = _deadline()
        if key not in self._held:
            self._held[key] = self._enter(path, find, deadline)
        folder = self._held[key]
        while True:
            name = choose(folder)
            holder = self._take_file(folder, name)
            if holder is None:
                return folder, name
            if time.monotonic() > deadline:
                self._refuse(folder.shown(name), holder)
            self._store.unlock(folder)
            time.sleep(random.uniform(*_PAUSES))
            self._wait_for(folder, folder.shown(name), deadline)
            if not self._store.is_in_place(folder):
                raise write_failed(f"{folder.path or 'the memory root'} was moved or replaced; try again")
            self._store.sweep(folder)

    def _refuse(self, path: str, holder: Holder | None) -> NoReturn:
        """Log and raise the refusal of a lock that was not given up in time."""
        pid, host = (None, None) if holder is None else (holder.pid, holder.host)
        self._log({"ts": format_ms(self._now_ms), "event": "refused", "path": path, "pid": pid, "host": host})
        elsewhere = f" on {host}" if host and host != _host() else ""
        way_out = "" if holder is None else f"; if that is done for good, remove {path}.lock"
        raise write_failed(
            f"Lock held: {path} by pid {'unknown' if pid is None else pid}{elsewhere}; nothing was written, "
            f"try again{way_out}"
        )

    def _any_holder(self, folder: Folder) -> Holder | None:
        """Whose lock file lies in a folder that another process of ours keeps locked."""
        for name in sorted(self._store.names(folder)):
            if name.endswith(".lock"):
                holder = self._read_holder(folder, name)
                if holder is not None and holder.state == "live":
                    return holder
        return None

    # The lock file.

    def _take_file(self, folder: Folder, name: str) -> Holder | None:
        """Make the lock file of `name`; None where it is ours now, else who has it."""
        lock = name + ".lock"
        for _ in range(3):
            if self._make(folder, lock):
                return None
            holder = self._read_holder(folder, lock)
            if holder is None:
                continue
            if holder.state not in ("gone", "stale"):
                return holder
            self._break(folder, lock, holder)
        return self._read_holder(folder, lock) or Holder(None, None, "unknown")

    def _make(self, folder: Folder, lock: str) -> bool:
        """Create the lock file with its content from its first visible moment; False where there is one."""
        row = {"pid": os.getpid(), "host": _host(), "ts": format_ms(self._now_ms)}
        try:
            self._store.status(folder, lock)
            return False
        except FileNotFoundError:
            pass
        temporary = self._store.temporary(folder, lock, json_text(row).encode() + b"\n", NOTE_MODE, exact=False)
        ours = self._store.status(folder, temporary)
        try:
            self._store.link(folder, temporary, lock)
        except FileExistsError:
            self._store.unlink(folder, temporary)
            return False
        self._store.later(
            folder.shown(lock),
            lambda: self._release(folder, lock, (ours.st_dev, ours.st_ino)),
            on_refusal=False,
        )
        self._store.unlink(folder, temporary)
        return True

    def _release(self, folder: Folder, lock: str, ours: tuple[int, int]) -> None:
        """Remove our lock file, unless another program has broken it and made its own."""
        _left_behind.add(ours)
        status = self._store.status(folder, lock)
        if (status.st_dev, status.st_ino) == ours:
            self._store.unlink(folder, lock)
        _left_behind.discard(ours)

    def _read_holder(self, folder: Folder, lock: str) -> Holder | None:
        """Who has the lock file, None where there is none; raises EWRITE_FAILED where it can be no lock."""
        path = folder.shown(lock)
        try:
            status = self._store.status(folder, lock)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(status.st_mode):
            return Holder(None, None, _judged_by_age(None, status))
        if not stat.S_ISREG(status.st_mode):
            raise write_failed(f"{path} is a symbolic link or a special file where a lock file belongs; remove it")
        if status.st_nlink != 1:
            raise write_failed(f"{path} is hard-linked, so it is no lock file; remove it")
        file = self._store.read(folder, lock)
        if file is None or file.identity != identity(status):
            return None
        pid, host, ts = _parse(file.data)
        if (status.st_dev, status.st_ino) in _left_behind and pid == os.getpid():
            return Holder(pid, host, "gone", file.identity)
        if pid is None or host != _host():
            return Holder(pid, host, _judged_by_age(ts, status), file.identity)
        return Holder(pid, host, "live" if _is_alive(pid) else "gone", file.identity)

    def _break(self, folder: Folder, lock: str, holder: Holder) -> None:
        """Remove a lock whose holder is gone or too old, unless it has become another one since."""
        path = folder.shown(lock)
        if holder.identity is None:
            self._store.remove_folder(folder, lock)
        else:
            away = temporary_name(lock)
            self._store.rename(folder, lock, away)
            if identity(self._store.status(folder, away)) != holder.identity:
                self._put_back(folder, away, lock)
                return
            self._store.unlink(folder, away)
        row = {"ts": format_ms(self._now_ms), "event": "broken", "path": path.removesuffix(".lock")}
        self._log(row | {"pid": holder.pid, "host": holder.host, "reason": holder.state})

    def _put_back(self, folder: Folder, away: str, lock: str) -> None:
        """Give a lock that another program made in the very moment its name again, unless it is taken."""
        try:
            self._store.link(folder, away, lock)
        except FileExistsError:
            pass  # yet another one; two holders of another program are for it to settle
        self._store.unlink(folder, away)


def _deadline() -> float:
    return time.monotonic() + limits.LOCK_SECONDS


def _host() -> str:
    return os.uname().nodename


def _parse(data: bytes) -> tuple[int | None, str | None, int | None]:
    """pid, host and time (ms since 1970) of a lock file, None for each that it does not tell."""
    try:
        value = json.loads(data[:_LOCK_BYTES])
    except (ValueError, RecursionError):
        return None, None, None
    if not isinstance(value, dict):
        return None, None, None
    pid, host, ts = value.get("pid"), value.get("host"), value.get("ts")
    return (
        pid if type(pid) is int and 0 < pid < 2**31 else None,
        host if isinstance(host, str) and host.isprintable() and len(host) <= 255 else None,
        parse_ms(ts) if isinstance(ts, str) else None,
    )


def _is_alive(pid: int) -> bool:
    """Whether a process of this host exists; one of another user's does."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and only its parent has not taken notice; False where that cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"Z", b"X")
    except OSError:
        return False


def _judged_by_age(ts: int | None, status: os.stat_result) -> str:
    """stale after five minutes, else unknown.

    The age is told by what the lock says, or by its file where that says nothing or lies in the future:
    a clock that was set back must not keep a lock for ever.
    """
    now = time.time_ns() // 1_000_000
    times = (ts, status.st_mtime_ns // 1_000_000, status.st_ctime_ns // 1_000_000)
    past = next((told for told in times if told is not None and told <= now), now)
    return "stale" if now - past > limits.LOCK_STALE_MS else "unknown"
