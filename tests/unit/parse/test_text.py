"""Main text, language, checksum, quality, metadata."""

from __future__ import annotations

import pytest

from recrawl.parse.html import parse_html
from recrawl.parse.metadata import author_and_date
from recrawl.parse.text import Extractor, language_of_text, main_text, quality

SENTENCES = [
    f"In the year {year} the harbour of town number {year % 17} received {year * 3 % 101} ships."
    for year in range(1900, 1930)
]
ARTICLE = (
    "<html><body><nav><ul><li><a href=/1>Home</a><li><a href=/2>About us</a></ul></nav><article><h1>Harbours</h1><p>"
    + "</p><p>".join(SENTENCES)
    + "</p></article><footer>Copyright</footer></body></html>"
)


@pytest.mark.parametrize("extractor", ["trafilatura", "resiliparse"])
def test_main_text_is_the_article(extractor: Extractor) -> None:
    text = main_text(ARTICLE, extractor)
    assert text is not None
    assert all(sentence in text for sentence in SENTENCES)
    assert "About us" not in text


@pytest.mark.parametrize("extractor", ["trafilatura", "resiliparse"])
@pytest.mark.parametrize("html", ["", " ", "\0", "<", "<p>"])
def test_nothing_has_no_main_text(extractor: Extractor, html: str) -> None:
    assert not (main_text(html, extractor) or "").strip("<\ufffd")


def test_extractor_none_extracts_nothing() -> None:
    assert main_text(ARTICLE, "none") is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The quick brown fox jumps over the lazy dog and runs away.", "en"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", "ru"),
        ("これは日本語で書かれた文章です。言語を判定します。", "ja"),
        ("short", None),
    ],
)
def test_language(text: str, language: str | None) -> None:
    assert language == language_of_text(text)


def test_quality_falls_with_stubs_link_farms_and_repetition() -> None:
    article = " ".join(f"harbour{n % 83} ships{n % 97}" for n in range(200))
    assert 0.7 < quality(article, 50) <= 1.0
    assert quality(article[:60], 0) < 0.2
    assert quality(article, 10 * len(article)) < 0.2
    assert quality("buy now " * 300, 0) < 0.1
    assert quality("", 0) == 0.0


def test_quality_falls_with_the_duplicates_of_its_host() -> None:
    article = " ".join(f"word{n}" for n in range(400))
    assert quality(article, 0, (), 1.0) == pytest.approx(quality(article, 0) / 2, abs=1e-3)
    assert quality(article, 0, (), 0.5) == pytest.approx(quality(article, 0) * 0.75, abs=1e-3)


def test_quality_falls_with_unwanted_words() -> None:
    article = " ".join(f"harbour{n % 83} ships{n % 97}" for n in range(200))
    spam = article.replace("ships1 ", "Casino ").replace("ships2 ", "casino, ")
    assert 0 < quality(spam, 0, ["CASINO"]) < quality(spam, 0)
    assert quality(article, 0, ["casino"]) == quality(article, 0)
    assert quality("casino night " * 50, 0, ["casino"]) == 0.0


def test_quality_of_text_without_spaces_is_not_taken_for_repetition() -> None:
    japanese = "".join(chr(0x4E00 + (n * n * 31 + n) % 900) + "のは"[n % 2] for n in range(600))
    assert quality(japanese, 0) > 0.6


@pytest.mark.parametrize(
    ("html", "stated"),
    [
        ("<meta name=Author content=' Jane  Doe '><meta name=date content=2024-05-06>", ("Jane Doe", "2024-05-06")),
        ("<meta property=article:author content='https://x.example/jane'>", (None, None)),
        ("<time datetime=2024-01-02 pubdate>yesterday</time>", (None, "2024-01-02")),
        (
            '<script type="application/ld+json">{"@graph":[{"author":[{"name":"Jo"}],'
            '"datePublished":"2023"}]}</script>',
            ("Jo", "2023"),
        ),
        ('<script type="application/ld+json">{"author": 3, "datePublished": []}</script>', (None, None)),
        ('<script type="application/ld+json">' + "[" * 5000 + "</script>", (None, None)),
        ("<p>", (None, None)),
    ],
)
def test_author_and_date(html: str, stated: tuple[str | None, str | None]) -> None:
    assert stated == author_and_date(parse_html(html))
