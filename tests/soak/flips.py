"""Every bit of every note of the sample corpus, then random bits of streams between stages, through whole stages."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.seam import Job, Seam
from tests.soak import kit
from tests.support import SAMPLE
from tests.test_bit_flips import FILES, STAGES, flip_a_note, flip_a_stream, readers, records, streams_of

SHARE = 2


def search(budget: kit.Budget) -> None:
    notes(budget)
    streams(budget)


def notes(budget: kit.Budget) -> None:
    names = list(FILES)
    budget.random.shuffle(names)
    for name in names:
        data = (SAMPLE / name).read_bytes()
        right = records(name, data)
        for bit in range(len(data) * 8):
            if budget.over():
                return
            budget.tried += 1
            try:
                flip_a_note(name, data, right, bit)
            except AssertionError as error:
                raise kit.Finding(f"a flipped bit: {error}", (name, bit)) from None
    print(f"flips: every bit of {len(names)} notes, {budget.tried:,} in all", flush=True)


def streams(budget: kit.Budget) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        written, argvs = streams_of(root), readers(root)
        seam = Seam(folder)
        while not budget.over():
            number = budget.random.randrange(len(STAGES))
            data, argv = written[STAGES[number]], argvs[number]
            right = seam.run(Job(argv, data)).stdout
            for _ in range(200):
                bit = budget.random.randrange(len(data) * 8)
                budget.tried += 1
                try:
                    flip_a_stream(seam, argv, data, right, bit)
                except AssertionError as error:
                    raise kit.Finding(f"a flipped bit of a stream: {error}", (STAGES[number], argv, bit)) from None
        seam.close()


if __name__ == "__main__":
    kit.main(search)
