"""The privacy boundary as a function of text: every sentence of section 7, and 14.1-14.4.

The tables hold what the contract says, word by word.  Beside them stands a second stripper, written
from the contract alone and as naively as possible; the two must agree on every string tried.
"""

from __future__ import annotations

import itertools
import time
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex_tools.domain.marks import LATER
from cortex_tools.domain.privacy import MALFORMED, REMNANT, UNCLOSED, may_hold_tag, strip, strip_private

# Section 3, written out once more: exactly these are blank.
BLANKS = [
    *"\u0009\u000a\u000b\u000c\u000d\u0020\u00a0\u1680",
    *"\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a",
    *"\u2028\u2029\u202f\u205f\u3000\ufeff",
]
NO_BLANKS = [*"\x85\x1c\x1d\x1e\x1f\u180e\u200b"]
OPENERS, CLOSERS = "<\uff1c\ufe64", ">\uff1e\ufe65"
MATH = "".join(chr(0x1D41A + ord(letter) - ord("a")) for letter in "private")
WIDE = "".join(chr(0xFF41 + ord(letter) - ord("a")) for letter in "private")
OUTLINED = "".join(chr(0x1CCD6 + ord(letter) - ord("a")) for letter in "private")


def code_points(text: str) -> str:
    """A test's name for a string that a terminal may not show."""
    return ascii(text) if len(text) <= 60 else f"{text[:56]!a}..."


# --- the naive stripper -----------------------------------------------------------------------------


def naive_tag(text: str, at: int) -> tuple[int, bool] | None:
    """The end of a well-formed tag that starts at `at`, and whether it is a closing one."""
    if text[at] != "<":
        return None
    at += 1
    while at < len(text) and text[at] in BLANKS:
        at += 1
    closing = at < len(text) and text[at] == "/"
    at += closing
    while at < len(text) and text[at] in BLANKS:
        at += 1
    for letter in "private":
        if at >= len(text) or text[at] not in (letter, chr(ord(letter) - 32)):
            return None
        at += 1
    if at < len(text) and text[at] in BLANKS:
        while at < len(text) and text[at] not in "<>":
            at += 1
    return (at + 1, closing) if at < len(text) and text[at] == ">" else None


@lru_cache(maxsize=1 << 16)
def naive_look(inside: str) -> bool:
    """NFKC of the whole inside; controls, formats and spaces dropped; lower case; begins with `private`."""
    known = []
    for char in inside:
        if 0x1CCD6 <= ord(char) <= 0x1CCEF:
            known.append(chr(ord("A") + ord(char) - 0x1CCD6))
        elif 0x13439 <= ord(char) <= 0x1343F:
            known.append("\u200b")  # any format character will do
        elif char in LATER:
            known.append("\ufdd0")  # any character that is no mark and does not come apart
        else:
            known.append(char)
    normal = unicodedata.normalize("NFKC", "".join(known))
    seen = [char for char in normal if unicodedata.category(char) not in ("Cc", "Cf", "Zs", "Zl", "Zp")]
    return "".join(seen).lower().startswith("private")


def naive_suspicious(text: str, at: int) -> bool:
    """Whether the bracket at `at` begins a `<...>` that looks like an opener and is not well-formed."""
    if text[at] not in OPENERS:
        return False
    end = at + 1
    while end < len(text) and text[end] not in CLOSERS:
        end += 1
    tag = naive_tag(text, at)
    return naive_look(text[at + 1 : end]) and (tag is None or tag[0] != end + 1)


def naive_strip(text: str) -> str:
    """What is left of `text`, by the letter of sections 7 and 14.1."""
    for at in range(len(text)):
        if naive_suspicious(text, at):
            text = text[:at]
            break
    kept, depth, at = "", 0, 0
    while at < len(text):
        tag = naive_tag(text, at)
        if tag is None:
            kept += "" if depth else text[at]
            at += 1
        else:
            at, closing = tag
            depth = max(0, depth - 1) if closing else depth + 1
    for at in range(len(kept)):
        if naive_tag(kept, at) is not None or naive_suspicious(kept, at):
            return kept[:at]
    return kept


def disagreement(texts: Iterable[str]) -> str | None:
    """The first text on which the two strippers differ, or whose stripping is not final; None for none."""
    for text in texts:
        real = strip_private(text)
        if real != naive_strip(text) or strip_private(real) != real:
            return f"{text!a}: real {real!a}, naive {naive_strip(text)!a}"
    return None


# --- section 7, sentence by sentence ------------------------------------------------------------------

WELL_FORMED = [
    "<private>",
    "<PRIVATE>",
    "<PrIvAtE>",
    "< private>",
    "<\r\nprivate\r\n>",
    "<private >",
    "<private />",
    "<private / >",
    "<private reason='x' level=3>",
    "<private private>",
    "<private\u00a0x>",
    "<private\u3000>",
    "<\ufeffprivate\ufeff>",
    "<private \u200b>",
    "<private \x1c>",
    "<private &lt;b&gt;>",
    "<private \uff1cb>",
]
CLOSED = [
    "</private>",
    "</PRIVATE>",
    "< / private >",
    "<\n/\tprivate\u2029>",
    "</private x>",
    "</private />",
    "</ private\u00a0\uff1e>",
]


@pytest.mark.parametrize("closer", CLOSED, ids=code_points)
@pytest.mark.parametrize("opener", WELL_FORMED, ids=code_points)
def test_a_span_is_removed_with_its_tags(opener: str, closer: str) -> None:
    assert strip_private(f"public {opener}secret{closer} public") == "public  public"


@pytest.mark.parametrize("closer", CLOSED, ids=code_points)
def test_a_closing_tag_without_an_opener_is_removed_and_its_surroundings_kept(closer: str) -> None:
    assert strip_private(f"left{closer}right") == "leftright"
    assert strip_private(f"{closer}{closer}left{closer}") == "left"
    assert strip_private(f"a<private>b{closer}c{closer}d<private>e{closer}f") == "acdf"


@pytest.mark.parametrize("opener", WELL_FORMED, ids=code_points)
def test_an_opener_never_closed_suppresses_the_rest(opener: str) -> None:
    assert strip_private(f"left {opener}secret") == "left "
    assert strip_private(f"left {opener}secret {opener}deep</private> still") == "left "
    assert strip_private(f"a <private>b</private> c {opener}secret</private-x> <b>") == "a  c "


def test_spans_nest_and_are_removed_by_depth() -> None:
    assert strip_private("a<private>b<private>c</private>d</private>e") == "ae"
    assert strip_private("a<private><private></private></private></private>e") == "ae"
    deep = 5_000
    assert strip_private("a" + "<private>b" * deep + "</private>c" * deep + "d") == "acd"
    assert strip_private("a" + "<private>b" * deep + "</private>c" * (deep - 1) + "d") == "a"
    assert strip_private("<private>a</private>b<private>c</private>d") == "bd"


SUSPICIOUS = [
    "<privateer>",
    "<private-note>",
    "<private/>",
    "<private/ >",
    "<private_count",
    "<privates>",
    "<private.>",
    "<private",
    "<private ",
    "<private x",
    "<private <b>",
    "<private x<y>",
    "<pri vate>",
    "<p r i v a t e>",
    "<pri\nvate>",
    "<pri\tvate x>",
    "<pri\u200bvate>",
    "<\u200bprivate>",
    "<private\u200b>",
    "<\u2060private>",
    "<pri\xadvate>",
    "<pri\u180evate>",
    "<\u0085private>",
    "<private\x1c>",
    "<pri\x00vate>",
    "<pri\x7fvate>",
    "<pri\u202evate>",
    "<pri\U000e0001vate>",
    f"<{WIDE}>",
    f"<{WIDE.upper()}>",
    "<priv\uff41te>",
    f"<{MATH}>",
    f"<{MATH} x>",
    f"<{MATH}",
    "<\u24df\u24e1\u24d8\u24e5\u24d0\u24e3\u24d4>",  # circled letters
    "<\u33daivate>",  # one character for `PR`
    "<pr\u2163ate>",  # one character for `IV`
    "<privat\u32cd>",  # one character for `erg`
    "<privat\u212f>",  # script small e
    "<private\u200b\u0301>",  # a format character keeps the accent off the e
    "<private\u0338>",  # a mark that does not compose with e
    "<private\u00a8>",  # NFKC: a space and a mark
    "<private\ufe0f>",
    "<private\U0001f512>",
]


@pytest.mark.parametrize("opener", SUSPICIOUS, ids=code_points)
def test_what_looks_like_an_opener_but_is_none_cuts_the_text_off_right_there(opener: str) -> None:
    assert strip_private(f"left {opener}secret</private> more") == "left "
    assert strip_private(f"left {opener}") == "left "
    # "Before that": the cut comes before spans are paired, so an open span around it never closes.
    assert strip_private(f"a<private>b</private>c{opener}secret") == "ac"
    assert strip_private(f"a<private>b{opener}c</private>d") == "a"


def test_the_first_suspicious_opener_counts() -> None:
    assert strip_private("a <privateer> b <private/> c") == "a "
    assert strip_private("if a < private_count then b") == "if a "
    assert strip_private("a < b <privateer> c") == "a < b "


PLAIN = [
    "",
    "private",
    "&lt;private&gt;secret&lt;/private&gt;",
    "</private-x>",
    "</privateer>",
    "</private/>",
    "</private",
    "</pri\u200bvate>",
    f"</{WIDE}>",
    "<\uff0fprivate>",
    "<//private>",
    "<x private>",
    "<privat>",
    "<privat e",  # completed below with what spoils it
    "<prvate>",
    "<b>bold</b> < i > 3 <4 && a << b",
    "<",
    "< < <",
    "><",
    "<>",
    "<private\u0301>",  # NFKC makes the e another letter
    "<private\u0338\u0301>",
    "<private\u0323\u0301>",
    "<private\u0338\u3099\u05b0\u05b1\u302a\u0301>",  # marks of five other classes do not keep it off
    "<pri\u0301vate>",
    "<p\u0327rivate>",
    "<privat\u00e9>",
    "<pr\u0131vate>",  # dotless i
    "<pr\u0130vate>",  # I with a dot
    "<pr\u0456vate>",  # Cyrillic i
    "<priv\u0430te>",  # Cyrillic a
    "<pri\ufe0fvate>",  # a variation selector is a mark: neither control, format nor space
    "\u226eprivate>",  # one character, no bracket
    "\u2039private\u203a",
    "\u300cprivate\u300d",
    "\U0001f512 \u79c1\u5bc6 <\u79c1\u5bc6>",
    "\ud800<x>\udfff",
]
PLAIN[PLAIN.index("<privat e")] = "<privat! e"


@pytest.mark.parametrize("text", PLAIN, ids=code_points)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert strip_private(text) == text
    assert strip_private(f"{text}<private>secret</private>{text}") == text + text
    report = strip(text)
    assert (report.text, report.spans, report.cut, report.reason) == (text, [], None, None)


def test_case_is_ascii_case_alone() -> None:
    for letters in itertools.product(*((letter, letter.upper()) for letter in "private")):
        word = "".join(letters)
        assert strip_private(f"a<{word}>b</{word} >c") == "ac"


def test_blanks_in_a_tag_are_exactly_those_of_section_3() -> None:
    """Every character of the basic plane, in each of the three places where a tag may hold blanks."""
    assert not set(BLANKS) & set(NO_BLANKS)
    for code in range(0x10000):
        char = chr(code)
        if char in "</>":
            continue
        blank = char in BLANKS
        assert (strip_private(f"a<{char}private>b</private>c") == "ac") is blank, hex(code)
        assert (strip_private(f"a<private>b<{char}/private>c") == "ac") is blank, hex(code)
        assert (strip_private(f"a<private>b</{char}private>c") == "ac") is blank, hex(code)
        assert (strip_private(f"a<private{char}>b</private>c") == "ac") is blank, hex(code)


@pytest.mark.parametrize("char", NO_BLANKS, ids=code_points)
def test_what_section_3_names_as_no_blank_makes_no_tag(char: str) -> None:
    assert strip_private(f"a<{char}private>b</private>c") == "a"  # ignored by the look: suspicious
    assert strip_private(f"a<private{char}>b</private>c") == "a"
    assert strip_private(f"a</private{char}>b") == f"a</private{char}>b"  # a malformed closer is plain text


# --- the fixed look --------------------------------------------------------------------------------------


def test_outlined_capitals_count_as_letters_on_every_python() -> None:
    for code in range(0x1CCD6, 0x1CCF0):
        letter = chr(ord("a") + code - 0x1CCD6)
        for at, wanted in enumerate("private"):
            text = f"a<{'private'[:at]}{chr(code)}{'private'[at + 1 :]}>b"
            assert strip_private(text) == ("a" if letter == wanted else text), hex(code)
    assert strip_private(f"a<{OUTLINED}>b") == "a"
    assert strip_private(f"a<{OUTLINED}\u0301>b") == f"a<{OUTLINED}\u0301>b"  # as with a plain E


def test_neighbours_of_the_outlined_capitals_count_as_nothing() -> None:
    for code in (0x1CCD5, 0x1CCF0):
        for at in range(7):
            text = f"a<{'private'[:at]}{chr(code)}{'private'[at + 1 :]}>b"
            assert strip_private(text) == text


def test_egyptian_controls_count_as_format_characters_on_every_python() -> None:
    for code in range(0x13439, 0x13440):
        for at in range(8):
            assert strip_private(f"a<{'private'[:at]}{chr(code)}{'private'[at:]}>b") == "a", hex(code)
    text = "a<pri\U00013440vate>b"  # the next one is a mark
    assert strip_private(text) == text


# --- 14.2: other brackets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("closer", CLOSERS, ids=code_points)
@pytest.mark.parametrize("opener", OPENERS, ids=code_points)
def test_a_bracket_of_another_width_makes_a_suspicious_opener(opener: str, closer: str) -> None:
    for word in ("privateer", "pri\u200bvate", WIDE):
        assert strip_private(f"a{opener}{word}{closer}b</private>c") == "a"
    for word in ("private", "PRIVATE", " private ", "private x"):
        is_tag = (opener, closer) == ("<", ">")
        assert strip_private(f"a{opener}{word}{closer}b</private>c") == ("ac" if is_tag else "a")


@pytest.mark.parametrize("closer", CLOSERS[1:], ids=code_points)
def test_a_wide_bracket_ends_a_tag_that_goes_on_to_a_real_one(closer: str) -> None:
    # `<private {closer}` looks like an opener and is none, whatever follows.
    assert strip_private(f"a<private {closer} x>b</private>c") == "a"
    assert strip_private(f"a<private x{closer}>b</private>c") == "a"


@pytest.mark.parametrize("opener", OPENERS[1:], ids=code_points)
def test_a_wide_bracket_within_a_tag_is_judged_by_what_follows_it(opener: str) -> None:
    assert strip_private(f"a<private {opener}b>c</private>d") == "ad"
    assert strip_private(f"a<private {opener}private>c</private>d") == "a"


def test_wide_brackets_make_no_tags() -> None:
    text = "a\uff1c/private\uff1eb\ufe64/private\ufe65c</private\uff1ed\uff1cb\uff1e\uff1e"
    assert strip_private(text) == text


# --- 14.1: nothing that could be a tag is left --------------------------------------------------------------

REMNANTS = [
    ("<pri<private>x</private>vate>secret", ""),
    ("a<pri<private>x</private>vate>secret</private>b", "a"),
    ("a</pri<private>x</private>vate>b", "a"),
    ("a</pri</private>vate>b", "a"),
    ("a<</private>private>b", "a"),
    ("a<</private>privateer>b", "a"),
    ("a<<private>x</private>/private>b", "a"),
    ("a<pri</private>vat</private>e b", "a"),
    ("a\uff1cpri</private>vate b", "a"),
    ("a<privat<private>x", "a<privat"),
    ("a<<private>b</private>b>c", "a<b>c"),
    ("a<x</private>private>b", "a<xprivate>b"),
    ("a<privat</private>e\u0301>b", "a<private\u0301>b"),
    ("a<private \uff1cprivate>b", "a"),
    ("a<<private>b</private>c<privateer>", "a<c"),
    ("a<pr</private>i<privateer>vate>b", "a<pri"),
    ("a<pr</private>i<private>vate>b", "a<pri"),
]


@pytest.mark.parametrize(("text", "left"), REMNANTS, ids=[code_points(text) for text, _ in REMNANTS])
def test_a_tag_that_forms_by_a_removal_is_cut_off(text: str, left: str) -> None:
    assert strip_private(text) == left
    assert strip_private(left) == left
    assert naive_strip(text) == left  # so that the two oracles, table and naive stripper, check each other


def test_tags_that_form_at_every_depth_are_cut_off_at_the_first() -> None:
    text = "x" + "</pri" * 50 + "</private>" + "vate>" * 50
    assert strip_private(text) == "x" + "</pri" * 49
    assert strip_private(strip_private(text)) == strip_private(text)


# --- the two strippers agree ---------------------------------------------------------------------------------

PIECES = [
    *("<", ">", "/", "private", "pri", "vate", " ", "\n", "x"),
    *("\u200b", "\uff1c", "\uff1e", "\ufe64", "\u0301", WIDE, WIDE[:3]),
]


def joined(pieces: Iterable[str], length: int) -> Iterator[str]:
    return map("".join, itertools.product(pieces, repeat=length))


@pytest.mark.parametrize("length", range(5))
def test_the_naive_stripper_agrees_on_every_short_string(length: int) -> None:
    assert disagreement(joined(PIECES, length)) is None


def test_the_naive_stripper_agrees_on_longer_strings_of_tag_pieces() -> None:
    # Every string that begins with a bracket; what stands before the first one is copied (see below).
    assert disagreement("<" + rest for rest in joined(PIECES, 4)) is None
    tag_pieces = ["<", ">", "/", "private", "pri", "vate", " ", "\u200b", "\uff1c", "\uff1e"]
    assert disagreement("<" + rest for rest in joined(tag_pieces, 5)) is None
    assert disagreement("<" + rest for rest in joined(["<", ">", "private", "/private", "x\uff1e"], 6)) is None


def test_the_naive_stripper_agrees_on_every_sequence_of_whole_tags() -> None:
    tags = ["<private>", "</private>", "<pri", "vate>", "</pri", "x"]
    for length in range(7):
        assert disagreement(joined(tags, length)) is None


def interesting_characters() -> list[str]:
    """All that normalization, category or this contract treats in a way of its own, and a sample of the rest."""
    chosen = []
    for code in range(0x110000):
        char = chr(code)
        if (
            code < 0x250
            or code % 997 == 0
            or unicodedata.category(char)[0] in "MZ"
            or unicodedata.category(char) in ("Cc", "Cf")
            or (unicodedata.decomposition(char) and not 0xF900 <= code <= 0xFAFF and not 0x2F800 <= code <= 0x2FA1F)
            or 0x1CCD0 <= code <= 0x1CCF8
            or 0x13430 <= code <= 0x13458
            or char in LATER
        ):
            chosen.append(char)
    return chosen


FRAMES = [
    "a<{}rivate>b",
    "a<{}ivate>b",
    "a<pr{}vate>b",
    "a<pr{}ate>b",
    "a<privat{}>b",
    "a<pri{}vate>b",
    "a{}private>b",
    "a<private {}>b",
]
# Where the letter before or after the character could be changed by it.
ACCENTED_FRAMES = ["a<privat{}\u0301>b", "a<private{}>b", "a<private{}\u0301>b", "a<private\u0338{}\u0301>b"]


@pytest.mark.parametrize("frame", FRAMES + ACCENTED_FRAMES, ids=code_points)
def test_the_naive_stripper_agrees_on_every_character_in_every_place(frame: str) -> None:
    assert disagreement(frame.format(char) for char in interesting_characters()) is None


LETTER_FORMS = [
    [letter, letter.upper(), wide, math, outlined]
    for letter, wide, math, outlined in zip("private", WIDE, MATH, OUTLINED, strict=True)
]
NOISE = ["", "", "", " ", "\n", "\u200b", "\u00a0", "\x85", "\u0301", "\u0327", "\uff9e", "\ufe0f", "\U00013439"]


@st.composite
def near_tags(draw: st.DrawFn) -> str:
    """Something between a tag and a lookalike."""
    text: str = draw(st.sampled_from([*OPENERS, "<"])) + draw(st.sampled_from(["", "", "/", " ", " / "]))
    for forms in LETTER_FORMS:
        text += draw(st.sampled_from([forms[0]] * 9 + forms)) + draw(st.sampled_from([""] * 30 + NOISE))
    text += draw(st.sampled_from(["", "", "", " x", "er", "/", "\u0301", "\u00a0", *NOISE]))
    text += draw(st.sampled_from([*CLOSERS, ">", ">", ">", ""]))
    return text


MIXED = st.lists(
    st.one_of(
        near_tags(),
        st.sampled_from(PIECES + WELL_FORMED + CLOSED + SUSPICIOUS),
        st.text(max_size=4),
        st.sampled_from(["</private>", "<private>", "public "]),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=800, deadline=None)
@example("<privat\u32cd\u0301>")
@example("<private\u0f73\u0301>")
@given(MIXED)
def test_the_naive_stripper_agrees_on_generated_text(text: str) -> None:
    assert disagreement([text]) is None


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_at_all_is_stripped_once_and_for_all(text: str) -> None:
    assert disagreement([text, f"<{text}", f"<private{text}", f"<private>{text}</private>{text}"]) is None


# --- faithfulness --------------------------------------------------------------------------------------------

PUBLIC = st.text(alphabet=st.characters(exclude_characters=OPENERS), max_size=12)
HARMLESS = st.sampled_from(["<b>", "</b>", "< 3 ", "<", "</private-x>", "&lt;private&gt;", "\uff1cx\uff1e", "\r\n", ""])


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(PUBLIC, PUBLIC), min_size=1, max_size=6),
    PUBLIC,
    st.sampled_from(["", "<private>x", "<privateer>"]),
)
def test_text_outside_spans_and_before_a_cut_is_unchanged(parts: list[tuple[str, str]], end: str, cut: str) -> None:
    text = "".join(f"{public}<private>{secret}</private>" for public, secret in parts) + end + cut
    assert strip_private(text) == "".join(public for public, _ in parts) + end


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(PUBLIC, HARMLESS)).map("".join), st.lists(st.one_of(PUBLIC, HARMLESS)).map("".join))
def test_harmless_brackets_are_unchanged(left: str, right: str) -> None:
    text = left + right
    if naive_strip(text) != text:
        return  # two harmless pieces have met in a tag
    assert strip_private(text) == text
    # What stands before a span may not lean on it, so it ends in a space and a letter.
    assert strip_private(f"{left} x<private>secret</private>{right}") == f"{left} x{right}"


def test_what_stands_before_the_first_bracket_is_copied() -> None:
    for head in ("x", "\u0301", "private>", "\uff1e", "/private>", " \r\n\t"):
        for text in joined(PIECES, 3):
            assert strip_private(head + text) == head + strip_private(text)


@given(st.text(alphabet=st.characters(exclude_characters=OPENERS)))
def test_text_without_a_bracket_is_not_even_looked_at(text: str) -> None:
    assert not may_hold_tag(text)
    assert strip_private(text) is text


# --- the report ----------------------------------------------------------------------------------------------

REPORTS = [
    ("a<private>b</private>c", "ac", [(1, 21)], None, None),
    ("a<private>b<private>c</private>d</private>e", "ae", [(1, 42)], None, None),
    ("a<private>b</private><private>c</private>d", "ad", [(1, 21), (21, 41)], None, None),
    ("a</private>b</private >c", "abc", [(1, 11), (12, 23)], None, None),
    ("ab<privateer>c", "ab", [], 2, MALFORMED),
    ("a</private>b<private/>c", "ab", [(1, 11)], 12, MALFORMED),
    ("ab<private>c", "ab", [], 2, UNCLOSED),
    ("a<private>b</private>c<private>d<private>e</private>f", "ac", [(1, 21)], 22, UNCLOSED),
    ("a<private>b<privateer>c</private>d", "a", [], 1, UNCLOSED),
    ("ab<pri<private>x</private>vate>c", "ab", [(6, 26)], 2, REMNANT),
    ("ab<pri</private>vate>c<privateer>d", "ab", [(6, 16)], 2, REMNANT),
    ("ab", "ab", [], None, None),
    ("a<b>c</private-x>", "a<b>c</private-x>", [], None, None),
]


@pytest.mark.parametrize(
    ("text", "left", "spans", "cut", "reason"), REPORTS, ids=[code_points(report[0]) for report in REPORTS]
)
def test_the_report_says_what_was_removed_and_why(
    text: str, left: str, spans: list[tuple[int, int]], cut: int | None, reason: str | None
) -> None:
    report = strip(text)
    assert (report.text, report.spans, report.cut, report.reason) == (left, spans, cut, reason)


def check_report(text: str) -> None:
    """Spans and cut account for every character: what they leave is the text, nothing more and nothing less."""
    report = strip(text)
    assert report.text == strip_private(text)
    assert (report.cut is None) == (report.reason is None)
    assert report.reason in (None, MALFORMED, UNCLOSED, REMNANT)
    ends = [0, *itertools.chain.from_iterable(report.spans), len(text)]
    assert ends == sorted(ends)
    for start, end in report.spans:
        assert naive_tag(text, start) is not None and text[end - 1] == ">"
    outside = "".join(text[ends[at] : ends[at + 1]] for at in range(0, len(ends), 2))
    if report.reason is None:
        assert report.text == outside
    elif report.reason == REMNANT:
        assert report.cut == len(report.text) and outside.startswith(report.text)
    else:
        assert report.cut is not None
        removed = sum(end - start for start, end in report.spans)
        assert all(end <= report.cut for _, end in report.spans)
        assert report.text == outside[: report.cut - removed]
        assert text[report.cut] in OPENERS
        assert (report.reason == MALFORMED) == naive_suspicious(text, report.cut)


@settings(max_examples=400, deadline=None)
@given(MIXED)
def test_the_report_accounts_for_every_character(text: str) -> None:
    check_report(text)


def test_the_report_accounts_for_every_short_string() -> None:
    for length in range(6):
        for text in joined(["<private>", "</private>", "<pri", "vate>", "<privateer>", "x"], length):
            check_report(text)


# --- 14.4: time linear in the text ---------------------------------------------------------------------------

MARK_RUN = "".join(map(chr, range(0x0300, 0x0340)))  # of several combining classes, out of order
# Name: what stands once at the front, what is repeated, what stands at the end.
FLOODS = {
    "brackets": ("", "<", ""),
    "wide brackets": ("", "\uff1c", ""),
    "tags of no account": ("", "<a ", ""),
    "openers": ("", "<private>", ""),
    "openers, then nothing": ("", "<private ", ""),
    "closers": ("", "</private>", ""),
    "spans": ("", "<private>x</private>", ""),
    "nested spans": ("", "<private>", "</private>" * 100),
    "closers within closers": ("", "</pri</private>vate>", ""),
    "closers within openers": ("", "<pri</private>vat", "e"),
    "brackets and spaces": ("", "<" + " " * 64, ""),
    "one bracket, then spaces": ("<", " ", "/"),
    "a slash, then spaces": ("</", " ", "x"),
    "an opener, then spaces": ("<private ", " ", "x"),
    "an opener, then blanks outside ASCII": ("<private ", "\u3000", "<"),
    "an opener, then wide closers": ("<private ", "x", "\uff1e>"),
    "half openers": ("", "<privat", ""),
    "half openers outside ASCII": ("", "<\uff50riv", ""),
    "zero-width characters": ("<", "\u200b", "x"),
    "zero-width characters in the word": ("<priv", "\u200b", "te>"),
    "one mark after the word": ("<private", "\u0338", ">"),
    "marks after the word": ("<private", MARK_RUN, ">"),
    "marks after the word, the accent last": ("<private", "\u0338", "\u0301>"),
    "marks in the word": ("<priv", MARK_RUN, "ate>"),
    "words with marks": ("", "<private\u0301" + "\u0338" * 20 + ">", ""),
}


def flood(name: str, size: int) -> str:
    """About `size` characters of it."""
    front, repeated, end = FLOODS[name]
    return front + repeated * (size // len(repeated)) + end


def seconds(text: str, tries: int) -> float:
    """Processor time of stripping `text`, the best of some tries."""
    best = float("inf")
    for _ in range(tries):
        start = time.process_time()
        strip_private(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("name", FLOODS)
def test_time_is_linear_in_the_text(name: str) -> None:
    small, large = flood(name, 1 << 14), flood(name, 1 << 17)
    # Eight times the text: about 8 where time is linear, 64 where it is quadratic.
    base = max(seconds(small, 5), 20e-6)  # below that the clock's grain is all there is to see
    assert seconds(large, 2) < 24 * base


@pytest.mark.parametrize("name", ["brackets", "tags of no account", "nested spans", "closers within closers"])
def test_a_note_of_the_largest_size_is_stripped(name: str) -> None:
    text = flood(name, 8 << 20)
    left = {"nested spans": "", "closers within closers": ""}.get(name, text)
    assert strip_private(text) == left
