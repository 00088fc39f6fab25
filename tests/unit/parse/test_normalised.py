"""The normalised text: what changes by itself is gone, what is content stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.normalised import MIN_BYTES, normalised, text_checksum

WORDS = "These words are the content of a page that is long enough to be identified by its text. "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-11-30", "2027-01-02"),
        ("2026-11-30T12:00:00Z", "2025-01-01T00:00:00+01:00"),
        ("30.11.2026", "1.2.2027"),
        ("11/30/26", "12/01/26"),
        ("30 November 2026, 12:00", "1st December 2026, 09:30"),
        ("Nov 30, 2026", "December 1, 2026 at 10:15 pm"),
        ("Mon, 02 Jan 2026 15:04:05 GMT", "Tue, 03 Feb 2026 16:05:06 GMT"),
        ("30. November 2026", "1. Dezember 2026"),
        ("30 de noviembre de 2026", "1 de diciembre de 2026"),
        ("2026年11月30日", "2027年1月2日"),
        ("12:30:45", "9:05"),
        ("5 minutes ago", "2 hours ago"),
        ("visitors: 12", "visitors: 1,204"),
        ("1,204 views", "9 views"),
        ("generated in 0.123 s", "generated in 1.5 seconds"),
        ("© 2020-2026 Acme", "© 2020-2027 Acme"),
        ("session 9f86d081884c7d659a2feaa0c55ad015", "session 60303ae22b998861bce3b28f33eec1be"),
        ("123e4567-e89b-12d3-a456-426614174000", "9b2fa1de-1111-4222-8333-444455556666"),
        ("at 1764556800", "at 1764560400"),
        ("Straße\n  und\tWEG", "Straße und weg"),
    ],
)
def test_what_changes_by_itself_is_gone(one: str, other: str) -> None:
    assert normalised(WORDS + one) == normalised(WORDS + other)
    assert text_checksum(f"{one}\n{WORDS}") == text_checksum(f"{other}\n{WORDS}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5.99 EUR", "6.49 EUR"),
        ("version 1.2.30", "version 1.2.31"),
        ("SKU S12", "SKU S13"),
        ("chapter 3", "chapter 4"),
        ("over 3 days", "over 4 days"),
        ("the year 1984", "the year 1985"),
        ("address 10.0.0.1", "address 10.0.0.2"),
        ("the_name_of_function_1", "the_name_of_function_2"),
        ("tel. 030 1234567", "tel. 030 1234568"),
    ],
)
def test_other_numbers_are_content(one: str, other: str) -> None:
    assert normalised(WORDS + one) != normalised(WORDS + other)


@given(st.text(max_size=300))
def test_normalising_is_steady_and_total(text: str) -> None:
    once = normalised(text)
    assert normalised(text) == once
    assert not set(once) & set(b" \t\n\r\x00")
    assert (text_checksum(text) is None) == (len(once) < MIN_BYTES)


def page(body: str, want_text: bool = True) -> ParsedPage:
    """A parsed page without main text."""
    capture = Capture("http://a.test/", "text/html; charset=utf-8", body.encode(), None, 0, "recrawl", want_text)
    return parse_capture(capture, Parse(text_extractor="none"))


def test_dynamic_parts_of_a_page_do_not_change_its_checksum() -> None:
    first = page(
        f"<title>T</title><nav>Home | 3 new</nav><p>{WORDS}</p><div class='box ad'>Sponsored: <b>shoes</b></div>"
        "<div class='ad sponsored'><div class=ad>x</div></div><script>var nonce = 'a'</script>"
        "<p>Updated 2026-11-30 12:00</p><input type=hidden name=csrf value=abc><footer>© 2026</footer>"
    )
    second = page(
        f"<title>T</title><nav>Home | 4 new</nav>\n\n<p>{WORDS}</p>\n<div class='box ad'>Sponsored: <b>hats</b></div>"
        "<div class='ad sponsored'><div class=ad>y</div></div><script>var nonce = 'b'</script>"
        "<p>Updated 2026-12-01 13:30</p><input type=hidden name=csrf value=def><footer>© 2027</footer>"
    )
    assert first.text_checksum is not None
    assert first.text_checksum == second.text_checksum


@pytest.mark.parametrize(
    "body",
    [
        f"<title>U</title><p>{WORDS}</p><img src=/a/one.png?1>",
        f"<title>T</title><p>{WORDS} More.</p><img src=/a/one.png?1>",
        f"<title>T</title><p>{WORDS}</p><img src=/a/two.png?1>",
    ],
)
def test_title_text_and_images_are_content(body: str) -> None:
    same = f"<title>T</title><p>{WORDS}</p><img src=/b/one.png?2>"
    before = page(f"<title>T</title><p>{WORDS}</p><img src=/a/one.png?1>")
    assert page(same).text_checksum == before.text_checksum
    assert page(body).text_checksum != before.text_checksum


def test_a_page_that_says_nothing_is_known_by_its_body() -> None:
    assert page("<title>T</title><p>Short.</p>").text_checksum is None
    assert page(f"<p>{WORDS}</p>", want_text=False).text_checksum is None


def test_main_text_is_left_out_where_only_dynamic_parts_changed() -> None:
    body = f"<html lang=en><p>{WORDS}</p><a href=/x>x</a></html>"
    known = page(body).text_checksum
    assert known is not None
    capture = Capture(
        "http://a.test/", "text/html", body.encode(), None, 0, "recrawl", True, previous_text_checksum=known
    )
    parsed = parse_capture(capture, Parse(text_extractor="resiliparse"))
    assert (parsed.text, parsed.text_checksum, parsed.language, len(parsed.links)) == (None, known, "en", 1)
