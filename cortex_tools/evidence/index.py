"""The index: affirmed to be absent, or there with a manifest whose every byte is verified."""

from __future__ import annotations

import hashlib
import os

from cortex_tools.contract.errors import CortexError
from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import policy, reading
from cortex_tools.evidence.findings import Finding, Outcome
from cortex_tools.evidence.kinds import time_ms
from cortex_tools.evidence.layout import INDEX_MANIFEST, Layout
from cortex_tools.evidence.reading import Missing, Unreadable
from cortex_tools.evidence.thresholds import Thresholds
from cortex_tools.files.names import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CHECK = "index"
SCHEMA = "lifeos-cortex-index/v1"
VARIABLE = "CORTEX_INDEX_MANIFEST"

_KEYS = {"schema", "canonical_sha256", "index_path", "index_sha256", "indexed_at"}


class Manifest:
    """A manifest that is well formed: two hashes, the index's path below the manifest's folder, ms since 1970."""

    __slots__ = ("canonical_sha256", "index_path", "index_sha256", "indexed_ms")

    def __init__(self, canonical_sha256: str, index_path: str, index_sha256: str, indexed_ms: int) -> None:
        self.canonical_sha256 = canonical_sha256
        self.index_path = index_path
        self.index_sha256 = index_sha256
        self.indexed_ms = indexed_ms


def check(layout: Layout, thresholds: Thresholds, now_ms: int, environ: Mapping[str, str]) -> Outcome:
    """Judge the manifest; only where there is none, the policy marker."""
    given = environ.get(VARIABLE)
    path = given or INDEX_MANIFEST
    evidence: dict[str, Any] = {"path": shown(path)}
    try:
        folder, name = _open_manifest_folder(layout, given)
    except Missing:
        return _without_manifest(layout, evidence)
    except Unreadable as error:
        what = f"the folder of {shown(path)} {error}"
        return Outcome(CHECK, evidence, [Finding("index-manifest-invalid", what, evidence)])
    try:
        data = reading.read_file(folder, name)
        evidence["state"] = "manifest"
        findings = _judge(data, folder, layout, thresholds, now_ms, evidence)
    except Missing:
        return _without_manifest(layout, evidence)
    except Unreadable as error:
        findings = [Finding("index-manifest-invalid", f"{shown(path)} {error}", evidence)]
    finally:
        os.close(folder)
    return Outcome(CHECK, evidence, findings)


def manifest_exists(layout: Layout, environ: Mapping[str, str]) -> bool:
    """Whether anything stands where the manifest belongs."""
    try:
        folder, name = _open_manifest_folder(layout, environ.get(VARIABLE))
    except Missing:
        return False
    except Unreadable:
        return True
    return reading.holds(folder, name)


def _open_manifest_folder(layout: Layout, given: str | None) -> tuple[int, str]:
    """The manifest's folder, open, and its name.  A folder that the operator names may be reached by links."""
    folder, _, name = (given or INDEX_MANIFEST).rpartition("/")
    if not given:
        return reading.open_folder(layout.root.descriptor, folder), name
    if name in ("", ".", ".."):
        raise Unreadable("is named, but no file in it")
    try:
        opened = os.open(folder or ("/" if given.startswith("/") else "."), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing(folder) from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    return opened, name


def _without_manifest(layout: Layout, evidence: dict[str, Any]) -> Outcome:
    marker = policy.read(layout.beside, policy.NO_INDEX)
    evidence["policy"] = marker.evidence()
    if marker.state == policy.VALID:
        evidence["state"] = "no-index-v1"
        return Outcome(CHECK, evidence, [])
    if marker.state == policy.ABSENT:
        evidence["state"] = "no-evidence"
        what = "there is neither an index manifest nor an affirmation that there is no index"
        return Outcome(CHECK, evidence, [Finding("index-evidence-missing", what, evidence)])
    evidence["state"] = "invalid-policy"
    what = f"{shown(marker.path)} {marker.fault}"
    return Outcome(CHECK, evidence, [Finding("index-manifest-invalid", what, evidence)])


def _judge(
    data: bytes, folder: int, layout: Layout, thresholds: Thresholds, now_ms: int, evidence: dict[str, Any]
) -> list[Finding]:
    manifest = parse(data)
    if manifest is None:
        what = "the index manifest does not hold exactly the five fields of its schema, each well formed"
        return [Finding("index-manifest-invalid", what, evidence)]
    evidence |= {"index_path": shown(manifest.index_path), "indexed_at": format_ms(manifest.indexed_ms)}
    try:
        index_sha256, size = _hash_index(folder, manifest.index_path)
    except Missing:
        return [Finding("index-manifest-invalid", "the index that the manifest names is missing", evidence)]
    except Unreadable as error:
        return [Finding("index-manifest-invalid", f"the index {shown(manifest.index_path)} {error}", evidence)]
    evidence["index_bytes"] = size
    if index_sha256 != manifest.index_sha256:
        return [Finding("index-integrity-mismatch", "the index's bytes do not have the manifest's hash", evidence)]
    fault = _canonical_fault(layout, manifest, evidence)
    if fault is not None:
        return [Finding("index-integrity-mismatch", fault, evidence)]
    age = now_ms - manifest.indexed_ms
    evidence |= {"age_ms": age, "threshold_ms": thresholds["indexStaleMs"]}
    if age < 0:
        what = f"the index was made on {format_ms(manifest.indexed_ms)}, which is yet to come"
        return [Finding("index-freshness-invalid", what, evidence)]
    if age > thresholds["indexStaleMs"]:
        return [Finding("index-stale", f"the index was made on {format_ms(manifest.indexed_ms)}", evidence)]
    return []


def parse(data: bytes) -> Manifest | None:
    """The manifest that `data` is, None where it is not exactly one."""
    value = reading.parse_object(data)
    if value is None or set(value) != _KEYS or value["schema"] != SCHEMA:
        return None
    canonical, index, path = value["canonical_sha256"], value["index_sha256"], value["index_path"]
    indexed_ms = time_ms(value["indexed_at"])
    if not _is_hash(canonical) or not _is_hash(index) or not _stays_inside(path) or indexed_ms is None:
        return None
    return Manifest(canonical, path, index, indexed_ms)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")


def _stays_inside(path: Any) -> bool:
    """A relative path without empty parts, `.` and `..`: what is opened is what is named."""
    if not isinstance(path, str) or not path or "\0" in path:
        return False
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not any(part in ("", ".", "..") for part in path.split("/"))


def _hash_index(folder: int, path: str) -> tuple[str, int]:
    """SHA-256 and size of the index file, read in pieces."""
    descriptor = reading.open_file(folder, path)
    hasher = hashlib.sha256()
    size = 0
    try:
        while data := os.read(descriptor, reading.CHUNK):
            hasher.update(data)
            size += len(data)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return hasher.hexdigest(), size


def _canonical_fault(layout: Layout, manifest: Manifest, evidence: dict[str, Any]) -> str | None:
    """Why the manifest does not belong to the canonical files as they are, None where it does."""
    from cortex_tools.driver.run import afresh
    from cortex_tools.evidence.corpus import canonical_digest

    try:
        digest = afresh(lambda: canonical_digest(layout.root))
    except CortexError as error:
        return f"the canonical files cannot be verified: {error.message}"
    evidence["records"] = digest.records
    if digest.sha256 != manifest.canonical_sha256:
        return "the canonical files do not have the manifest's hash"
    return None
