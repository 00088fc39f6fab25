"""What is known of a URL, and why it was or was not fetched."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from recrawl.asking.explain import Explanation, explain
from recrawl.asking.reader import Reader
from recrawl.config.load import load_configuration
from recrawl.inbox import add_event, new_event
from recrawl.tables.vocabulary import OverrideKind
from tests.unit.asking.small_crawl import CAPPED, FIRST, GONE, HOME, NOW, PRIVATE, SECOND, SmallCrawl


def _explain(crawl: SmallCrawl, url: str) -> Explanation:
    configuration = load_configuration(None, {}, {"storage": {"root": str(crawl.root)}})
    return explain(url, Reader(crawl.store), crawl.store, configuration, NOW)


def test_a_fetched_page(crawl: SmallCrawl) -> None:
    found = _explain(crawl, HOME)
    assert found.verdicts[0].startswith(f"It was tried in round {SECOND}")
    assert "(ok)" in found.verdicts[0]
    assert found.verdicts[1].startswith("It is due")
    assert [row["round_id"] for row in found.tries] == [SECOND, FIRST]
    assert [row["url"] for row in found.scope] == [HOME]
    assert found.rejection is None


def test_a_url_in_another_spelling_shows_the_rules(crawl: SmallCrawl) -> None:
    found = _explain(crawl, "EXAMPLE.org/capped?utm_source=x#top")
    assert found.canonical == CAPPED
    assert [row["rule"] for row in found.rules] == ["parse", "drop_fragment", "drop_param"]
    assert found.rules[-1]["result"] == CAPPED


def test_a_skipped_url_and_who_links_to_it(crawl: SmallCrawl) -> None:
    found = _explain(crawl, CAPPED)
    assert found.verdicts[0] == (
        f"It was not fetched in round {SECOND} (capacity): Less valuable than what filled the round."
    )
    assert [row["src_url"] for row in found.linked_from] == [HOME]


def test_a_url_that_robots_txt_denies(crawl: SmallCrawl) -> None:
    found = _explain(crawl, PRIVATE)
    assert found.robots is not None
    assert found.robots["allowed"] is False
    assert "robots.txt disallows it to recrawl by the line 'Disallow: /private/'." in found.verdicts


def test_a_link_that_was_turned_away(crawl: SmallCrawl) -> None:
    assert "turned away in round" in _explain(crawl, GONE).verdicts[0]


def test_a_url_outside_of_everything(crawl: SmallCrawl) -> None:
    found = _explain(crawl, "https://elsewhere.example/file.zip")
    assert found.known is None
    assert "It is outside of every seed's scope." in found.verdicts
    assert any("The filter extension turns it away" in sentence for sentence in found.verdicts)


@pytest.mark.parametrize("url", ["mailto:ann@example.org", "javascript:void(0)", "http://", "ht tp://x"])
def test_what_is_no_url_of_ours(crawl: SmallCrawl, url: str) -> None:
    found = _explain(crawl, url)
    assert found.canonical is None
    assert found.verdicts[0].startswith("It is never fetched")


@pytest.mark.parametrize(
    ("kind", "subject", "value", "said"),
    [
        (OverrideKind.BLOCK, "example.org", None, "ann blocked example.org: why not"),
        (OverrideKind.BLOCK, "org", None, "ann blocked org: why not"),
        (OverrideKind.EXCLUDE, "https://example.org/cap", None, "ann excluded https://example.org/cap: why not"),
        (OverrideKind.QUOTA, "example.org", "5", "ann set a quota of 5 URLs a round for example.org."),
    ],
)
def test_decisions_that_concern_it(crawl: SmallCrawl, kind: OverrideKind, subject: str, value: str, said: str) -> None:
    add_event(crawl.store, new_event(NOW - timedelta(hours=1), "ann", kind, subject, "why not", value))
    add_event(crawl.store, new_event(NOW - timedelta(hours=1), "ann", kind, "ample.org", "another host", value))
    found = _explain(crawl, CAPPED)
    assert said in found.verdicts
    assert len(found.decisions) == 1


def test_a_page_that_is_not_due_and_its_representative(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path)
    main = crawl.url("https://example.org/main", state="fetched", last_fetch_at=NOW)
    twin = crawl.url(
        "https://example.org/twin", state="duplicate", last_fetch_at=NOW, next_fetch_at=NOW + timedelta(days=1),
        canonical_url_id=main["url_id"],
    )  # fmt: skip
    crawl.write("urls", main, twin)
    crawl.write("rounds", crawl.round(1, FIRST, "closed"))
    found = _explain(crawl, "https://example.org/twin")
    assert "Its representative is https://example.org/main." in found.verdicts
    assert "It is not due before 2026-12-03 04:00:00 UTC." in found.verdicts


def test_an_empty_crawl(tmp_path: Path) -> None:
    assert _explain(SmallCrawl(tmp_path), HOME).verdicts == ["This crawl has no round yet."]
