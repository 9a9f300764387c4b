#!/usr/bin/env python3
"""Write a deterministic Cortex corpus for benchmarks (standard library only).

usage: make_corpus.py DIR {s|m|l|xl} [--seed N]

  s    300 records,   ~1 MiB         l   10,000 records,  ~40 MiB
  m  1,500 records,   ~6 MiB         xl  50,000 records, ~124 MiB (just below every corpus limit)

The same size and seed always give the same bytes.  Word frequencies follow Zipf's law; one record in
fifty holds a private span, one in ten has a validity window, one in five links to others.
"""

import argparse
import json
import random
from pathlib import Path

SIZES = {  # markdown files, jsonl rows, mean body characters
    "s": (280, 20, 3_300),
    "m": (1_400, 100, 4_000),
    "l": (6_000, 4_000, 4_000),
    "xl": (9_900, 40_100, 2_450),
}
SYLLABLES = (
    "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu za bra cle dri flo gru pla ske tri sto".split()
)
FOLDERS = ["People", "Companies", "Research", "Ideas", "Blogs"]
TYPES = {"People": "person", "Companies": "company", "Research": "research", "Ideas": "idea", "Blogs": "blog"}
SOURCES = ["internal", "web", "conversation", "import"]


def vocabulary(rng, size=20_000):
    words = set()
    while len(words) < size:
        words.add("".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))))
    return sorted(words)


def body(rng, words, weights, mean):
    target = max(200, int(rng.gauss(mean, mean / 3)))
    picked = rng.choices(words, cum_weights=weights, k=target // 10)
    parts, line = [], []
    for word in picked:
        line.append(word)
        roll = rng.random()
        if roll < 0.08:
            parts.append(" ".join(line).capitalize() + ".")
            line = []
            if roll < 0.02:
                parts.append(rng.choice(["\n\n", "\n\n## ", "\n\n- ", "\n\n> ", "\n\n```\n"]))
    parts.append(" ".join(line))
    text = " ".join(parts)
    if rng.random() < 0.1:
        text += " café naïve 東京 — “quoted” 😀"
    if rng.random() < 0.02:
        text += "\n<private>secret " + " ".join(rng.choices(words, k=12)) + "</private> after"
    return text


def stamp(rng, year_from=2023):
    return (
        f"{rng.randint(year_from, 2025):04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        f"T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}.{rng.randint(0, 999):03d}Z"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    files, rows, mean = SIZES[args.size]
    words = vocabulary(rng)
    weights, total = [], 0.0
    for rank in range(1, len(words) + 1):
        total += 1 / rank**0.9
        weights.append(total)
    rng.shuffle(words)
    count = files + rows
    ids = [f"kb-{n:05d}-{words[n % len(words)]}" for n in range(count)]

    def fields(n):
        created, updated = sorted((stamp(rng), stamp(rng)))
        window = {}
        if rng.random() < 0.1:
            window["valid_from"] = stamp(rng, 2020)[:10] if rng.random() < 0.5 else "2020-01-01T00:00:00Z"
            window["valid_until"] = rng.choice(["2026-01-01", "2099-12-31T00:00:00Z", "2031-06-01T00:00:00+02:00"])
        related = [ids[rng.randrange(count)] for _ in range(rng.randint(1, 4))] if rng.random() < 0.2 else []
        title = " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(2, 6))).title()
        session = f"s-{rng.randrange(200):03d}" if rng.random() < 0.5 else None
        return title, created, updated, window, related, session

    for n in range(files):
        folder = rng.choice(FOLDERS)
        title, created, updated, window, related, session = fields(n)
        head = [
            "---",
            f"id: {ids[n]}",
            f"type: {TYPES[folder]}",
            f'title: "{title}"',
            "tags: [untagged]",
            "status: seedling",
            f"source_kind: {rng.choice(SOURCES)}",
        ]
        if session:
            head.append(f"source_session: {session}")
        head += [f"created: {created}", f"updated: {updated}"] + [f"{k}: {v}" for k, v in window.items()]
        head += ["related:" if related else "related: []"]
        for slug in related:
            head += [f"  - slug: {slug}", "    type: related"]
        text = "\n".join(head + ["---", "", f"# {title}", "", body(rng, words, weights, mean), ""])
        path = args.dir / "KNOWLEDGE" / folder / f"{ids[n]}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    log = args.dir / "KNOWLEDGE" / "Log"
    log.mkdir(parents=True, exist_ok=True)
    for start in range(files, count, 2_000):
        lines = []
        for n in range(start, min(start + 2_000, count)):
            title, created, updated, window, related, session = fields(n)
            row = {
                "id": ids[n],
                "type": "log",
                "title": title,
                "created": created,
                "updated": updated,
                "source_kind": rng.choice(SOURCES),
                "content": body(rng, words, weights, mean),
            }
            if session:
                row["source_session"] = session
            if related:
                row["related"] = related
            row.update(window)
            lines.append(json.dumps(row, ensure_ascii=rng.random() < 0.2))
        (log / f"log-{start:05d}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
