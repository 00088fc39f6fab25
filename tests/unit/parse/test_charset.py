"""Encodings: the order of the clues, the standard's labels and decoders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.parse import charset
from recrawl.parse.encodings import decode, encoding_of

RUSSIAN = "<title>Съешь же ещё этих мягких французских булок, да выпей чаю</title>"


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        # A byte order mark is above the header, the header above the document.
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=windows-1251", "utf-8"),
        (b"\xff\xfe<\x00", "text/html; charset=utf-8", "utf-16le"),
        (b"<meta charset=koi8-r>", "text/html; charset=windows-1251", "windows-1251"),
        # A header that names nothing known says nothing.
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        (b"x", "text/html;charset='Shift_JIS'", "shift_jis"),
        (b'<?xml version="1.0" encoding="iso-8859-5"?><html>', "application/xhtml+xml", "iso-8859-5"),
        (b"<!--" + b"x" * 2000 + b"--><meta charset=koi8-r>", None, "koi8-r"),
        # Behind the prescan's limit a declaration inside of a script is none.
        (b"<script>" + b" " * 2000 + b'"<meta charset=koi8-r>"</script>', None, "windows-1252"),
        ("<p>naïve".encode(), None, "utf-8"),
        ("Fußgänger können über die Brücke gehen. ".encode("windows-1252") * 5, None, "windows-1252"),
        (RUSSIAN.encode("windows-1251"), None, "windows-1251"),
        ("これは日本語の文章です。漢字とひらがな。".encode("shift_jis") * 4, None, "shift_jis"),
        ("これは".encode("iso-2022-jp"), None, "iso-2022-jp"),
        (b"", None, "windows-1252"),
    ],
)
def test_detect_takes_the_strongest_clue(body: bytes, content_type: str | None, encoding: str) -> None:
    assert encoding == charset.detect(body, content_type)


def test_utf8_cut_within_a_character_is_still_utf8() -> None:
    body = ("<p>" + "Съешь же ещё " * 20).encode()
    assert charset.detect(body[:-2], None) == "utf-8"


def test_plain_text_has_no_declaration() -> None:
    assert charset.detect_text(b"<meta charset=koi8-r> is how to say it", "text/plain") == "windows-1252"


@pytest.mark.parametrize(
    ("label", "encoding"),
    [(" Latin1\n", "windows-1252"), ("UTF8", "utf-8"), ("ks_c_5601-1987", "euc-kr"), ("utf-7", None), ("", None)],
)
def test_labels_are_those_of_the_standard(label: str, encoding: str | None) -> None:
    assert encoding == encoding_of(label)


@pytest.mark.parametrize(
    ("body", "encoding", "text"),
    [
        (b"\x93a\x94 \x81", "windows-1252", "“a” \x81"),
        (b"\xef\xbb\xbfa\xff", "utf-8", "a\ufffd"),
        (b"\x80", "x-user-defined", "\uf780"),
        (b"anything", "replacement", "\ufffd"),
        ("€".encode("gb18030"), "gbk", "€"),
    ],
)
def test_decoding_follows_the_standard(body: bytes, encoding: str, text: str) -> None:
    assert text == decode(body, encoding)


_MARKUP = st.lists(
    st.sampled_from(
        [b"<", b">", b"<meta ", b"charset=", b"'", b'"', b"utf-8", b"content=", b"\xff", b"=", b" ", b"<!--"]
    )
    | st.binary(max_size=4),
    max_size=40,
).map(b"".join)


@given(body=_MARKUP | st.binary(max_size=3000), content_type=st.none() | st.text(max_size=60))
def test_any_bytes_have_an_encoding_and_decode(body: bytes, content_type: str | None) -> None:
    encoding = charset.detect(body, content_type)
    assert encoding == encoding_of(encoding)
    decode(body, encoding).encode("utf-8")


@pytest.mark.parametrize("declared", ["header", "meta"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Élève de l'école, où êtes-vous à présent ? " * 20, "windows-1252"),
        ("港口位于城市的边缘，船只整天来来往往。" * 40, "gbk"),
    ],
)
def test_utf_8_that_is_plainly_not_is_passed_over(text: str, encoding: str, declared: str) -> None:
    head = b"<meta charset=utf-8>" if declared == "meta" else b""
    content_type = "text/html; charset=utf-8" if declared == "header" else None
    body = head + b"<p>" + text.encode(encoding)
    assert decode(body, charset.detect(body, content_type)).endswith(text)
    # A stray byte or two do not make another encoding of it.
    broken = head + b"<p>" + text.encode() + b"\xe9 \xe8"
    assert charset.detect(broken, content_type) == "utf-8"
