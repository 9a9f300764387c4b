"""Executables on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import threading

from tests.support import BIN


def on_terminal(
    argv: list[str], env: dict[str, str], input: bytes = b"", *, output_too: bool = False
) -> tuple[subprocess.CompletedProcess[bytes], bytes]:
    """The executable with a terminal as standard error, and what that was sent."""
    master, terminal = pty.openpty()
    sent: list[bytes] = []

    def listen() -> None:
        while True:
            try:
                data = os.read(master, 65_536)
            except OSError:  # the last who held it has closed it
                return
            if not data:
                return
            sent.append(data)

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        stdout = terminal if output_too else subprocess.PIPE
        done = subprocess.run(
            [BIN / argv[0], *argv[1:]], input=input, stdout=stdout, stderr=terminal, env=env, timeout=120
        )
    finally:
        os.close(terminal)
        listener.join(60)
        os.close(master)
    return done, b"".join(sent)
