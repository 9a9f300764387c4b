"""A corpus that goes through numbered states, and what each state's answers are.

A `Course` is made on a quiet copy: one call of the system after the other, and after each what the commands answer.
Then the same calls are made again under a reader.  What it answers must be what one of the states answers that
were there between its beginning and its end, or integrity_error.

`python -m tests.moving BASE SEED` makes them, over and over, as a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import random
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cortex_tools.library import Runtime, run_cortex
from tests.support import note, row

Step = tuple[str, ...]
Answer = tuple[int, str]  # exit status, and the envelope as the text of its JSON

# Below the base: the root, an alias that mostly leads to it, another root, a place for what is not in it, and one that
# no link may lead to.
ROOT, ALIAS, OTHER, SPARE, OUTSIDE = "root", "alias", "other", "spare", "outside"
CANARY = "CANARY"
WINDOW = ("--before", "100", "--after", "100", "--page-size", "100")
COMMANDS: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "search": ("search", "loom", "--page-size", "100"),
    "expand": ("search", "loom", "--expand", "n0", "--page-size", "100"),
    "get": ("get", "n0", "n1"),
    "export": ("export", "n2"),
    "timeline": ("timeline", "--anchor", "2024-01-01", *WINDOW),
    "rebuild": ("rebuild", "--from-canonical"),
}
LENGTH = 400  # bytes of a note that is to be written over in place
_PATHS = {name: getattr(os, name) for name in ("rename", "unlink", "mkdir", "rmdir", "mkfifo")}
# Kept from before a test replaces them.
_open, _write, _pwrite, _close, _utime, _stat = os.open, os.write, os.pwrite, os.close, os.utime, os.stat
_ftruncate, _symlink = os.ftruncate, os.symlink


# --- steps ---------------------------------------------------------------------------------------------------------


def take(base: Path, step: Step) -> None:
    """Do a step: one change that a reader can see, whatever has to be made ready for it out of its sight."""
    kind, *arguments = step
    if kind in _PATHS:
        _PATHS[kind](*(base / argument for argument in arguments))
    elif kind == "put":
        path, text = arguments
        descriptor = _open(base / SPARE / "new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        _write(descriptor, text.encode())
        _close(descriptor)
        _PATHS["rename"](base / SPARE / "new", base / path)
    elif kind == "symlink":
        _symlink(arguments[0], base / arguments[1])
    elif kind == "turn":  # the alias leads elsewhere from now on
        _symlink(arguments[0], base / "turned")
        _PATHS["rename"](base / "turned", base / ALIAS)
    elif kind == "exchange":
        exchange(base / arguments[0], base / arguments[1])
    else:
        path = arguments[0]
        flags = os.O_WRONLY | (os.O_APPEND if kind == "append" else 0)
        descriptor = _open(base / path, flags)
        before = os.fstat(descriptor) if kind == "forge" else None
        if kind == "truncate":
            _ftruncate(descriptor, int(arguments[1]))
        elif kind == "append":
            _write(descriptor, arguments[1].encode())
        else:  # "write" and "forge"
            _pwrite(descriptor, arguments[1].encode(), 0)
        if before is not None:
            _utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
        _close(descriptor)


def exchange(one: Path, other: Path) -> None:
    """Put each of two paths in the place of the other, in one call."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):  # AT_FDCWD, RENAME_EXCHANGE
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))


def exchanges(folder: Path) -> bool:
    """Whether two paths can be exchanged here."""
    one, other = folder / "exchange1", folder / "exchange2"
    try:
        one.touch()
        other.touch()
        exchange(one, other)
    except (OSError, AttributeError):
        return False
    finally:
        one.unlink(missing_ok=True)
        other.unlink(missing_ok=True)
    return True


def stamp(base: Path, step: Step, tick: int) -> None:
    """Give what a step changed a time of its own, where the clock's grain may be too coarse to tell."""
    if step[0] in ("forge", "turn"):
        return
    for path in step[1:3]:
        for changed in (base / path, (base / path).parent):
            if path.startswith((ROOT, SPARE)) and changed != base and not changed.is_symlink() and changed.exists():
                _utime(changed, ns=(0, 1_600_000_000_000_000_000 + tick))


# --- a course ------------------------------------------------------------------------------------------------------


class Course:
    """`steps` from an empty root back to it, and `answers` of the state before each, by the name of the command."""

    def __init__(self, base: Path, seed: int, length: int) -> None:
        """Make about `length` steps by chance, on a quiet copy in `base`, which they leave as they found it."""
        self._base = base
        self._chance = random.Random(seed)
        self._tokens = 0
        self._known: dict[object, dict[str, Answer]] = {}
        prepare(base)
        self._exchanges = exchanges(base)
        self.steps: list[Step] = []
        self.answers: list[dict[str, Answer]] = []
        self.leads: list[str] = []  # where the alias leads
        self.other = {name: ask(base, OTHER, words) for name, words in COMMANDS.items()}
        self._look()
        for name in ("KNOWLEDGE", "KNOWLEDGE/a", "KNOWLEDGE/b"):
            self._do(("mkdir", f"{ROOT}/{name}"))
        for number in range(5):
            self._do(("put", f"{ROOT}/KNOWLEDGE/{'ab'[number % 2]}/n{number}.md", self._text(f"n{number}")))
        self._do(("put", f"{ROOT}/KNOWLEDGE/log.jsonl", row("r0", content=f"loom {self._token()}")))
        while len(self.steps) < length:
            self._chance.choice(self._moves())()
        self._clear()
        assert self.answers.pop() == self.answers[0] and self.leads.pop() == ROOT

    def _token(self) -> str:
        self._tokens += 1
        return f"t{self._tokens:06}"

    def _text(self, id: str) -> str:
        """A note as long as every other."""
        text = note(id, f"loom {self._token()}\n- slug: n{self._chance.randrange(5)}")
        return text + "x" * (LENGTH - len(text) - 1) + "\n"

    def _do(self, *steps: Step) -> None:
        for step in steps:
            take(self._base, step)
            self.steps.append(step)
            self._look()

    def _look(self) -> None:
        seen = picture(self._base / ROOT)
        if seen not in self._known:
            self._known[seen] = {name: ask(self._base, ROOT, words) for name, words in COMMANDS.items()}
        self.answers.append(self._known[seen])
        self.leads.append(os.readlink(self._base / ALIAS))

    def _notes(self, within: str = f"{ROOT}/") -> list[str]:
        found = []
        for folder, _, names in os.walk(self._base / within):
            place = os.path.relpath(folder, self._base)
            paths = [f"{place}/{name}" for name in names if name.endswith(".md")]
            found += [path for path in paths if stat.S_ISREG(os.lstat(self._base / path).st_mode)]
        return sorted(found)

    def _folders(self) -> list[str]:
        return [name for name in (f"{ROOT}/KNOWLEDGE/a", f"{ROOT}/KNOWLEDGE/b") if (self._base / name).is_dir()]

    def _id(self, path: str) -> str:
        text = (self._base / path).read_text()
        return text.split("\n")[1].removeprefix("id: ") if text.startswith("---\nid: ") else "n9"

    def _moves(self) -> list[Callable[[], None]]:
        moves = [self._a_note] * 6 + [self._a_folder, self._a_corpus_folder, self._rows]
        return moves + ([self._link] if self._exchanges else []) + [self._hot, self._hidden, self._alias]

    def _a_note(self) -> None:
        notes, chance = self._notes(), self._chance
        if len(notes) < 3:
            folder, id = chance.choice(self._folders()), f"n{chance.randrange(9)}"
            self._do(("put", f"{folder}/{id}.md", self._text(id)))
            return
        path, another = chance.sample(notes, 2)
        kind = chance.choice(("put", "write", "write", "forge", "append", "cut", "move", "away", "swap", "fifo"))
        if kind == "append":
            self._do(("append", path, f"loom {self._token()}\n"))
        elif kind == "cut":
            self._do(("truncate", path, str(chance.choice((0, LENGTH // 2)))))
            self._do(("write", path, self._text(self._id(path))))
        elif kind == "move":
            self._do(("rename", path, f"{chance.choice(self._folders())}/{chance.choice('mn')}{self._token()}.md"))
        elif kind == "away":
            back = chance.choice((path, f"{chance.choice(self._folders())}/{Path(path).name}"))
            self._do(("rename", path, f"{SPARE}/away"), ("put", another, self._text(self._id(another))))
            self._do(("rename", f"{SPARE}/away", back))
        elif kind == "swap" and self._exchanges:
            self._do(("exchange", path, another))
        elif kind == "fifo":
            self._do(("rename", path, f"{SPARE}/away"), ("mkfifo", path), ("unlink", path))
            self._do(("rename", f"{SPARE}/away", path))
        else:  # two notes, one after the other: no state has the first's old text with the second's new one
            for each in (path, another) if chance.random() < 0.5 else (path,):
                fits = kind in ("write", "forge") and (self._base / each).stat().st_size == LENGTH
                self._do((kind if fits else "put", each, self._text(self._id(each))))

    def _a_folder(self) -> None:
        folder = self._chance.choice(self._folders())
        if self._exchanges and self._chance.random() < 0.5:
            self._do(("mkdir", f"{SPARE}/fresh"))
            for path in self._notes(folder):
                if "/" not in path.removeprefix(f"{folder}/"):
                    self._do(("put", f"{SPARE}/fresh/{Path(path).name}", self._text(self._id(path))))
            self._do(("exchange", folder, f"{SPARE}/fresh"))
            self._remove(f"{SPARE}/fresh")
        else:
            self._do(("rename", folder, f"{SPARE}/folder"))
            notes = self._notes()
            if notes:
                path = self._chance.choice(notes)
                self._do(("put", path, self._text(self._id(path))))
            self._do(("rename", f"{SPARE}/folder", folder))

    def _a_corpus_folder(self) -> None:
        """KNOWLEDGE goes away and comes back; meanwhile the corpus is what lies beside it, or below MEMORY."""
        knowledge, away = f"{ROOT}/KNOWLEDGE", f"{SPARE}/KNOWLEDGE"
        beside = f"{ROOT}/beside.md" if self._chance.random() < 0.5 else f"{ROOT}/MEMORY/KNOWLEDGE/n0.md"
        if "MEMORY" in beside:
            self._do(("mkdir", f"{ROOT}/MEMORY"), ("mkdir", f"{ROOT}/MEMORY/KNOWLEDGE"))
        self._do(("put", beside, self._text("n0")))
        self._do(("rename", knowledge, away))
        self._do(("write", beside, self._text("n0")))
        self._do(("rename", away, knowledge))
        if "MEMORY" in beside:
            self._remove(f"{ROOT}/MEMORY")
        else:
            self._do(("unlink", beside))

    def _rows(self) -> None:
        path = f"{ROOT}/KNOWLEDGE/log.jsonl"
        if (self._base / path).stat().st_size > 2_000:
            self._do(("put", path, row("r0", content=f"loom {self._token()}")))
        line = row(f"r{self._token()}", content=f"loom {self._token()}")
        self._do(("append", path, line[:30]), ("append", path, line[30:]))  # a torn row is no row

    def _link(self) -> None:
        """What a link leads to is never answered, be it the very note or folder that was there."""
        link, kind = f"{SPARE}/link", self._chance.randrange(3)
        if kind == 0:
            memory = f"{ROOT}/MEMORY"
            self._do(("symlink", f"../{OUTSIDE}", memory))
            self._hot()
            self._do(("unlink", memory))
            return
        path = self._chance.choice([*self._notes(), *self._folders(), f"{ROOT}/KNOWLEDGE"])
        target = "../" * path.count("/") + (link if kind == 1 else OUTSIDE)
        self._do(("symlink", target, link), ("exchange", path, link))
        if path.endswith("KNOWLEDGE"):
            self._hot()
        self._do(("exchange", path, link), ("unlink", link))

    def _hot(self) -> None:
        hot = f"{ROOT}/HOT_MEMORY.md"
        self._do(("put", hot, self._text("hot")), ("write", hot, self._text("hot")))
        path = self._chance.choice([hot, *self._notes()])
        self._do(("put", path, self._text(self._id(path))), ("unlink", hot))

    def _hidden(self) -> None:
        path = self._chance.choice(self._notes())
        hidden = f"{Path(path).parent}/{self._chance.choice('_.')}{Path(path).name}"
        self._do(("rename", path, hidden), ("rename", hidden, path))

    def _alias(self) -> None:
        self._do(("turn", OTHER))
        path = self._chance.choice(self._notes())
        self._do(("put", path, self._text(self._id(path))), ("turn", ROOT))

    def _remove(self, place: str) -> None:
        for folder, names, files in os.walk(self._base / place, topdown=False):
            below = os.path.relpath(folder, self._base)
            for name in sorted(files):
                self._do(("unlink", f"{below}/{name}"))
            for name in sorted(names):
                self._do(("rmdir", f"{below}/{name}"))
        self._do(("rmdir", place))

    def _clear(self) -> None:
        for name in sorted(os.listdir(self._base / ROOT)):
            path = self._base / ROOT / name
            if path.is_dir():
                self._remove(f"{ROOT}/{name}")
            else:
                self._do(("unlink", f"{ROOT}/{name}"))
        assert not os.listdir(self._base / SPARE), os.listdir(self._base / SPARE)

    # What may be answered

    def allowed(self, name: str, first: int, last: int) -> list[list[Answer]]:
        """What a command may answer that ran from the state `first` to the state `last`, both counted on and on.

        That is for each root that the alias led to: it is resolved once, whatever becomes of the alias then.
        """
        states = [number % len(self.answers) for number in range(first, min(last, first + len(self.answers) - 1) + 1)]
        leads = {self.leads[number] for number in states}
        found = [[self.answers[number][name] for number in states]] if ROOT in leads else []
        return [*found, [self.other[name]]] if OTHER in leads else found

    def wrong(self, name: str, first: int, last: int, found: Answer) -> str:
        """What is wrong with an answer; empty where nothing is."""
        status, text = found
        if CANARY in text:
            return "text from outside the root"
        if refused(found):
            return ""
        allowed = self.allowed(name, first, last)
        if name == "rebuild" and status == 0:  # two passes over one root, each of them of one moment
            data = json.loads(text)["data"]
            one, other = data["canonical_digest"], data["rebuilt_digest"]
            for answers in allowed:
                right = [json.loads(answer)["data"] for code, answer in answers if code == 0]
                ends = {state["canonical_digest"]: state["records"] for state in right}
                if ends.get(one) == data["records"] and other in ends and data["equivalent"] == (one == other):
                    return ""
            return "a digest of no state"
        return "" if any(found in answers for answers in allowed) else "an answer of no state"


def prepare(base: Path) -> None:
    """An empty root and what lies beside it."""
    for name in (ROOT, OTHER, SPARE):
        (base / name).mkdir(parents=True)
    (base / OTHER / "n0.md").write_text(note("n0", "loom other"))
    (base / ALIAS).symlink_to(ROOT)
    for name in (".", "a", "b"):
        (base / OUTSIDE / name).mkdir(parents=True, exist_ok=True)
        for number in range(5):
            (base / OUTSIDE / name / f"n{number}.md").write_text(note(f"n{number}", f"loom {CANARY}"))


def picture(root: Path) -> object:
    """All that an answer can depend on."""
    found = []
    for folder, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(folder, name)
            kind = stat.S_IFMT(os.lstat(path).st_mode)
            held = Path(path).read_bytes() if stat.S_ISREG(kind) else b""
            found.append((os.path.relpath(path, root), kind, held))
    return tuple(sorted(found))


def ask(base: Path, name: str, words: Iterable[str]) -> Answer:
    """What the library answers about the root or the alias `name` below `base`."""
    return told(base, *run_cortex(list(words), Runtime(memory_root=base / name)))


def told(base: Path, status: int, envelope: Any) -> Answer:
    """An answer without the place where it was asked."""
    text = json.dumps(envelope, ensure_ascii=False)
    return status, text.replace(os.path.realpath(base), "BASE")


def refused(answer: Answer) -> bool:
    """Whether an answer is an integrity_error."""
    status, text = answer
    return status == 4 and json.loads(text).get("error", {}).get("code") == "integrity_error"


# --- the writer ----------------------------------------------------------------------------------------------------


class Clock:
    """The number of the state, shared between the writer and its readers: the last one begun, and the last one done."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")

    def begin(self) -> None:
        self._numbers[0] += 1

    def done(self) -> None:
        self._numbers[1] += 1

    def surely(self) -> int:
        """A state that is there, or was a moment ago."""
        return self._numbers[1]

    def perhaps(self) -> int:
        """The last state that can be there."""
        return self._numbers[0]


def grain(folder: Path) -> float:
    """Seconds within which two changes of a file may get the same time although it was looked at in between."""
    path, steps, seen = folder / "grain", [], 0
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        path.write_bytes(b"x")
        now = path.stat().st_mtime_ns
        if seen and now != seen:
            steps.append(now - seen)
        seen = now
    path.unlink()
    return sorted(steps)[len(steps) // 2] / 1e9 if steps else 1.0


def write(base: Path, steps: Iterable[Step], chance: random.Random, pause: float) -> None:
    """Make the steps over and over: some close together, then a while none; at least `pause` seconds apart."""
    clock, steps = Clock(base / "clock"), list(steps)
    while True:
        for step in steps:
            clock.begin()
            take(base, step)
            clock.done()
            gap = chance.choice((0.0, 0.0, 0.0003, 0.002, 0.002, 0.01, 0.05, 0.3))
            if gap or pause:
                time.sleep(max(gap, pause))


if __name__ == "__main__":
    _base = Path(sys.argv[1])
    _fine = grain(_base)
    write(
        _base,
        [tuple(step) for step in json.loads((_base / "steps").read_text())],
        random.Random(int(sys.argv[2])),
        0.0 if _fine < 0.0005 else 3 * _fine,
    )
