"""rank's alerts: what web monitors found, once a content."""

from __future__ import annotations

from jobs.rank_alerts import find_alerts
from tests.jobs.crawl import BEFORE, ROUND, JobCrawl, plain, row_of_page, write


def test_what_a_monitor_found_is_one_alert_a_content(own_crawl: JobCrawl) -> None:
    at = "http://a.test/{}".format
    pages = [
        row_of_page(at("one"), 5, watched=["recall: toaster", "recall: div.notice", "price: div.price"]),
        row_of_page(at("copy"), 5, watched=["recall: toaster", "recall: div.notice", "price: div.price"]),
        row_of_page(at("other"), 6, watched=["recall: toaster: the best"]),
        row_of_page(at("seen-before"), 7, watched=["recall: toaster"], content_round_id=BEFORE),
        row_of_page(at("silent"), 8),
    ]
    step = own_crawl.open(parse={"monitors": [{"name": "recall", "terms": ["toaster"]}]})
    write(step, pages=pages)
    found = find_alerts(step).where("alert_kind = 'watched_page'")
    assert plain(found, "alert_id", "subject", "measured_value") == [
        (f"{ROUND}/watched_page/price {at('copy')}", f"price {at('copy')}", 1.0),
        (f"{ROUND}/watched_page/recall {at('copy')}", f"recall {at('copy')}", 2.0),
        (f"{ROUND}/watched_page/recall {at('other')}", f"recall {at('other')}", 1.0),
    ]
    assert ("The monitor recall found div.notice, toaster on http://a.test/copy.",) in plain(found, "message")
    assert ("The monitor recall found toaster: the best on http://a.test/other.",) in plain(found, "message")
