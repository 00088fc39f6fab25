"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from hypothesis import strategies as st

_LABEL = st.text("abcxyz019-", min_size=1, max_size=8)
_NASTY = "aZ09-._~%/?#[]@!$&'()*+,;=:\\|^{}<>\"` \t\né\u2028\U0001f600"

#: Host names, with and without trailing dots, ports and upper case; addresses too.
hosts = st.one_of(
    st.builds(
        lambda labels, top, end: ".".join([*labels, top]) + end,
        st.lists(_LABEL, min_size=0, max_size=3),
        st.sampled_from(["com", "co.uk", "github.io", "EXAMPLE.org", "bücher.de", "xn--bcher-kva.example"]),
        st.sampled_from(["", "", "", ".", "...", ":80", ":8080", ":443"]),
    ),
    st.sampled_from(["127.0.0.1", "[::1]", "[2001:DB8::1]:8080", "0x7f.1", "0x7f.1..", "localhost", "1.2.3.4."]),
)

#: Paths with dot segments, escapes, path parameters and what belongs in no URL.
paths = st.lists(
    st.one_of(
        st.sampled_from(
            ["", ".", "..", "%2e", "a", "b;sid=1", "..;sid=1", ".;jsessionid=2", "%7Ea", "%2F", "100%", "%2%35", "[x]"]
        ),
        st.text(_NASTY, max_size=8),
    ),
    max_size=6,
).map(lambda segments: "".join(f"/{segment}" for segment in segments))

#: Queries with and without values, of parameters that are dropped and others.
queries = st.lists(
    st.one_of(
        st.sampled_from(
            ["a=1", "b=2", "a", "a=", "", "utm_source=x", "utm%5Fx=1", "PHPSESSID=9", "sid", "x[y]=1", "%26=%26"]
        ),
        st.text(_NASTY, max_size=8),
    ),
    max_size=5,
).map("&".join)

#: URLs that look like those of the web, tidy or not.
web_urls = st.builds(
    lambda scheme, user, host, path, question, query, fragment: (
        f"{scheme}://{user}{host}{path}{question}{query if question else ''}{fragment}"
    ),
    st.sampled_from(["http", "https", "ftp", "HTTP"]),
    st.sampled_from(["", "", "", "ann@", "ann:secret@", "@"]),
    hosts,
    paths,
    st.sampled_from(["", "?"]),
    queries,
    st.sampled_from(["", "#", "#top", "#a?b"]),
)

#: References as pages hold them.
references = st.one_of(
    web_urls,
    st.builds(lambda path, query: f"{path}?{query}", paths, queries),
    paths.map(lambda path: path.lstrip("/")),
    st.sampled_from(["", "?", "#x", "//example.com/a", "mailto:ann@example.com", "javascript:void(0)", "../.."]),
)

#: Any text at all, lone surrogates included.
any_text = st.text(st.characters(exclude_categories=()), max_size=60)


@st.composite
def robots_files(draw: st.DrawFn, path_alphabet: str = "ab/*") -> str:
    """robots.txt files of a few groups for the agents `foo`, `bar` and everyone."""
    rule_path = st.text(path_alphabet, max_size=6).map(lambda path: f"/{path}")
    anchored = st.builds(lambda path, end: path + end, rule_path, st.sampled_from(["", "", "$"]))
    rule = st.builds(lambda field, path: f"{field}: {path}", st.sampled_from(["Allow", "Disallow"]), anchored)
    other = st.sampled_from(["", "# a comment", "Crawl-delay: 3", "Sitemap: http://example.com/s.xml", "Nonsense: 1"])
    agent = st.sampled_from(["User-agent: foo", "User-agent: bar", "User-agent: *", "user-agent: FOO/2.0"])
    return "\n".join(draw(st.lists(st.one_of(rule, rule, rule, agent, other), max_size=14)))
