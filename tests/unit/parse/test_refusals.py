"""Challenge and block pages, and what is none though it speaks of them."""

from __future__ import annotations

import pytest

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.refusals import refusal_of, refusal_rules
from recrawl.tables.vocabulary import ParseOutcome

ARTICLE = "<p>" + "A long article on how guards of sites tell people from programs, and what they show. " * 40


def parsed(html: str, *header_lines: str) -> ParsedPage:
    capture = Capture("http://e.example/", "text/html", html.encode(), None, 0, "recrawl", True, (), header_lines)
    return parse_capture(capture, Parse(text_extractor="none"))


@pytest.mark.parametrize(
    ("html", "headers", "rule"),
    [
        (
            "<title>Just a moment...</title><script src='/cdn-cgi/challenge-platform/h/b/chl_page/v1'></script>",
            (),
            "cloudflare-interstitial",
        ),
        ("<title>Any</title>", ("Server: x", "CF-Mitigated: challenge"), "cloudflare-challenge"),
        (
            "<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1>",
            (),
            "cloudflare-block",
        ),
        ("<html><iframe src='/_Incapsula_Resource?CWUDNSAI=9'></iframe>", (), "imperva"),
        ("<title>Request Rejected</title>Please consult with your administrator.", (), "f5-asm"),
        ("<title>Access Denied</title>Reference&#32;&#35;18.2d", (), "akamai-reference"),
        ("<title>Robot Check</title><form action=/errors/validateCaptcha>", (), "amazon-robot-check"),
        ("<script src='https://x.token.awswaf.com/x/challenge.js'></script>", (), "aws-waf-script"),
        ("<title>e.example</title><script src='https://geo.captcha-delivery.com/c.js'></script>", (), ""),
        ("<title>Security Check</title><div class=g-recaptcha>", (), "recaptcha-gate"),
    ],
)
def test_a_guard_is_a_refusal_and_its_links_are_not_the_sites(html: str, headers: tuple[str, ...], rule: str) -> None:
    page = parsed(html + "<a href=/guard>help</a>", *headers)
    assert refusal_of(headers, page.title, html) == rule
    if rule:
        assert (page.parse_outcome, page.detail) == (ParseOutcome.REFUSED, f"rule {rule}")
        assert (page.links, page.text, page.canonical) == ([], None, None)
    else:
        assert page.parse_outcome is ParseOutcome.OK


@pytest.mark.parametrize(
    "html",
    [
        f"<title>Just a moment of silence</title>{ARTICLE}",
        f"<title>What 'Attention Required' pages mean</title>{ARTICLE} Cloudflare /cdn-cgi/challenge-platform/",
        f"<title>Access denied</title>{ARTICLE}",
        f"<title>My shop</title>{ARTICLE}<script src='https://js.captcha-delivery.com/tags.js'></script>",
        f"<title>Contact</title><form><div class=g-recaptcha></div></form>{ARTICLE}",
        f"<title>How to solve a captcha</title>{ARTICLE} captcha",
    ],
)
def test_a_page_that_speaks_of_guards_is_a_page(html: str) -> None:
    page = parsed(html)
    assert page.parse_outcome is ParseOutcome.OK, page.detail


def test_every_rule_has_a_name_of_its_own_and_a_mark() -> None:
    rules = refusal_rules()
    assert len({rule.name for rule in rules}) == len(rules) > 15
    assert all(rule.title or rule.body or rule.header for rule in rules)
