"""cortex-strip: read notes behind the privacy boundary, the only stage that opens them (sections 5-7)."""

from __future__ import annotations

import os
from functools import partial

from cortex_tools.contract import limits
from cortex_tools.contract.errors import integrity_error
from cortex_tools.contract.grammar import Arguments
from cortex_tools.contract.options import STAGES
from cortex_tools.domain import values
from cortex_tools.files.names import shown
from cortex_tools.files.processes import Worker, close_all, split, while_alive
from cortex_tools.files.reading import read_records
from cortex_tools.files.root import Root, pin_root
from cortex_tools.files.spool import Spool
from cortex_tools.files.stdio import STDERR, STDOUT
from cortex_tools.files.walk import NoteFile, corpus_folder, would_list
from cortex_tools.stages.census import Census
from cortex_tools.streams.items import Corpus, Seal
from cortex_tools.streams.lines import encode
from cortex_tools.streams.segments import SegmentReader, SegmentWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

READING = "reading notes"
_FROM_SCAN = "cortex-strip reads what cortex-scan lists"
_DECLARED = STAGES["cortex-strip"]


def run(arguments: Arguments, reader: SegmentReader, writer: SegmentWriter) -> None:
    """Read the whole listing, then open its notes: none before scan's seal has been checked."""
    jobs = values.count(_DECLARED.options["--jobs"], arguments.text("--jobs")) or 1
    segments = _segments(reader)
    writer.unsealed = reader.unsealed
    census = Census()
    for corpus, files in segments:
        writer.seal()
        writer.write(corpus)
        if corpus.root is None:
            raise integrity_error(f"the stream names no memory root; {_FROM_SCAN}")
        root = pin_root(corpus.root.encode())
        try:
            if root.text != corpus.root:
                raise integrity_error(f"the memory root {shown(corpus.root)} changed after it was listed; try again")
            _check_names(root, files)
            _write_records(root, files, jobs, census, writer)
        finally:
            root.close()
    if len(segments) == segments[0][0].parts:
        census.check()  # with parts elsewhere, the first stage that sees all of them judges
    writer.seal()


def _segments(reader: SegmentReader) -> list[tuple[Corpus, list[NoteFile]]]:
    segments: list[tuple[Corpus, list[NoteFile]]] = []
    count = size = 0
    for item in reader:
        if isinstance(item, Corpus):
            segments.append((item, []))
        elif isinstance(item, NoteFile) and segments:
            segments[-1][1].append(item)
            count, size = count + 1, size + item.bytes
            if count > limits.CORPUS_FILES:
                raise integrity_error(f"the stream lists more than {limits.CORPUS_FILES} files; {_FROM_SCAN}")
            if size > limits.CORPUS_BYTES:
                raise integrity_error(f"the stream lists more than {limits.CORPUS_BYTES} bytes; {_FROM_SCAN}")
        elif not isinstance(item, Seal):
            raise integrity_error(f"a {item.kind} line has no place before cortex-strip; feed it from cortex-scan")
    if not segments:
        raise integrity_error("the stream has no corpus line; cortex-strip needs it to know the root")
    return segments


def _check_names(root: Root, files: list[NoteFile]) -> None:
    """A listing may have gone through another program: no note is opened for it that the walk would not have found."""
    folder = corpus_folder(root)
    for file in files:
        if not would_list(folder, file.path):
            raise integrity_error(f"{shown(file.path)} is no note of the corpus; {_FROM_SCAN}")


def _write_records(root: Root, files: list[NoteFile], jobs: int, census: Census, writer: SegmentWriter) -> None:
    # What is written to a terminal itself shows how far it is.
    watched = os.isatty(STDERR) and not os.isatty(STDOUT)
    if jobs > 1:
        _write_with_jobs(root, files, jobs, census, writer, watched)
    elif not watched:
        _write_here(root, files, census, writer)
    else:
        from cortex_tools.files.progress import Progress

        with Progress(READING, files, lambda file: file.bytes) as shown_files:
            _write_here(root, shown_files, census, writer)


def _write_here(root: Root, files: Iterable[NoteFile], census: Census, writer: SegmentWriter) -> None:
    for record in read_records(root.descriptor, files):
        census.take(record)
        writer.write(record)


def _write_with_jobs(
    root: Root, files: list[NoteFile], jobs: int, census: Census, writer: SegmentWriter, watched: bool
) -> None:
    workers: list[Worker] = []
    spools: list[Spool] = []
    try:
        for number, share in enumerate(split(files, jobs), 1):
            spools.append(Spool())
            # All shares are of about equal work: one shows how far all are.
            work = partial(_spool_records, root, share, spools[-1], os.getpid(), watched and number == 1)
            workers.append(Worker(work, f"share {number} of {jobs}"))
        for worker, spool in zip(workers, spools, strict=True):
            seen, places = worker.result()
            census.absorb(seen)
            for place in places:
                writer.write_line(spool.read(*place))
    finally:
        close_all(workers)
        if watched:
            from cortex_tools.files.progress import erase

            erase(READING)  # a worker that was ended could not
        for spool in spools:
            spool.close()


def _spool_records(
    root: Root, files: list[NoteFile], spool: Spool, parent: int, watched: bool
) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """One job's share: its lines into the spool; what the census wants, and where the lines lie."""
    census = Census()
    places = []

    def read(listed: Iterable[NoteFile]) -> None:
        for record in read_records(root.descriptor, while_alive(listed, parent)):
            census.take(record)
            places.append(spool.add(encode(record)))

    if watched:
        from cortex_tools.files.progress import Progress

        with Progress(READING, files, lambda file: file.bytes) as shown_files:
            read(shown_files)
    else:
        read(files)
    spool.flush()
    return census.partial(), places
