#!/usr/bin/env python3
"""A fixed, plain piece of work over a corpus, to compare timings across noisy machines (standard library only).

usage: yardstick.py DIR

Reads every note below DIR/KNOWLEDGE, keeps all of them in memory, parses JSONL rows, and counts lower-cased
[a-z0-9]+ words twice.  Time this and the product in turn on the same machine; quote product / yardstick.
"""

import json
import re
import sys
from pathlib import Path

WORD = re.compile("[a-z0-9]+")


def main():
    texts = []
    for path in sorted(Path(sys.argv[1], "KNOWLEDGE").rglob("*.*")):
        text = path.read_text(encoding="utf-8")
        texts += (
            [json.loads(line)["content"] for line in text.split("\n") if line] if path.suffix == ".jsonl" else [text]
        )
    words = [sum(len(WORD.findall(text.lower())) for text in texts) for _ in range(2)]
    print(len(texts), "notes", words[0], "words")


if __name__ == "__main__":
    main()
