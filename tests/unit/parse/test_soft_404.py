"""Pages that say with a status of success that there is no page."""

from __future__ import annotations

import pytest

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.soft_404 import names_missing_page, soft_404_reason
from recrawl.tables.vocabulary import ParseOutcome

NAVIGATION = "Home Shop News Contact Search Imprint Privacy " * 8


@pytest.mark.parametrize(
    "title",
    [
        "404",
        "Error 404",
        "404 Not Found",
        "HTTP 404 - Not Found",
        "Not found",
        "Page not found",
        "Page not found | A shop",
        "A shop - 404",
        "The page you are looking for does not exist",
        "This product is no longer available",
        "Sorry, this page could not be found",
        "Seite nicht gefunden – Die Stadt",
        "Page introuvable",
        "Página no encontrada",
        "Página não encontrada",
        "Pagina non trovata",
        "Pagina niet gevonden",
        "Sidan hittades inte",
        "Nie znaleziono strony",
        "Страница не найдена",
        "Sayfa bulunamadı",
        "页面不存在",
        "お探しのページが見つかりませんでした",
        "페이지를 찾을 수 없습니다",
    ],
)
def test_what_title_or_heading_say(title: str) -> None:
    for arguments in ((title, None), ("A shop", title)):
        assert names_missing_page(*arguments)
        assert soft_404_reason(*arguments, "Try our search." + NAVIGATION)
        assert not soft_404_reason(*arguments, "An article that goes on for long. " * 100)


@pytest.mark.parametrize(
    "title",
    [
        None,
        "",
        "Lost and found",
        "Peugeot 404",
        "Room 4040",
        "Flight 404 to Rome",
        "Found: a page of history",
        "Not my page",
        "The missing piece",
        "Seiten und Artikel",
    ],
)
def test_other_titles_with_little_text_are_pages(title: str | None) -> None:
    text = "A short page on this and that which has all it needs."
    assert not soft_404_reason(title, None, text)


def parsed(html: str) -> ParsedPage:
    capture = Capture("http://e.example/x", "text/html", html.encode(), None, 0, "recrawl", True)
    return parse_capture(capture, Parse(text_extractor="resiliparse"))


def test_such_a_page_has_links_but_no_text() -> None:
    script = "<script>var article = 'not found '.repeat(9)</script>"
    html = f"<title>Not found</title><body>{script}<p>Removed. <a href=/>Home</a>"
    page = parsed(html)
    assert (page.parse_outcome, page.text, len(page.links)) == (ParseOutcome.SOFT_404, None, 1)
    assert "Not found" in page.detail


def test_an_article_on_missing_pages_is_a_page() -> None:
    page = parsed(
        "<title>404 Not Found: what it means</title><h1>404 Not Found</h1><p>" + "It means that a page is gone. " * 90
    )
    assert page.parse_outcome is ParseOutcome.OK
    assert page.text
