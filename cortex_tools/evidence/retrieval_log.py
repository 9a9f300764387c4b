"""The retrieval log's producer: one row a search, with a keyed hash in the query's place."""

from __future__ import annotations

import os
import stat

from cortex_tools.domain.jsontext import json_text
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import appending, reading
from cortex_tools.evidence.appending import CannotAppend
from cortex_tools.evidence.layout import RETRIEVAL_LOG
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.files.root import Root
from cortex_tools.governance import logs
from cortex_tools.governance.session import Session

KEY_FILE = ".retrieval-key"
KEY_BYTES = 32


def append_row(
    root: Root, query: str, *, now_ms: int, returned_count: int, duration_ms: float, top_score: float | None
) -> None:
    """Append the row of one search; raises CannotAppend.

    `duration_ms` is what the search took; `top_score` None where it returned nothing.
    """

    def add(session: Session) -> None:
        row: list[str] = [
            f'"ts":{json_text(format_ms(now_ms))}',
            f'"query_hash":{json_text(query_hash(_key(session), query))}',
            f'"returned_count":{returned_count}',
            f'"duration_ms":{round(duration_ms, 3)}',
        ]
        if top_score is not None:
            row.append(f'"top_score":{top_score}')
        appending.add(session, RETRIEVAL_LOG, f"{{{','.join(row)}}}\n".encode())

    appending.below(root, add)


def query_hash(secret: bytes, query: str) -> str:
    """HMAC-SHA256 of the query in hex: equal queries can be told, guessed ones not checked without the key."""
    import hmac

    return hmac.digest(secret, query.encode("utf-8", "replace"), "sha256").hex()


def _key(session: Session) -> bytes:
    """The key in OBSERVABILITY, made on first use, readable by its owner alone; raises CannotAppend."""
    folder = session.observability()
    try:
        try:
            return _read_key(folder.descriptor)
        except Missing:
            logs.begin(session.store, folder, KEY_FILE, os.urandom(KEY_BYTES).hex().encode() + b"\n")
            return _read_key(folder.descriptor)
    except Missing:
        raise CannotAppend(f"the key {KEY_FILE} vanished; try again") from None
    except Unreadable as error:
        raise CannotAppend(f"the key {KEY_FILE} {error}") from None


def _read_key(folder: int) -> bytes:
    descriptor = reading.open_file(folder, KEY_FILE)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            raise Unreadable("can be read by others; set its mode to 600, or remove it for a new one")
        text = reading.read_small(descriptor, 4 * KEY_BYTES)
    finally:
        os.close(descriptor)
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise Unreadable(f"does not hold {KEY_BYTES} bytes in hex; remove it for a new one")
    return secret
