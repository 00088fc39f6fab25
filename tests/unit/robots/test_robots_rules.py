"""The rules of one robots.txt: what they allow, and which line says so."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jwm.robotstxt.googlebot import RobotsMatcher
from protego import Protego

from recrawl.robots.lines import MAX_BYTES
from recrawl.robots.rules import RobotsDecision, RobotsRules
from recrawl.urls.canonical import Canonicalizer
from tests.strategies import any_text, robots_files, web_urls

AGENTS = st.sampled_from(["foo", "bar", "baz"])
PATHS = st.text("ab/", max_size=6).map(lambda path: f"http://example.com/{path}")

FILE = """\
User-agent: *
Disallow: /private   # ours
Allow: /private/open*
Disallow: /*.cgi$
Crawl-delay: 2.5
Sitemap: http://example.com/s.xml
sitemap: /relative.xml
Sitemap: http://example.com/s.xml
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", RobotsDecision(True, "")),
        ("/private/a", RobotsDecision(False, "Disallow: /private")),
        ("/private/open/a", RobotsDecision(True, "Allow: /private/open*")),
        ("/x.cgi", RobotsDecision(False, "Disallow: /*.cgi$")),
        ("/x.cgi?a", RobotsDecision(True, "")),
        ("/robots.txt", RobotsDecision(True, "")),
    ],
)
def test_the_deciding_line(path: str, expected: RobotsDecision) -> None:
    assert RobotsRules.parse(FILE, "recrawl").decide(f"http://example.com{path}") == expected


def test_delay_and_sitemaps() -> None:
    rules = RobotsRules.parse(FILE, "recrawl")
    assert rules.crawl_delay_seconds == 2.5
    assert rules.sitemaps == ("http://example.com/s.xml", "/relative.xml")


@pytest.mark.parametrize(
    ("body", "path", "allowed"),
    [
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /", "/a", False),
        (b"User-agent: *\nDisallow: /b\xfccher", "/b%FCcher/1", False),
        ("User-agent: *\nDisallow: /bücher", "/b%C3%BCcher/1", False),
        ("User-agent: *\nDisallow: /a\u2028Allow: /", "/a", True),
        ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
        ("User-agent: *\nDisallow: /%7eann", "/~ann", False),
        ("User-agent: *\nDisallow: /index.html\nDisallow: /\nAllow: /a/index.html", "/a/", True),
        ("User-agent recrawl\nDisallow /a", "/a", False),
        ("User-agent: recrawler\nDisallow: /a", "/a", True),
        ("User-agent:\nDisallow: /a", "/a", True),
        ("\x00\x01", "/a", True),
        ("", "/a", True),
    ],
)
def test_odd_files(body: bytes | str, path: str, allowed: bool) -> None:
    rules = RobotsRules.parse(body, "recrawl")
    decision = rules.decide(f"http://example.com{path}")
    assert (decision.allowed, rules.allows(f"http://example.com{path}")) == (allowed, allowed)
    assert allowed or decision.rule


def test_nothing_is_read_beyond_the_cap() -> None:
    filler = b"# " + b"x" * 98 + b"\n"
    head = b"User-agent: *\nDisallow: /first\n"
    lines = (MAX_BYTES - len(head)) // len(filler)
    body = head + filler * lines + b"Disallow: /" + b"y" * 200 + b"\nDisallow: /last\n"
    rules = RobotsRules.parse(body, "recrawl")
    assert not rules.allows("http://example.com/first")
    assert rules.allows("http://example.com/last")
    # Half of the line that the cap cuts would forbid `/yyy`.
    assert rules.allows("http://example.com/" + "y" * 50)


@given(robots_files(), AGENTS, st.lists(PATHS, max_size=5))
@example("User-agent: foo\nAllow: /index.html\nDisallow: /", "foo", ["http://example.com/"])
def test_the_named_line_decides_by_itself(file: str, agent: str, urls: list[str]) -> None:
    """Protego's decision is that of our own longest match, and the line named gives it alone."""
    rules = RobotsRules.parse(file, agent)
    for url in urls:
        decision = rules.decide(url)
        assert decision.allowed == rules.allows(url)
        assert decision.allowed or decision.rule
        if decision.rule:
            line = decision.rule
            assert line.lower().startswith("allow" if decision.allowed else "disallow")
            opposite = "Disallow: /" if decision.allowed else "Allow: /"
            alone = Protego.parse(f"User-agent: *\n{opposite}\n{line}")
            # A rule as short as its opposite loses the tie when it forbids.
            assert alone.can_fetch(url, "*") == decision.allowed or len(line.partition(":")[2].strip()) == 1


@given(robots_files(), AGENTS, st.lists(PATHS, max_size=5))
def test_google_decides_alike(file: str, agent: str, urls: list[str]) -> None:
    """Google's own parser (jwm.robotstxt) is the second oracle, where the spelling is plain."""
    rules = RobotsRules.parse(file, agent)
    for url in urls:
        assert rules.allows(url) == RobotsMatcher().OneAgentAllowedByRobots(file, agent, url)


@given(
    st.one_of(any_text, st.binary(max_size=60)).flatmap(
        lambda text: st.sampled_from(
            [
                text,
                "Disallow: /".join(["User-agent: *\n", text])
                if isinstance(text, str)
                else b"User-agent: *\nAllow: /" + text,
                "Sitemap: " + text if isinstance(text, str) else b"Sitemap: " + text,
            ]
        )
    ),
    web_urls,
)
def test_any_file_is_read(body: bytes | str, url: str) -> None:
    """Whatever the file holds, it is read, and what is handed on can be stored as UTF-8."""
    rules = RobotsRules.parse(body, "recrawl")
    for sitemap in rules.sitemaps:
        sitemap.encode("utf-8")
    identity = Canonicalizer().canonical(url)
    if identity is not None:
        decision = rules.decide(identity)
        decision.rule.encode("utf-8")
        assert decision.allowed or decision.rule


def test_many_wildcards_end_soon() -> None:
    """A pattern that a backtracking matcher would not finish is answered at once."""
    rules = RobotsRules.parse("User-agent: *\nDisallow: /" + "*a" * 500 + "$", "recrawl")
    assert rules.decide("http://example.com/" + "a" * 2000 + "b") == RobotsDecision(True, "")


def test_rules_travel_to_the_workers() -> None:
    rules = RobotsRules.parse(FILE, "recrawl")
    copy = pickle.loads(pickle.dumps(rules))
    assert copy.decide("http://example.com/private") == rules.decide("http://example.com/private")
