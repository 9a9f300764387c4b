"""cortex-rank --tokens unicode: words of any script, and what it leaves as it is (docs/streams.md)."""

from __future__ import annotations

import json
import re
import shlex
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_tools.domain import ranking, words
from cortex_tools.domain.values import query_in_words
from tests.support import SAMPLE, failure, note, run, shell, write_corpus

# What a note says, and queries that find it.
NOTES = {
    "Chinese": ("今天下午修理了手动织机的张力。", ["织机", "张力", "手动织机", "修", "修理"]),
    "Traditional Chinese": ("織機的張力", ["織機", "張力"]),
    "Japanese": ("手織り機のシャトルを交換した。", ["シャトル", "手織り", "交換", "換", "ｼｬﾄﾙ"]),
    "Korean": ("베틀 장력을 조정했다.", ["베틀", "장력을", unicodedata.normalize("NFD", "베틀")]),
    "Thai": ("ช่างซ่อมกี่ทอผ้าในตอนเช้า", ["กี่ทอผ้า", "ผ้า", "ช่าง"]),
    "Lao": ("ຂ້ອຍສ້ອມແປງຫູກ", ["ຫູກ", "ສ້ອມແປງ"]),
    "Khmer": ("ខ្ញុំជួសជុលកីត្បាញ", ["កីត្បាញ", "ជួសជុល"]),
    "Burmese": ("ရက်ကန်းစင်ပြင်သည်", ["ရက်ကန်း", "ပြင်"]),
    "Russian": ("Ткацкий СТАНОК скрипит", ["станок", "ткацкий", "СКРИПИТ"]),
    "Greek": ("Ο αργαλειός τρίζει", ["αργαλειός", "ΑΡΓΑΛΕΙΌΣ", "αργαλειόσ"]),
    "Arabic": ("إصلاح النَّوْلِ اليَدَوِيّ", ["النول", "اليدوي", "النَّوْل", "النـول"]),
    "Persian": ("پارچه می‌بافم", ["میبافم", "می‌بافم"]),
    "Hebrew": ("נוֹל אֲרִיגָה", ["נול", "אריגה"]),
    "German": ("Gewölbe, Straße, Webstühle", ["gewölbe", "STRASSE", "straße", "webstu\u0308hle", "WEBSTÜHLE"]),
    "Hindi": ("हथकरघा की मरम्मत हिन्दी में", ["हिन्दी", "हथकरघा", "मरम्मत"]),
    "Tamil": ("தறி பழுது", ["தறி", "பழுது"]),
    "Vietnamese": ("khung cửi dệt vải", ["cửi", "DỆT", unicodedata.normalize("NFD", "vải")]),
    "Turkish": ("Dokuma tezgâhı", ["tezgâhı"]),
    "Soft hyphens": ("Web\u00adstuhl\u00adbauer", ["webstuhlbauer"]),
    "Full width": ("ＵＳＢ２０２４ cable", ["usb2024", "CABLE"]),
    "Ligature": ("The ﬁbre", ["fibre"]),
    "Code": ("call warp_tension() twice", ["warp_tension", "Twice"]),
}  # fmt: skip
CASES = [pytest.param(language, query, id=f"{language}-{number}")
         for language, (_, queries) in NOTES.items() for number, query in enumerate(queries)]  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    rows = [
        {"id": language, "type": "t", "title": "-", "created": "2024-01-01", "updated": "2024-01-01", "content": text}
        for language, (text, _) in NOTES.items()
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    root = write_corpus(tmp_path_factory.mktemp("words"), {"notes.jsonl": text})
    return shell(f"cortex-scan --memory-root {shlex.quote(str(root))} | cortex-strip").stdout


def found(records: bytes, *arguments: str) -> list[str]:
    done = run("cortex-rank", *arguments, input=records)
    assert (done.returncode, done.stderr) == (0, b""), done
    return [line["id"] for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "card"]


@pytest.mark.parametrize(("language", "query"), CASES)
def test_a_note_is_found_by_a_word_in_it(language: str, query: str) -> None:
    terms = tuple(dict.fromkeys(words.query_words(query)))
    scores = {name: words.measure("-", text, terms)[1] for name, (text, _) in NOTES.items()}
    frequencies = scores[language]
    assert frequencies is not None and all(frequencies)  # every term of the query, not just some pair of it
    assert len(terms) > 1 or [name for name, one in scores.items() if one] == [language]


@pytest.mark.parametrize("language", ["Chinese", "Thai", "Russian", "Arabic", "German"])
def test_the_stage_finds_it_first(language: str, records: bytes) -> None:
    assert found(records, NOTES[language][1][0], "--tokens", "unicode")[0] == language


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Mutter", "Mütter"),
        ("стан", "станок"),
        ("베틀", "베틀의"),
        ("机织", "织机"),
        ("हिन्द", "हिन्दी"),
        ("tension", "warp_tension"),
        ("и", "й"),
    ],
)
def test_what_is_another_word(query: str, text: str) -> None:
    assert words.measure("-", text, tuple(words.query_words(query)))[1] is None


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("织机张力", ["织机", "机张", "张力"]),
        ("猫", ["猫"]),
        ("ケーブルUSB2024年", ["ケー", "ーブ", "ブル", "usb2024", "年"]),
        ("กี่ทอผ้า", ["กี่ท", "ทอ", "อผ้", "ผ้า"]),
        ("๒๕๖๗ ปี", ["๒๕๖๗", "ปี"]),
        ("it's half: ½", ["it", "s", "half", "1", "2"]),
        ("\u0301 \u0301a\u0301", ["á"]),  # a mark upon nothing is no word
        ("😀 ‼ — « »", []),
        ("1\ufe0f\u20e3", ["1"]),
        ("a\u200bb", ["a", "b"]),
        ("𠮷野家", ["𠮷野", "野家"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert words.query_words(text) == terms


def test_length_and_frequencies() -> None:
    """A run without spaces has as many words as pairs; a lone character of a query is found inside it."""
    assert words.measure("织机", "织机织 the cat", ("织机", "机", "the", "织")) == (5, (2, 2, 1, 3))
    assert words.measure("", "猫", ("猫",)) == (1, (1,))
    assert words.measure("", "", ("猫",)) == (0, None)


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_ascii_text_differs_from_the_contract_in_the_underscore_alone(text: str) -> None:
    plain = text.replace("_", " ")
    assert words.query_words(plain) == ranking.query_terms(plain)
    terms = ("a", "b1", "0")
    assert words.measure(plain, "A a b1", terms) == ranking.measure(plain, "A a b1", tuple(t.encode() for t in terms))


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_a_text_is_found_by_each_of_its_words(text: str) -> None:
    terms = tuple(dict.fromkeys(words.query_words(text)))
    assert words.fold(words.fold(text)) == words.fold(text)
    length, frequencies = words.measure("", text, terms)
    assert length == len(words.query_words(text))
    assert frequencies is None if not terms else frequencies is not None and all(frequencies)
    for form in ("NFC", "NFD"):
        assert words.query_words(unicodedata.normalize(form, text)) == words.query_words(text)


@given(st.lists(st.text(st.characters(categories=["Lu", "Ll", "Nd"], max_codepoint=0x24F), min_size=1), max_size=6))
def test_words_of_letters_are_those_of_the_expression(parts: list[str]) -> None:
    text = " ".join(parts)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    assert "".join(words.query_words(text)) == "".join(
        re.findall(r"[\w\u0300-\u036f]+", folded.replace("\u0149", "\u02bcn"))
    )


def test_marks_without_end_take_linear_time() -> None:
    """Sorting the marks upon one letter, as NFKC does, would take hours for this note."""
    crowd = "a" + "\u0315\u0300" * 1_000_000
    counted: list[float] = []
    for text in (crowd[: len(crowd) // 8], crowd):
        before = time.process_time()
        assert words.measure("", text + " loom", ("loom",)) == (2, (1,))
        counted.append(time.process_time() - before)
    assert counted[1] < 40 * max(counted[0], 0.01)


def test_bounds_of_the_query() -> None:
    assert len(query_in_words("织" * 65)) == 64
    for query, word in (("织" * 66, "65 terms"), ("😀", "no word"), ("", "no word"), ("a" * 2049, "2048")):
        failed = run("cortex-rank", query, "--tokens", "unicode")
        error = json.loads(failed.stdout.splitlines()[0])
        assert (failed.returncode, error["code"]) == (4, "invalid_input") and word in error["message"]


def test_ascii_is_the_default_and_the_contract_s(records: bytes) -> None:
    stream = shell(f"cortex-scan --memory-root '{SAMPLE}' | cortex-strip").stdout
    for query in ("loom tension", "zoë", "K2"):
        plain = run("cortex-rank", query, input=stream).stdout
        assert run("cortex-rank", query, "--tokens", "ascii", input=stream).stdout == plain
    assert found(records, "gewölbe") == ["German"]  # by its ASCII runs: gew, lbe
    failed = run("cortex-rank", "loom", "--tokens", "utf-8", input=stream)
    assert failed.returncode == 4 and b"--tokens must be ascii" in failed.stderr


def test_a_query_without_ascii_terms_is_told_the_way_out(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("a", "织机")})
    message = failure(
        run("cortex", "search", "织机", "--memory-root", tmp_path), 4, "invalid_input", "--tokens unicode"
    )
    assert "cortex-plan search" in message
    plain = failure(run("cortex", "search", "?!", "--memory-root", tmp_path), 4, "invalid_input")
    assert "--tokens" not in plain  # there is no word in any script
    plan = run("cortex-plan", "search", "loom", "--memory-root", tmp_path).stdout.decode()
    done = shell(plan.replace("cortex-rank loom", "cortex-rank 织机 --tokens unicode"))
    assert done.returncode == 0 and b'"total":1,' in done.stdout


def test_private_words_are_not_found(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"a.md": note("a", "织机 <private>张力</private> 修理")})
    stream = shell(f"cortex-scan --memory-root '{tmp_path}' | cortex-strip").stdout
    assert found(stream, "张力", "--tokens", "unicode") == []
    assert found(stream, "修理", "--tokens", "unicode") == ["a"]
