"""Pages that are empty until their scripts run."""

from __future__ import annotations

import pytest

from recrawl.parse.html import parse_html
from recrawl.parse.rendering import needs_rendering, visible_text

BUNDLE = "<script src=/static/main.3f2a.js></script>"


@pytest.mark.parametrize(
    "html",
    [
        f"<title>App</title><body><div id=root></div>{BUNDLE}",
        f"<body><noscript>You need to enable JavaScript to run this app.</noscript><div id=x>Loading</div>{BUNDLE}",
        f"<body><app-root>Loading…</app-root>{BUNDLE}",
        f"<body>{BUNDLE}",
        "<body><script>" + "document.body.append(1);" * 20 + "</script>",
        f"<body><div id=__next></div><script type=application/json>{{}}</script>{BUNDLE}",
    ],
)
def test_a_shell_needs_rendering(html: str) -> None:
    assert needs_rendering(parse_html(html), 0)


@pytest.mark.parametrize(
    ("html", "links"),
    [
        (f"<body><div id=root><p>{'Words that the server wrote. ' * 20}</div>{BUNDLE}", 0),
        (f"<body><div id=root></div>{BUNDLE}", 12),
        ("<body><p>Hello</p>", 0),
        ("<body>", 0),
        (f"<body><p>A short note.</p>{BUNDLE}", 0),
        ("<body><div id=root></div><script>count()</script>", 0),
    ],
)
def test_a_page_with_something_to_read_does_not(html: str, links: int) -> None:
    assert not needs_rendering(parse_html(html), links)


def test_visible_text_leaves_out_what_nobody_sees() -> None:
    head = "<head><title>t</title><body>"
    html = head + "a<!-- c --><script>s</script><style>q</style><p>b <b>c</b></p><noscript>n</noscript>"
    assert visible_text(parse_html(html)) == "a b c"
    assert len(visible_text(parse_html("<p>" + "word " * 9_000), 100)) == 100
    assert visible_text(parse_html("")) == ""
