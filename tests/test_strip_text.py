"""cortex-strip --text: the privacy boundary for text that comes in pieces, and as a filter.

Whatever the pieces, the result is that of `strip_private` over the whole, which has its own tests.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex_tools.contract import limits
from cortex_tools.contract.errors import CortexError
from cortex_tools.contract.grammar import Arguments
from cortex_tools.domain import stripping
from cortex_tools.domain.privacy import MALFORMED, REMNANT, UNCLOSED, outside_spans, strip, strip_private
from cortex_tools.domain.stripping import UNDECIDED, Stripper, undecided
from cortex_tools.stages import strip_text
from tests.support import BIN, environment, run, shell

PIECES = [
    *("<private>", "</private>", "<private>", "</private>", "<private x", "</private ", "<pri", "vate>", "</"),
    *("<", ">", "/", "private", "pri", "vate", "privat", " ", "\n", "\r\n", "x", "E", "é"),
    *("\0", "\ufeff", "\u200b", "\u3000", "\uff1c", "\uff1e", "\ufe64", "\u0301", "\u0338", "\u0327", "\u0f73"),
    *("\uff50\uff52\uff49", "\U0001d429", "\u32cd", "<privateer>", "<private/>"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=2)), max_size=14).map(
    lambda pieces: "".join(pieces).encode("utf-8", "ignore").decode()
)


def split(text: str, sizes: list[int]) -> Iterator[str]:
    """`text` in pieces of these sizes, over and over."""
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        yield text[at : at + size]
        at, turn = at + size, turn + 1


def stripped(text: str, sizes: list[int], limit: int = limits.UNDECIDED) -> tuple[str, list[tuple[str, int, int]]]:
    """What a Stripper makes of the text in pieces: the result, and its cuts."""
    stripper = Stripper(limit)
    out = "".join([stripper.feed(piece) for piece in split(text, sizes)]) + stripper.finish()
    return out, [(cut.reason, cut.line, cut.byte) for cut in stripper.cuts]


def place(text: str, at: int) -> tuple[int, int]:
    """The line, from 1, and the byte, from 0, of a character."""
    return text.count("\n", 0, at) + 1, len(text[:at].encode())


def expected_cuts(text: str) -> list[tuple[str, int, int]]:
    report = strip(text)
    if report.cut is None:
        return []
    if report.reason == REMNANT:
        return [(REMNANT, *place(text, report.source(report.cut)))]
    cuts = [(UNCLOSED, *place(text, report.cut))] if report.reason == UNCLOSED else []
    return cuts + ([] if report.malformed is None else [(MALFORMED, *place(text, report.malformed))])


# --- in pieces as in one -------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@example("<private \uff1cprivate>x</private>", [1])
@example("a<private \uff1cprivate>", [3])
@example("</private \uff1cprivate>x", [2])
@example("<pri<private>x</private>vate>s", [4])
@example("<private\u0338\u0301>", [1])
@example("a<</private>\r\nprivate>b", [1])
@example("a\uff1cprivate\u0301b", [1])  # the mark makes the e another letter: no opener after all
@example("a<pri\u200bvate\u0338\u0301b", [1])
@example("<</private>/private " + "x" * 200 + "\n\uff1cpri</private>vatez<", [1])  # a wide bracket within what is held
@given(TEXTS, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_pieces_make_no_difference(text: str, sizes: list[int]) -> None:
    result = strip_private(text), expected_cuts(text)
    for each in (sizes, [1], [2], [3], [len(text) + 1]):
        assert stripped(text, each) == result


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.integers(1, 5))
def test_what_has_been_given_holds_whatever_follows(text: str, rest: str, size: int) -> None:
    stripper = Stripper()
    given_so_far = "".join(stripper.feed(piece) for piece in split(text, [size]))
    assert strip_private(text).startswith(given_so_far)
    assert strip_private(text + rest).startswith(given_so_far)


def test_nothing_is_kept_back_that_is_settled() -> None:
    stripper = Stripper()
    assert stripper.feed("plain\n") == "plain\n"
    assert stripper.feed("a < b <b>bold</b> <") == "a < b <b>bold</b> "
    assert stripper.feed("p>x") == "<p>x"
    assert stripper.feed("<private>secret") == ""
    assert stripper.feed(" secret</private>y") == "y"
    assert stripper.feed("</pri") == "</pri"[:0]
    assert stripper.feed("son>") == "</prison>"
    assert stripper.finish() == "" and stripper.cuts == []


# --- the limit -----------------------------------------------------------------------------------------------


def hangs_too_long(text: str, limit: int) -> bool:
    """Whether a bracket's meaning is not settled within `limit` characters, in the text or in what removals leave."""
    kept = "".join(outside_spans(text)[0])
    windows = (part[at : at + limit] for part in (text, kept) for at in range(len(part) - limit + 1))
    return any(window[0] in "<\uff1c\ufe64" and undecided(window) == 0 for window in windows)


@settings(max_examples=500, deadline=None)
@example("a</private" + " " * 20 + ">b", 12, [1])
@example("a<pri</private>" + "\u200b</private>" * 12 + "x", 9, [5])
@given(TEXTS, st.integers(2, 24), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_the_limit_cuts_at_the_same_place_whatever_the_pieces(text: str, limit: int, sizes: list[int]) -> None:
    result = stripped(text, sizes, limit)
    for each in ([1], [2], [len(text) + 1]):
        assert stripped(text, each, limit) == result
    out, cuts = result
    assert strip_private(out) == out
    if not hangs_too_long(text, limit):
        assert out == strip_private(text) and cuts == expected_cuts(text)
    elif cuts != expected_cuts(text):
        assert UNDECIDED in [reason for reason, _, _ in cuts]


def test_a_tag_may_be_as_long_as_the_limit_and_no_longer() -> None:
    for limit in (64, limits.UNDECIDED):
        filler = "x" * (limit - len("</private >"))
        assert stripped(f"a</private {filler}>b", [1 << 16], limit) == ("ab", [])
        assert stripped(f"\na</private {filler}x>b", [1 << 16], limit) == ("\na", [(UNDECIDED, 2, 2)])


FLOODS = {
    "plain": ("", "loom \n", ""),
    "brackets": ("", "< ", ""),
    "span": ("<private>", "secret ", ""),
    "spans": ("", "<private>x</private>", ""),
    "opener": ("<private ", "x", ""),
    "closer": ("</private ", "x", ""),
    "format characters": ("<pri", "\u200b", ""),
    "marks": ("<private", "\u0338", ""),
    "blanks": ("<", "\u3000", ""),
    "a word apart": ("<pri", "</private>\u200b", ""),
    "wide brackets": ("</private </private>", "\uff1cx</private>", ""),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_memory_does_not_grow_with_the_text(flood: str) -> None:
    front, repeated, _ = FLOODS[flood]
    piece = repeated * (4096 // len(repeated))
    peaks = []
    for count in (32, 160):  # 131,072 characters, and five times as many
        stripper = Stripper(1 << 14)
        tracemalloc.start()
        stripper.feed(front)
        for _ in range(count):
            stripper.feed(piece)
        stripper.finish()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000
    assert peaks[1] < 8_000_000


@pytest.mark.parametrize("flood", FLOODS)
def test_small_pieces_do_not_make_it_quadratic(flood: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters looked at: each is looked at a bounded number of times, even one at a time."""
    front, repeated, _ = FLOODS[flood]
    text = (front + repeated * 20_000)[:20_000]
    looked = 0

    def counting(part: str) -> int:
        nonlocal looked
        looked += len(part)
        return undecided(part)

    monkeypatch.setattr(stripping, "undecided", counting)
    assert stripped(text, [1])[0] == strip_private(text)
    assert looked < 60 * len(text)


# --- bytes in, bytes out ---------------------------------------------------------------------------------------


def filtered(data: bytes, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, str]:
    """What the filter writes when its input comes in pieces of these sizes, and the message of its failure."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        pieces.append(data[at : at + sizes[turn % len(sizes)]])
        at, turn = at + len(pieces[-1]), turn + 1
    source = iter([*pieces, b""])
    out: list[bytes] = []
    monkeypatch.setattr(strip_text, "_read", lambda: next(source))
    monkeypatch.setattr(strip_text, "write_all", out.append)
    monkeypatch.setattr(strip_text, "say", lambda line: None)
    monkeypatch.setattr(os, "isatty", lambda descriptor: False)
    try:
        assert strip_text.run(Arguments({"--text": True}, [])) == 0
    except CortexError as error:
        assert error.code == "integrity_error"
        return b"".join(out), error.message
    return b"".join(out), ""


BYTES = st.lists(
    st.one_of(
        TEXTS.map(str.encode),
        st.binary(max_size=3),
        st.sampled_from([b"\xff", b"\xc3", b"\xe2\x80", b"\xf0\x9d\x90", b"\xed\xa0\x80", b"\xc0\xbc", b"\0", b"\r\n"]),
    ),
    max_size=4,
).map(b"".join)


@settings(max_examples=400, deadline=None)
@example(b"\xef\xbb\xbfa\r\n<private>\xe2\x82\xac</private>\0", [1])
@example(b"a\xc3", [1])
@example(b"abc\xe2\x82", [2])
@example(b"ab\xed\xa0\x80c", [1])
@given(BYTES, st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_bytes_in_any_pieces(data: bytes, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for each in (sizes, [1], [2], [3], [1 << 16]):
            out, message = filtered(data, each, patch)
            try:
                whole = data.decode()
            except UnicodeDecodeError as error:
                assert re.search(r"at byte (\d+)", message) and f"at byte {error.start}," in message
                sound = strip_private(data[: error.start].decode()).encode()
                assert sound.startswith(out)  # never a character in place of what was wrong, nothing after it
            else:
                assert (out, message) == (strip_private(whole).encode(), "")


# --- the executable --------------------------------------------------------------------------------------------


def test_a_filter_over_any_text() -> None:
    data = "\ufeffZeile\r\n\0 a <b> \x1b[1m <private\nx>geheim</private> é \U0001d429\u2028 end".encode()
    done = run("cortex-strip", "--text", input=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == data.replace(b"<private\nx>geheim</private>", b"")
    assert run("cortex-strip", "--text").stdout == b""


def test_characters_across_the_edges_of_reading() -> None:
    for shift in range(4):
        data = ("x" * shift + "\U0001d429é\u20ac" * 40_000 + "<private>secret</private>" * 9_000 + "\n").encode()
        done = run("cortex-strip", "--text", input=data)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == strip_private(data.decode()).encode()


CUTS = {
    "malformed": ("one\ntwo <PrivateRoute> SECRET\n", b"one\ntwo ", ["line 2 (byte 8)", "&lt;"]),
    "never closed": ("one <private> SECRET\nfour", b"one ", ["line 1 (byte 4)", "</private>"]),
    "left by a removal": ("é\n<pri<private>x</private>vate> SECRET", "é\n".encode(), ["line 2 (byte 3)", "removed"]),
    "undecided": ("a\n\n</private " + "SECRET" * 200_000, b"a\n\n", ["line 3 (byte 3)", f"{limits.UNDECIDED}"]),
}


@pytest.mark.parametrize("case", CUTS)
def test_a_cut_is_told_by_its_place_and_never_by_its_text(case: str) -> None:
    text, left, said = CUTS[case]
    done = run("cortex-strip", "--text", input=text.encode())
    assert (done.returncode, done.stdout) == (0, left)
    assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"cortex-strip: warning: ")
    assert b"SECRET" not in done.stderr and all(word in done.stderr.decode() for word in said)


def test_a_span_left_open_by_a_malformed_opener_tells_of_both() -> None:
    done = run("cortex-strip", "--text", input=b"a <private>b\n<privateer> c</private> d")
    assert done.stdout == b"a " and [line for line in (b"line 1", b"line 2") if line in done.stderr] == [
        b"line 1",
        b"line 2",
    ]


@pytest.mark.parametrize("data", [b"ab\xc3\xa9 SECRET \xff more", b"ab\xc3\xa9 SECRET \xc3"], ids=["inside", "cut off"])
def test_bytes_that_are_not_utf8_end_it(data: bytes) -> None:
    done = run("cortex-strip", "--text", input=data)
    assert (done.returncode, done.stdout) == (4, b"ab\xc3\xa9 SECRET ")
    assert done.stderr.startswith(b"cortex-strip: integrity_error: ") and b"at byte 12" in done.stderr
    assert b"SECRET" not in done.stderr


@pytest.mark.parametrize(
    "words", [["--jobs", "2"], ["--unsealed"], ["--text"], ["--no-such"], ["loom"], ["--jobs"]], ids=" ".join
)
def test_other_options_are_refused(words: list[str]) -> None:
    for arguments in (["--text", *words], [*words, "--text"]):
        done = run("cortex-strip", *arguments, input=b"loom")
        assert (done.returncode, done.stdout) == (4, b"")
        assert done.stderr.startswith(b"cortex-strip: invalid_input: ") and done.stderr.count(b"\n") == 1


def test_a_terminal_is_told_what_to_do() -> None:
    master, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [BIN / "cortex-strip", "--text"], stdin=terminal, capture_output=True, env=environment(), timeout=60
        )
    finally:
        os.close(terminal)
        os.close(master)
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"terminal" in done.stderr and b"cortex-strip --text < notes.txt" in done.stderr


def test_text_is_written_as_it_comes() -> None:
    process = subprocess.Popen(
        [BIN / "cortex-strip", "--text"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    assert process.stdin is not None and process.stdout is not None
    for line in (b"first\n", b"<private>x</private>second\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line.replace(b"<private>x</private>", b"")
    process.stdin.close()
    assert process.stdout.read() == b"" and process.wait(60) == 0
    process.stdout.close()


def test_a_reader_that_goes_away_and_an_output_that_is_full() -> None:
    endless = "while :; do echo loom; done"
    done = shell(f"{{ {{ {endless}; }} | {{ cortex-strip --text; echo $? >&2; }} | head -n 1; }} 2>&1")
    assert done.stdout.split() in ([b"loom", b"141"], [b"141", b"loom"])
    if os.path.exists("/dev/full"):
        done = shell("echo loom | cortex-strip --text > /dev/full")
        assert done.returncode == 1 and done.stderr.startswith(b"cortex-strip: standard output cannot be written")
    done = shell("echo loom | cortex-strip --text >&-")
    assert done.returncode == 1 and done.stderr.startswith(b"cortex-strip: standard output cannot be written")


def test_a_closed_standard_input_is_an_empty_text() -> None:
    done = shell("cortex-strip --text <&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
