"""Where everything lies below a memory root, and which tier a path belongs to (docs/writing.md)."""

from __future__ import annotations

import os

from cortex_tools.contract.errors import CortexError
from cortex_tools.files.root import Root, pin_root
from cortex_tools.governance.folders import Folder
from cortex_tools.governance.places import HOT_FILES, KNOWLEDGE, TARGETS, where
from cortex_tools.governance.refusal import ETIER_MISMATCH, Refusal, invalid_item, write_failed
from cortex_tools.governance.store import Store

_APPEND_TARGETS = ("PROJECTS.md", "CONTACTS.md")
TIERS = {"memory": "A", "idea": "B", "knowledge": "B", "proposal": "C"}


class Place:
    """A file: below the root or below USER (`base`), in the folder `parts`, called `name`."""

    __slots__ = ("base", "name", "parts")

    def __init__(self, base: str, parts: tuple[str, ...], name: str) -> None:
        self.base = base
        self.parts = parts
        self.name = name


class Layout:
    """The store below one memory root.

    `requested` is the root as asked for, by which USER lies beside it or, in a self-contained store, in it.
    """

    def __init__(self, root: Root, requested: bytes) -> None:
        self.root = root
        self._lexical, beside = where(requested)
        self.self_contained = beside is None
        self._user_lexical = os.path.join(beside or self._lexical, b"USER")
        self._user: Root | None = None

    def close(self) -> None:
        if self._user is not None:
            self._user.close()
            self._user = None

    # Places.

    def hot(self, actor: str) -> Place:
        folder, name = HOT_FILES[actor]
        return Place("root", (), name) if self.self_contained else Place("user", (folder,), name)

    def target(self, path: str) -> Place:
        """A file of USER by its path below it, as in TARGETS."""
        return self._in_user(tuple(path.split("/")))

    def _in_user(self, parts: tuple[str, ...]) -> Place:
        if self.self_contained:
            return Place("root", ("USER", *parts[:-1]), parts[-1])
        return Place("user", parts[:-1], parts[-1])

    def is_note(self, place: Place) -> bool:
        """Whether the corpus takes the file for a note."""
        return place.base == "root" and (place.parts[:1] == (KNOWLEDGE,) or self.is_hot(place))

    def is_hot(self, place: Place) -> bool:
        return any(self.path(place) == self.path(self.hot(actor)) for actor in HOT_FILES)

    # Paths.

    def path(self, place: Place) -> str:
        """The absolute path of a place below the root or USER as requested, no link followed."""
        base = self._lexical if place.base == "root" else self._user_lexical
        return "/".join((os.fsdecode(base), *place.parts, place.name))

    def target_named(self, target_file: str, kind: str | None) -> tuple[str, str]:
        """Kind and path below USER of the file that a proposal means; raises EINVAL_ITEM.

        A kind with one target is pinned to it, whatever was named; identity must name one of its two.
        """
        named = self._below_user(target_file)
        if kind is None:
            kind = next((kind for kind, targets in TARGETS.items() if named in targets), "identity")
        targets = TARGETS[kind]
        if len(targets) == 1:
            return kind, targets[0]
        if named not in targets:
            raise invalid_item(f"target_file of the kind {kind} must be one of {', '.join(targets)} below USER")
        assert named is not None
        return kind, named

    def _below_user(self, target_file: str) -> str | None:
        """The path below USER that `target_file` names; None where it lies elsewhere.

        It may be absolute, begin with `~/`, or be relative to USER or to the folder that holds it.
        """
        if target_file.startswith("~/"):
            target_file = os.path.expanduser("~") + target_file[1:]
        path = os.path.normpath(os.fsencode(target_file))
        if not os.path.isabs(path):
            return os.fsdecode(path.removeprefix(b"USER/"))
        for user in (self._user_lexical, os.path.realpath(self._user_lexical)):
            if path.startswith(user + b"/"):
                return os.fsdecode(path[len(user) + 1 :])
        return None

    # Tiers.

    def tier(self, path: str) -> str:
        """A set-overwrite, B append and audit, C propose only, D untouchable; by path alone, first match."""
        path = os.path.normpath(path)
        user = os.fsdecode(self._user_lexical)
        if any(path == self.path(self.hot(actor)) for actor in HOT_FILES):
            return "A"
        if path in [f"{user}/{name}" for name in _APPEND_TARGETS]:
            return "B"
        if path.startswith(f"{os.fsdecode(self._lexical)}/{KNOWLEDGE}/"):
            return "B"
        named = [target for targets in TARGETS.values() for target in targets]
        return "C" if path in [f"{user}/{target}" for target in named] else "D"

    def check_tier(self, kind: str, place: Place) -> None:
        """Raise ETIER_MISMATCH unless items of this type may be written at `place`."""
        tier = self.tier(self.path(place))
        if tier != TIERS[kind]:
            message = f"{place.name} is of tier {tier}, and the type {kind} writes to tier {TIERS[kind]} only"
            raise Refusal(ETIER_MISMATCH, message)

    # Folders.

    def base(self, store: Store, place: Place, *, make: bool) -> Folder:
        """The open base folder of a place: the pinned root, or the real USER folder, with `make` made if missing."""
        if place.base == "root":
            return store.base(self.root, "")
        if self._user is None:
            self._user = self._pin_user(store, make=make)
        return store.base(self._user, self._user.text)

    def _pin_user(self, store: Store, *, make: bool) -> Root:
        try:
            if make and not os.path.lexists(self._user_lexical):
                beside = pin_root(os.path.dirname(self._user_lexical))
                try:
                    store.below(store.base(beside, beside.text), "USER", make=True)
                finally:
                    beside.close()
            return pin_root(self._user_lexical)
        except CortexError as error:
            raise write_failed(f"the USER folder cannot be used: {error.message}") from None
