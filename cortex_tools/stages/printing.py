"""Stages whose answer is text for people or another program, and no stream."""

from __future__ import annotations

from cortex_tools.contract.errors import integrity_error
from cortex_tools.files.stdio import write_all
from cortex_tools.files.walk import NoteFile
from cortex_tools.stages.base import Stage
from cortex_tools.stages.census import Census
from cortex_tools.streams.items import Seal
from cortex_tools.streams.segments import SegmentReader, SegmentWriter


def run(stage: Stage, reader: SegmentReader, unused: SegmentWriter) -> None:
    """Print once the last seal has been checked; nothing is printed where the stage or the stream fails."""
    census = Census()
    for item in reader:
        if isinstance(item, NoteFile):
            raise integrity_error("the stream lists notes that nobody has read; put cortex-strip before this stage")
        if not isinstance(item, Seal):
            census.take(item)
            stage.take(item)
    census.check()
    write_all(stage.text().encode())
