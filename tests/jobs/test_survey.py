"""survey: what equal contents say of hosts and parameters, and how it comes to hold."""

from __future__ import annotations

import json

import pytest

from jobs import rekey, seed
from jobs.rank_hosts import host_changes
from jobs.survey import survey
from recrawl.cli.main import main
from recrawl.config.form import RoundForm
from recrawl.inbox import add_event, new_event, read_events
from recrawl.lease import acquire
from recrawl.round_ledger import find_round, save_round
from recrawl.spark.application import Application
from recrawl.tables.catalog import TABLES
from recrawl.tables.vocabulary import OverrideKind, RoundState
from tests.jobs.crawl import DAY, NOW, ROUND, JobCrawl, Row, plain, row_of_host, row_of_url, settings

NEXT = "20261201T030000.000000Z"

pytestmark = pytest.mark.timeout(300)


def _pages() -> list[Row]:
    """What was captured of ten hosts; of some it proves something."""
    shown: list[tuple[str, int]] = []
    for page in range(12):
        shown += [(f"http://{host}.test/{page}", 1_000 + page) for host in ("www.a", "a")]
        # Too few pages, one content for all, and hosts whose pages agree in half of the cases.
        shown += [(f"http://{host}.test/{page}", 2_000 + page) for host in ("c", "d") if page < 5]
        shown += [(f"http://{host}.test/{page}", 3_000) for host in ("e", "f")]
        shown += [(f"http://{host}.test/{page}", 8_000 + page) for host in ("k", "l")]
        shown += [(f"http://k.test/x{page}", 8_100 + page), (f"http://l.test/x{page}", 8_200 + page)]
    for page in range(6):
        shown += [(f"http://g.test/{name}{page}?Q", 4_000 + page) for name in ("Page", "page")]
        shown += [(f"http://h.test/{page}/{name}", 5_000 + page) for name in ("", "index.php")]
        for place, ref in enumerate("xy"):
            for shop in ("", "shop."):
                shown.append((f"http://{shop}i.test/p?id={page}&ref={ref}", 6_000 + page + (100 if shop else 0)))
            shown.append((f"http://j.test/p?id={page}&lang={ref}", 7_000 + page + (place if page == 3 else 0) * 50))
    return [row_of_url(url, content_checksum=checksum) for url, checksum in shown]


def test_what_a_survey_finds_comes_to_hold(own_crawl: JobCrawl, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [row_of_host(f"{name}.test", url_count=24, index_names=[]) for name in ("a", "www.a", "g", "h")]
    hosts[0]["url_count"] = 30
    pages = _pages()
    own_crawl.know(urls=pages, hosts=hosts)
    configuration = settings(own_crawl.root)
    application = Application(configuration)
    opening = seed.opening_row(application, RoundForm(), ROUND, [], NOW, configuration)
    save_round(
        application.stored,
        opening.with_values(
            round_state=str(RoundState.CLOSED), known_after=len(pages), cash_after=0, lambda_cash=0,
            lambda_index_after=0, payable_urls=len(pages), total_credit=0,
            versions_at_close=application.stored.versions(name for name in TABLES if name != "rounds"),
        ),
    )  # fmt: skip
    # Given: somebody has taken one of the survey's rules back.
    add_event(application.store, new_event(NOW - 2 * DAY, "survey", OverrideKind.IGNORE_CASE, "g.test", "found"))
    add_event(application.store, new_event(NOW - DAY, "ann", OverrideKind.LIFT, "g.test", "no", "ignore-case"))

    # When
    found = survey(configuration)

    # Then
    assert [(p["override_kind"], p["subject"], p["value"], p["agreeing"], p["compared"]) for p in found] == [
        ("alias", "www.a.test", "a.test", 12, 12),
        ("drop-parameter", "i.test?ref", None, 12, 12),
        ("ignore-case", "g.test", None, 6, 6),
        ("index-page", "h.test/index.php", None, 6, 6),
    ]
    assert found[2]["example_url"] == "http://g.test/Page0?Q"
    assert found[2]["other_example_url"] == "http://g.test/page0?Q"
    decided = [(event.kind, event.subject, event.who) for event in read_events(application.store)][2:]
    assert sorted(decided) == [("alias", "www.a.test", "survey"), ("index-page", "h.test/index.php", "survey")]

    # When: a person accepts the parameter. Then: the next round is frozen with all that holds.
    root = ["--root", str(own_crawl.root)]
    assert main([*root, "accept", "other.test?ref"]) == 2
    assert main([*root, "accept", "i.test?ref", "--who", "ann"]) == 0
    assert "It holds from the next round on" in capsys.readouterr().out
    assert main([*root, "--json", "explain", "http://shop.i.test/p?id=9&ref=z"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["canonical"] == "http://shop.i.test/p?id=9"
    assert [row["subject"] for row in explained["proposals"]] == ["i.test?ref"]
    assert main([*root, "proposals"]) == 0
    assert "i.test?ref" in capsys.readouterr().out
    with acquire(application.store, NEXT, "tests", 600, application.clock) as lease:
        seed.run(application, NEXT, RoundForm(now=application.clock.now(), seeds=["http://www.a.test/new"]), lease)
    assert "new URL rules of sites: alias www.a.test a.test" in capsys.readouterr().out
    row = find_round(application.stored, NEXT)
    assert row.configuration(configuration).urls.site_rules == [
        "alias www.a.test a.test", "drop-parameter i.test?ref", "index-page h.test/index.php",
    ]  # fmt: skip
    assert plain(application.tables.read("seeds"), "url", "host") == [("http://a.test/new", "a.test")]

    # Then: rank records on `hosts` what it does not say yet, though nothing was fetched.
    marked = host_changes(own_crawl.step(NEXT))
    assert plain(marked, "host", "mirror_of", "index_names", "url_count") == [
        ("h.test", None, ["index.php"], 24), ("www.a.test", "a.test", [], 24),
    ]  # fmt: skip

    # When: the known URLs follow. Then: the alias has none, and the parameter names nothing.
    own_crawl.lease.release()
    save_round(application.stored, row.with_values(round_state=str(RoundState.UNDONE)))
    closed = rekey.rekey(configuration)
    assert (closed["known_after"], closed["merged_urls"]) == (len(pages) - 12 - 6 - 12, 30)
    counted = application.tables.read("urls").where("host LIKE '%.a.test' OR host LIKE '%i.test'").groupBy("host")
    assert plain(counted.count(), "host", "count") == [("i.test", 6), ("shop.i.test", 6)]
