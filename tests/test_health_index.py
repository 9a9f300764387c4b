"""The index table of health: marker and manifest, with real bytes and one flipped bit in each."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cortex_tools.domain.timestamps import format_ms
from cortex_tools.evidence import corpus, index, layout, policy, thresholds
from tests.support import PACKAGE, note, write_corpus
from tests.test_health_healthy import INDEX_POLICY, NOW_MS, RECENT, health, healthy, measure, only, with_manifest

DAY = 86_400_000


def index_evidence(value: dict[str, Any]) -> dict[str, Any]:
    evidence: dict[str, Any] = value["evidence"]["index"]
    return evidence


# Without a manifest the marker decides


def test_the_marker_in_the_package_is_the_one_that_is_affirmed() -> None:
    assert json.loads((PACKAGE / "CORTEX_INDEX_POLICY.json").read_text()) == INDEX_POLICY == policy.NO_INDEX.content


def test_an_affirmed_absence_is_healthy_without_walking_the_corpus(tmp_path: Path, monkeypatch: Any) -> None:
    healthy(tmp_path)
    (tmp_path / "KNOWLEDGE/loop").symlink_to(tmp_path)  # what a walk would refuse

    def fail(*_: Any) -> None:
        raise AssertionError("the corpus was walked")

    monkeypatch.setattr(corpus, "walk", fail)
    value = measure(tmp_path)
    assert value["overall"] == "ok" and index_evidence(value)["state"] == "no-index-v1"


def test_neither_marker_nor_manifest_is_ambiguous(tmp_path: Path) -> None:
    healthy(tmp_path)
    (tmp_path / "CORTEX_INDEX_POLICY.json").unlink()
    assert only(measure(tmp_path), "index-evidence-missing", "warn")["state"] == "no-evidence"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        json.dumps([INDEX_POLICY]),
        json.dumps({**INDEX_POLICY, "policy": "no-index-v2"}),
        json.dumps({**INDEX_POLICY, "schema": "lifeos-cortex-index-policy/v2"}),
        json.dumps({**INDEX_POLICY, "note": "x"}),
        json.dumps({"policy": "no-index-v1"}),
        json.dumps(INDEX_POLICY) + "x",
        json.dumps(INDEX_POLICY) + " " * 70_000,
    ],
    ids=lambda text: text[:40],
)
def test_a_malformed_marker_is_critical(tmp_path: Path, text: str) -> None:
    healthy(tmp_path)
    (tmp_path / "CORTEX_INDEX_POLICY.json").write_text(text)
    evidence = only(measure(tmp_path), "index-manifest-invalid", "critical")
    assert evidence["state"] == "invalid-policy" and evidence["policy"]["path"].endswith("CORTEX_INDEX_POLICY.json")


def test_a_marker_that_is_a_link_to_a_good_one_is_critical(tmp_path: Path) -> None:
    healthy(tmp_path)
    marker = tmp_path / "CORTEX_INDEX_POLICY.json"
    marker.unlink()
    marker.symlink_to(PACKAGE / "CORTEX_INDEX_POLICY.json")
    only(measure(tmp_path), "index-manifest-invalid", "critical")


# With a manifest the marker is ignored


@pytest.mark.parametrize("marker", ["valid", "absent", "malformed"])
def test_a_verified_manifest_is_healthy_whatever_the_marker(tmp_path: Path, marker: str) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    if marker == "absent":
        (tmp_path / "CORTEX_INDEX_POLICY.json").unlink()
    if marker == "malformed":
        (tmp_path / "CORTEX_INDEX_POLICY.json").write_text("{")
    value = measure(tmp_path)
    assert value["overall"] == "ok"
    assert index_evidence(value) == {
        "path": "INDEX/index-manifest.json",
        "state": "manifest",
        "index_path": "data/index.bin",
        "indexed_at": "2026-03-10T11:00:00.000Z",
        "index_bytes": 11,
        "records": 3,
        "age_ms": 3_600_000,
        "threshold_ms": 7 * DAY,
    }


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("offset", [0, 5, 10])
def test_one_flipped_bit_of_the_index_is_a_mismatch(tmp_path: Path, offset: int) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    flip(tmp_path / "INDEX/data/index.bin", offset)
    only(measure(tmp_path), "index-integrity-mismatch", "critical")
    flip(tmp_path / "INDEX/data/index.bin", offset)
    assert measure(tmp_path)["overall"] == "ok"


def test_one_flipped_bit_of_a_note_is_a_mismatch(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    flip(tmp_path / "KNOWLEDGE/a.md", -3)
    only(measure(tmp_path), "index-integrity-mismatch", "critical")
    flip(tmp_path / "KNOWLEDGE/a.md", -3)
    write_corpus(tmp_path, {"KNOWLEDGE/new.md": note("new")})
    only(measure(tmp_path), "index-integrity-mismatch", "critical")


@pytest.mark.parametrize("name", ["canonical_sha256", "index_sha256"])
def test_one_changed_digit_of_a_hash_is_a_mismatch(tmp_path: Path, name: str) -> None:
    healthy(tmp_path)
    path = with_manifest(tmp_path)
    manifest = json.loads(path.read_text())
    manifest[name] = ("1" if manifest[name][0] == "0" else "0") + manifest[name][1:]
    path.write_text(json.dumps(manifest))
    only(measure(tmp_path), "index-integrity-mismatch", "critical")


def test_every_flipped_bit_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    healthy(tmp_path)
    path = with_manifest(tmp_path)
    good = path.read_bytes()
    limits, _ = thresholds.effective({})
    found = layout.find(os.fsencode(tmp_path))
    unnoticed = set()
    for offset in range(len(good)):
        path.write_bytes(good[:offset] + bytes([good[offset] ^ 1]) + good[offset + 1 :])
        outcome = index.check(found, limits, NOW_MS, {})
        if not outcome.findings:
            unnoticed.add(offset)
    found.close()
    # Another moment within the week: nothing vouches for the time but itself.
    start = good.index(RECENT.encode())
    assert unnoticed < set(range(start, start + len(RECENT))), [good[at : at + 20] for at in unnoticed]


def test_a_corpus_that_is_not_sound_cannot_be_verified(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    write_corpus(tmp_path, {"KNOWLEDGE/bad.jsonl": "canary {\n"})
    value = measure(tmp_path)
    only(value, "index-integrity-mismatch", "critical")
    message = value["findings"][0]["message"]
    assert "bad.jsonl:1" in message and "canary" not in message


@pytest.mark.parametrize(
    "change",
    [
        *({name: ...} for name in ("schema", "canonical_sha256", "index_path", "index_sha256", "indexed_at")),
        {"extra": 1},
        {"schema": "lifeos-cortex-index/v2"},
        {"canonical_sha256": "ab"},
        {"canonical_sha256": "g" * 64},
        {"canonical_sha256": "A" * 64},
        {"canonical_sha256": 0},
        {"index_sha256": "0" * 63},
        {"index_sha256": " " + "0" * 63},
        {"index_sha256": None},
        {"indexed_at": "yesterday"},
        {"indexed_at": 1_773_140_400_000},
        {"index_path": ""},
        {"index_path": 7},
        {"index_path": None},
        {"index_path": "."},
        {"index_path": ".."},
        {"index_path": "../INDEX/data/index.bin"},
        {"index_path": "data/../data/index.bin"},
        {"index_path": "./data/index.bin"},
        {"index_path": "data//index.bin"},
        {"index_path": "data/index.bin/"},
        {"index_path": "/etc/passwd"},
        {"index_path": "data"},
        {"index_path": "data/missing.bin"},
        {"index_path": "missing/index.bin"},
        {"index_path": "data/index.bin/x"},
        {"index_path": "data/index.bin\0"},
        {"index_path": "data/\ud800"},
        {"index_path": "x" * 300},
    ],
    ids=str,
)
def test_a_manifest_that_is_not_exact_or_leads_elsewhere_is_invalid(tmp_path: Path, change: dict[str, Any]) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path, **change)
    only(measure(tmp_path), "index-manifest-invalid", "critical")


def test_an_absolute_path_into_the_folder_is_still_refused(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path, index_path=str(tmp_path / "INDEX/data/index.bin"))
    only(measure(tmp_path), "index-manifest-invalid", "critical")


@pytest.mark.parametrize("what", ["index", "folder"])
def test_no_link_on_the_way_to_the_index_is_followed(tmp_path: Path, what: str) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path)
    path = tmp_path / ("INDEX/data/index.bin" if what == "index" else "INDEX/data")
    path.rename(tmp_path / "INDEX/real")
    path.symlink_to(tmp_path / "INDEX/real")
    assert hashlib.sha256((tmp_path / "INDEX/data/index.bin").read_bytes()).hexdigest(), "it could be reached"
    only(measure(tmp_path), "index-manifest-invalid", "critical")


@pytest.mark.parametrize(
    ("ms", "id"),
    [
        (1, "index-freshness-invalid"),
        (0, None),
        (-7 * DAY + 1, None),
        (-7 * DAY, None),
        (-7 * DAY - 1, "index-stale"),
    ],
)
def test_a_verified_index_must_be_recent(tmp_path: Path, ms: int, id: str | None) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path, indexed_at=format_ms(NOW_MS + ms))
    value = measure(tmp_path)
    if id is None:
        assert value["overall"] == "ok"
    else:
        evidence = only(value, id, "warn")
        assert (evidence["age_ms"], evidence["threshold_ms"]) == (-ms, 7 * DAY)


def test_a_wrong_hash_comes_before_a_stale_date(tmp_path: Path) -> None:
    healthy(tmp_path)
    with_manifest(tmp_path, indexed_at="2020-01-01", index_sha256="0" * 64)
    only(measure(tmp_path), "index-integrity-mismatch", "critical")


# CORTEX_INDEX_MANIFEST


def test_another_manifest_can_be_given(tmp_path: Path) -> None:
    root = healthy(tmp_path / "root")
    other = tmp_path / "other.json"
    path = with_manifest(root, indexed_at="2020-01-01")
    assert measure(root)["findings"][0]["id"] == "index-stale"
    other.write_text(path.read_text().replace("2020-01-01", "2026-03-09"))
    write_corpus(tmp_path, {"data/index.bin": b"index bytes"})
    assert measure(root, CORTEX_INDEX_MANIFEST=str(other))["overall"] == "ok", "its index lies beside it"
    value = measure(root, CORTEX_INDEX_MANIFEST=str(tmp_path / "gone.json"))
    assert index_evidence(value)["state"] == "no-index-v1"
    value = measure(root, CORTEX_INDEX_MANIFEST=str(tmp_path / "no/such/folder/gone.json"))
    assert index_evidence(value)["state"] == "no-index-v1"
    (tmp_path / "link.json").symlink_to(other)
    only(measure(root, CORTEX_INDEX_MANIFEST=str(tmp_path / "link.json")), "index-manifest-invalid", "critical")
    only(measure(root, CORTEX_INDEX_MANIFEST=str(tmp_path) + "/"), "index-manifest-invalid", "critical")
    done = health(root, "--json", CORTEX_INDEX_MANIFEST=os.path.relpath(other))
    assert done.returncode == 0, done
