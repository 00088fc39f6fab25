"""Reading robots.txt: lines, tokens, groups and delays."""

from __future__ import annotations

import pytest

from recrawl.robots.lines import Field, agent_token, part_for, read_lines


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("User-Agent: Foo # x", Field.AGENT, "Foo"),
        ("useragent:Foo", Field.AGENT, "Foo"),
        ("user agent Foo", Field.AGENT, "Foo"),
        ("  ALLOW :/a b ", Field.ALLOW, "/a b"),
        ("Dissalow: /a", Field.DISALLOW, "/a"),
        ("disalow /a", Field.DISALLOW, "/a"),
        ("Disallow:", Field.DISALLOW, ""),
        ("Disallow", Field.DISALLOW, ""),
        ("Crawl delay: 3", Field.CRAWL_DELAY, "3"),
        ("Site-map: http://example.com/a", Field.SITEMAP, "http://example.com/a"),
    ],
)
def test_a_line_is_understood(text: str, field: Field, value: str) -> None:
    [line] = read_lines(text)
    assert (line.field, line.value) == (field, value)


@pytest.mark.parametrize("text", ["", "# Disallow: /", "Noindex: /", "Allowed: /a", "Host: example.com", "disallow/a"])
def test_other_lines_are_as_if_they_were_not_there(text: str) -> None:
    assert list(read_lines(text)) == []


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_line_ends(end: str) -> None:
    assert [line.value for line in read_lines(f"Allow: /a{end}{end}Allow: /b{end}")] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("FooBot/2.1", "foobot"),
        ("FooBot (http://example.com)", "foobot"),
        ("*", "*"),
        ("* everyone", "*"),
        ("foo*", "foo"),
        ("", ""),
    ],
)
def test_product_tokens(value: str, token: str) -> None:
    assert agent_token(value) == token


@pytest.mark.parametrize(
    ("agent", "values"),
    [
        ("foo", ["/1", "/3"]),
        ("FOO", ["/1", "/3"]),
        ("foo-news", ["/2"]),
        ("Mozilla/5.0 (compatible; foo/1.0)", ["/1", "/3"]),
        ("barfoo", ["/4"]),
        ("empty", []),
    ],
)
def test_groups(agent: str, values: list[str]) -> None:
    file = """
        User-agent: foo
        Disallow: /1
        User-agent: foo-news
        Disallow: /2
        User-agent: Foo/1.0
        Crawl-delay: 7
        Disallow: /3
        User-agent: *
        Disallow: /4
        User-agent: empty
    """
    assert [line.value for line in part_for(file, agent).rules] == values


@pytest.mark.parametrize(
    ("file", "seconds"),
    [
        ("User-agent: foo\nCrawl-delay: 10", 10.0),
        ("User-agent: foo\nCrawl-delay: 0.5\nUser-agent: foo\nCrawl-delay: 3\nUser-agent: foo\nCrawl-delay: 1", 3.0),
        ("User-agent: foo\nUser-agent: bar\nCrawl-delay: 4", 4.0),
        ("User-agent: foo\nCrawl-delay: 4\nUser-agent: bar\nCrawl-delay: 9\nDisallow: /", 4.0),
        ("User-agent: foo\nDisallow: /\nUser-agent: *\nCrawl-delay: 9", None),
        ("User-agent: *\nCrawl-delay: 9", 9.0),
        ("User-agent: foo\nCrawl-delay: soon", None),
        ("User-agent: foo\nCrawl-delay: -1", None),
        ("User-agent: foo\nCrawl-delay: nan", None),
        ("User-agent: foo\nCrawl-delay: inf", None),
        ("Crawl-delay: 5", None),
    ],
)
def test_crawl_delays(file: str, seconds: float | None) -> None:
    assert part_for(file, "foo").crawl_delay_seconds == seconds


def test_a_file_of_many_agents_is_read_in_linear_time() -> None:
    """Half a megabyte of agent lines and rules; keeping every group would take a minute."""
    file = "".join(f"User-agent: a{number}\n" for number in range(15_000)) + "Disallow: /\n" * 20_000
    assert part_for(file, "recrawl").rules == ()
    assert len(part_for(file, "a7").rules) == 20_000
