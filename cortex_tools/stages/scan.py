"""cortex-scan: list the corpus, with every check that needs no content (section 5)."""

from __future__ import annotations

from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import values
from cortex_tools.files.processes import split
from cortex_tools.files.root import pin_root, requested_root
from cortex_tools.files.walk import NoteFile, walk
from cortex_tools.streams.items import Corpus
from cortex_tools.streams.lines import encode
from cortex_tools.streams.segments import SegmentWriter

_DECLARED = STAGES["cortex-scan"]


def run(arguments: Arguments, writer: SegmentWriter) -> None:
    """Write one segment a part; nothing at all before the whole walk is done."""
    parts = values.count(_DECLARED.options["--parts"], arguments.text("--parts")) or 1
    root = pin_root(requested_root(None, arguments.text("--memory-root")))
    files = walk(root)
    listing = _listing_id(root.text, files)
    for part, share in enumerate(split(files, parts), 1):
        writer.write(Corpus(root.text, listing, part, parts, len(share), sum(file.bytes for file in share)))
        for file in share:
            writer.write(file)
        writer.seal()


def _listing_id(root: str, files: list[NoteFile]) -> str:
    """The same for two scans of an unchanged corpus, so that only parts that fit together are gathered."""
    from xxhash import xxh3_64

    hasher = xxh3_64(root.encode())
    for file in files:
        hasher.update(encode(file))
    return hasher.hexdigest()
