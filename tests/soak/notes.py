"""Made-up notes with canaries in hidden places, then the sample corpus full of them through every example."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from cortex_tools.contract.executables import EXECUTABLES
from tests.soak import kit
from tests.test_privacy_everywhere import NOTES, check_notes, make_place, tried

SHARE = 2


def search(budget: kit.Budget) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made_up(budget.share(0.6), budget, Path(folder, "root"))
        number = 0
        while not budget.over():
            number += 1
            place = Path(folder, str(number))
            place.mkdir()
            case = budget.random.randrange(1 << 32)
            make_place(place, case)
            for command in EXECUTABLES.values():
                for example in command.examples:
                    budget.tried += 1
                    try:
                        tried(place, example)
                    except AssertionError as error:
                        raise kit.Finding(f"a canary is shown: {error}", (f"make_place(_, {case})", example)) from None


def made_up(part: kit.Budget, budget: kit.Budget, root: Path) -> None:
    turn = 0
    while not part.over():
        turn += 1

        @seed(budget.seed * 1_000_000 + turn)
        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(NOTES)
        def once(notes: tuple[str, str, str]) -> None:
            budget.tried += 1
            check_notes(*notes, root)

        try:
            once()
        except AssertionError as error:
            raise kit.Finding("what a note hides is shown", (str(error), getattr(error, "__notes__", ""))) from error


if __name__ == "__main__":
    kit.main(search)
