"""Opening listed notes: below the pinned root, no link followed, nothing changed (section 14.10)."""

from __future__ import annotations

import os
import stat

from cortex_tools.contract.errors import CortexError, Unsound
from cortex_tools.files.names import shown
from cortex_tools.files.root import FILE_FLAGS, FOLDER_FLAGS
from cortex_tools.files.walk import NoteFile, state, unreadable


class NoteReader:
    """Reads listed notes, keeping the folder of the last one open: neighbours in a listing share it."""

    def __init__(self, root_descriptor: int) -> None:
        self._root = root_descriptor
        self._folder = ""
        self._descriptor = -1

    def read(self, file: NoteFile) -> bytes:
        """The whole content of `file`.

        Raises integrity_error where it cannot be opened or is not, before and after reading, exactly the
        file that was listed (`changed`).
        """
        folder, _, name = file.path.rpartition("/")
        try:
            if self._descriptor < 0 or folder != self._folder:
                self._enter(folder)
            descriptor = os.open(name.encode(), FILE_FLAGS, dir_fd=self._descriptor)
        except OSError as error:
            raise unreadable(file.path, error) from None
        try:
            return self._read(descriptor, file)
        except OSError as error:
            raise unreadable(file.path, error) from None
        finally:
            os.close(descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self, descriptor: int, file: NoteFile) -> bytes:
        status = os.fstat(descriptor)
        if not file.ctime_ns:  # listed by another process
            file.ctime_ns = status.st_ctime_ns
        expected = file.state
        if not stat.S_ISREG(status.st_mode) or state(status) != expected:
            raise _changed(file)
        data = os.read(descriptor, file.bytes + 1)
        while len(data) < file.bytes:
            more = os.read(descriptor, file.bytes + 1 - len(data))
            if not more:
                break
            data += more
        if len(data) != file.bytes or state(os.fstat(descriptor)) != expected:
            raise _changed(file)
        return data

    def _enter(self, folder: str) -> None:
        self.close()
        descriptor = os.dup(self._root)
        try:
            for name in folder.split("/") if folder else ():
                above = descriptor
                descriptor = os.open(name.encode(), FOLDER_FLAGS, dir_fd=above)
                os.close(above)
        except OSError:
            os.close(descriptor)
            raise
        self._folder, self._descriptor = folder, descriptor


def _changed(file: NoteFile) -> CortexError:
    return Unsound(shown(file.path), "changed after it was listed", "try again", changed=True)
