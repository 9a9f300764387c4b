"""A corpus that a second process changes all the time: what is answered held at one moment, or is integrity_error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.soak import kit
from tests.support import run

SHARE = 2
# Every state names its generation in both notes; `a` is always written before `b`, so that b is never ahead.
MUTATOR = r"""
import os, random, shutil, sys
root, chance = sys.argv[1], random.Random(int(sys.argv[2]))
folder = os.path.join(root, "KNOWLEDGE")
def text(name, generation):
    head = f"---\nid: {name}\ntype: memory\ncreated: 2024-01-01\n---\n"
    return head + f"loom generation {generation} " + "x" * chance.randrange(9000)
def put(path, data):
    with open(path + ".new", "w") as file:
        file.write(data)
    os.replace(path + ".new", path)
generation = 0
while True:
    generation += 1
    kind = chance.randrange(4)
    if kind == 0:  # one after the other, new files in place of old ones
        for name in "ab":
            put(os.path.join(folder, name + ".md"), text(name, generation))
    elif kind == 1:  # all at once: a folder in place of another
        fresh = os.path.join(root, f"fresh{generation}")
        os.mkdir(fresh)
        for name in "ab":
            put(os.path.join(fresh, name + ".md"), text(name, generation))
        os.rename(folder, os.path.join(root, f"old{generation}"))
        os.rename(fresh, folder)
        shutil.rmtree(os.path.join(root, f"old{generation}"))  # else the root grows for as long as the soak lasts
    elif kind == 2:  # in between a third note comes and goes, under another name
        extra = os.path.join(folder, "extra.md")
        put(extra, text("extra", generation))
        os.rename(extra, extra[:-3] + "2.md")
        os.unlink(extra[:-3] + "2.md")
    else:  # a link to outside, where the canary is
        link = os.path.join(folder, "link.md")
        os.symlink(os.path.join(root, "outside.txt"), link)
        os.unlink(link)
"""


def search(budget: kit.Budget) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "KNOWLEDGE").mkdir()
        (root / "outside.txt").write_text("loom CANARY")
        for name in "ab":
            body = f"---\nid: {name}\ntype: memory\ncreated: 2024-01-01\n---\nloom generation 0 "
            (root / "KNOWLEDGE" / f"{name}.md").write_text(body)
        mutator = subprocess.Popen([sys.executable, "-c", MUTATOR, folder, str(budget.seed)])
        try:
            while not budget.over():
                budget.tried += 1
                if mutator.poll() is not None:
                    raise RuntimeError("the mutator has ended")
                words = budget.random.choice((("get", "a", "b"), ("rebuild", "--from-canonical"), ("search", "loom")))
                judge(words, run("cortex", *words, "--memory-root", folder))
        finally:
            mutator.kill()
            mutator.wait()


def judge(words: tuple[str, ...], done: subprocess.CompletedProcess[bytes]) -> None:
    body = json.loads(done.stdout)
    if b"CANARY" in done.stdout + done.stderr:
        raise kit.Finding("text from outside the root", words)
    if done.returncode:
        # Between two renames there is no KNOWLEDGE, and the flat root holds what a note may not be or none at all.
        if body["error"]["code"] not in ("integrity_error", "not_found"):
            raise kit.Finding("another failure", (words, body))
        return
    if words[0] == "get":
        first, second = (int(re.findall(r"generation (\d+)", item["content"])[0]) for item in body["data"]["items"])
        if second > first:
            raise kit.Finding("a state that never was", (first, second))


if __name__ == "__main__":
    kit.main(search)
