"""dedupe: who stands for a content, and what each link target receives."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cash_flows import round_flows
from jobs.dedupe import content_seen, run
from jobs.dedupe_near import candidates, shared_bands
from jobs.dedupe_seen import keep_filters, maybe_known
from recrawl.dedupe.bloom import Coverage, UrlFilter
from recrawl.dedupe.representative import (
    Candidate,
    Incumbent,
    choose_representative,
    still_stands,
    still_stands_sql,
)
from recrawl.dedupe.similarity import MAX_CONTENTS_PER_BAND, similarity, similarity_sql
from recrawl.dedupe.url_filters import filter_name
from recrawl.parse.minhash import signature_of
from recrawl.rank.aopic import Ledger, distribute, lambda_parts
from recrawl.tables.vocabulary import UrlState
from recrawl.urls.canonical import RULES_VERSION, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    BEFORE,
    BUCKETS,
    Comparison,
    JobCrawl,
    plain,
    row_of_content,
    row_of_fetch,
    row_of_link,
    row_of_outlinks,
    row_of_page,
    row_of_plan,
    row_of_url,
    write,
)

HOME, COPY, SECOND, SAME, OLD, KNOWN = (
    f"http://a.test/{path}" for path in ("", "copy", "second", "same", "old", "known")
)
NEW, FOLDER, MOVED, SITEMAP = "http://b.test/dir/new", "http://b.test/dir/", "http://c.test/", "http://a.test/map.xml"
CREDIT = 10**12


def test_sql_says_of_incumbents_what_python_says(spark: SparkSession) -> None:
    states, checksums = [None, *map(str, UrlState)], (None, 1, 2)
    rows = [(s, row, captured, 1) for s in states for row in checksums for captured in checksums]
    comparison = Comparison(spark, "state STRING, in_row BIGINT, captured BIGINT, checksum BIGINT", rows)
    comparison.add(
        still_stands_sql(state="state", content_checksum="in_row", captured_checksum="captured", checksum="checksum"),
        lambda state, in_row, captured, checksum: still_stands(
            Incumbent(0, UrlState(state or "new"), in_row, captured), checksum
        ),
    )
    assert comparison.differences() == []


def test_representatives_are_those_of_the_oracle(crawl: JobCrawl) -> None:
    # Given: contents with one to four captures, some of which name themselves by a canonical link; most have a
    # representative in force, which may have been captured (with this content or another), may have kept still,
    # may be dead or unknown.
    draw = random.Random(7)
    pages, contents, urls, expected = [], [], {}, []
    for checksum in range(1, 61):
        candidates = []
        for place in range(draw.randint(1, 4)):
            host = draw.choice(["a.test", "www.a.test:8080", "b.test"])
            url = f"http://{host}/{checksum}/{'x' * draw.randint(0, 2)}{place}"
            domain, named = registered_domain(host), draw.random() < 0.3
            candidates.append(Candidate(url_id(url), url, draw.choice([0, 1, 1, 2]), host, domain, named))
            canonical = url if named else draw.choice([None, "http://a.test/"])
            page = row_of_page(url, checksum, depth=candidates[-1].depth, canonical=canonical)
            pages.append(page | {"registered_domain": domain})
        known = None
        fate = draw.choice(["none", "captured", "still", "still", "elsewhere", "unknown"])
        if fate != "none":
            url = candidates[-1].url if fate == "captured" else f"http://b.test/{checksum}"
            contents.append(row_of_content(checksum, url))
            state = draw.choice([UrlState.FETCHED, UrlState.FETCHED, UrlState.GONE, UrlState.DUPLICATE])
            in_row = draw.choice([checksum, checksum, -1, None])
            captured = {"captured": checksum, "elsewhere": 1_000 + checksum}.get(fate)
            if fate == "elsewhere":
                pages.append(row_of_page(url, captured))
                expected.append((captured, url_id(url), 1))
            if fate == "unknown":
                state, in_row = UrlState.NEW, None
            else:
                urls[url] = row_of_url(url, state=str(state), content_checksum=in_row)
            own = fate == "captured" and candidates[-1].names_itself
            host = "" if fate == "unknown" else host_of(url)
            known = Incumbent(url_id(url), state, in_row, captured, host, own)
        expected.append((checksum, choose_representative(checksum, candidates, known), len(candidates)))
    pages.append(row_of_page("http://a.test/empty"))

    # When
    frame = crawl.frame
    seen = content_seen(frame("pages", pages), frame("contents", contents), frame("urls", list(urls.values())))

    # Then: a row a content; captures without content have none.
    assert plain(seen, "identity_checksum", "representative_url_id", "captures") == sorted(expected, key=repr)


def test_credit_moves_to_the_representative_and_no_further(own_crawl: JobCrawl) -> None:
    # Given: 40 pages of one site, at random redirects, pages of six contents (some named canonical), failures, or
    # none of these; some known as duplicates and redirects of others.
    draw = random.Random(11)
    names = [f"http://a.test/m/{place}" for place in range(40)]
    known, fetches, pages, links, contents, failed = [], [], [], [], {}, set()
    for url in names:
        state = draw.choice(["new", "fetched", "duplicate", "redirect"])
        other = draw.choice(names)
        values = {"canonical_url_id": url_id(other)} if state in ("duplicate", "redirect") and other != url else {}
        checksum = 500 + draw.randint(0, 5)
        known.append(row_of_url(url, state=state, cash=draw.randint(0, CREDIT), content_checksum=checksum, **values))
        contents.setdefault(checksum, url)
        fate = draw.choice(["redirect", "page", "page", "fails", "still"])
        if fate == "fails":
            failed.add(url_id(url))
            fetches.append(row_of_fetch(url, draw.choice(["timeout", "not_found"])))
        if fate == "redirect":
            fetches.append(row_of_fetch(url, "redirect", redirect_url=other))
            links.append(row_of_link(url, other, link_kind="redirect"))
        elif fate == "page":
            fetches.append(row_of_fetch(url))
            canonical = draw.choice([url, other, None])
            page = row_of_page(url, 500 + draw.randint(0, 5), canonical=canonical, depth=1)
            pages.append(page | {"registered_domain": "a.test"})
    round_id = "20261201T030000.000000Z"
    own_crawl.know(urls=known, contents=[row_of_content(checksum, url) for checksum, url in contents.items()])
    step = own_crawl.open(round_id, ledger=Ledger(CREDIT, 0, 0, 40), known=40)
    plan = [row_of_plan(row["url"], depth=1) for row in fetches]
    write(step, fetch_plan=plan, fetches=fetches, pages=pages, links=links)
    frames = [own_crawl.frame(name, rows) for name, rows in (("pages", pages), ("contents", []), ("urls", known))]
    step.write("content_seen", content_seen(*frames).withColumn("round_id", F.lit(round_id)))

    # When
    with round_flows(step) as flows:
        moves = {row["url_id"]: row["target_url_id"] for row in flows.moves.collect()}
        giving = {row["url_id"] for row in flows.giving.collect()}

    # Then: each answered page moves its credit once or hands it out, none does both; a failure moves nothing.
    assert giving.isdisjoint(moves)
    assert giving | moves.keys() == {row["url_id"] for row in fetches} - failed
    captured = {row["url_id"] for row in pages}
    for mover, target in moves.items():
        # What stands for a content hands its credit out: a duplicate's credit is never sent on.
        if mover in captured:
            assert target in giving
        # No two send their credit to each other: the smaller id keeps it.
        if target in moves and moves[target] == mover:
            assert target == mover


def test_targets_are_found_once_with_what_they_received(crawl: JobCrawl) -> None:
    # Given: six known pages with cash, one of them nobody tries; a content that HOME and COPY share.
    rich = {"cash": CREDIT}
    crawl.know(
        urls=[
            row_of_url(HOME, **rich), row_of_url(COPY, **rich), row_of_url(SECOND, state="new", **rich),
            row_of_url(SAME, content_checksum=30, seed_tag="ours", **rich), row_of_url(OLD, **rich), row_of_url(KNOWN),
        ],
        outlinks=[row_of_outlinks(SAME, [KNOWN, HOME], 3)],
    )  # fmt: skip
    step = crawl.open(ledger=Ledger(5 * CREDIT, 0, 0, 6), known=6)
    collision, new_collision = "http://b.test/of-the-same-id", "http://b.test/too"
    write(
        step,
        fetch_plan=[row_of_plan(url, depth=1) for url in (HOME, COPY, SECOND, SAME, OLD)],
        fetches=[
            *[row_of_fetch(url) for url in (HOME, COPY, SECOND, SAME)],
            row_of_fetch(OLD, "redirect", redirect_url=MOVED),
        ],
        pages=[
            row_of_page(HOME, 10, change_verdict="changed", outlink_count=4, kept_outlink_count=2, depth=0),
            row_of_page(COPY, 10, outlink_count=9, kept_outlink_count=0, depth=1),
            row_of_page(SECOND, 20, outlink_count=3, kept_outlink_count=2, depth=2, seed_tag="ours"),
            row_of_page(SAME, 30, change_verdict="unchanged", outlink_count=3, kept_outlink_count=2, depth=1),
        ],
        links=[
            row_of_link(HOME, KNOWN, position=0),
            row_of_link(HOME, NEW, position=1, request_url=f"{NEW}?"),
            row_of_link(HOME, NEW, position=2, link_kind="img", request_url=f"{NEW}?"),
            row_of_link(HOME, "http://a.test/disowned", position=3, followed=False),
            row_of_link(COPY, "http://a.test/only-of-the-copy", position=0),
            row_of_link(SECOND, NEW, position=0, request_url=f"{NEW}?"),
            row_of_link(SECOND, collision, position=1, dst_url_id=url_id(KNOWN)),
            row_of_link(SECOND, FOLDER, position=2, link_kind="ancestor"),
            row_of_link(SECOND, new_collision, position=3, dst_url_id=url_id(NEW)),
            row_of_link(OLD, MOVED, position=0, link_kind="redirect"),
            row_of_link("http://a.test/robots.txt", SITEMAP, position=0, link_kind="sitemap"),
        ],
    )

    # When
    summary = run(step)

    # Then
    parts = lambda_parts(0.1)
    of_home, _ = distribute(CREDIT, 4, 2, parts)
    of_second, _ = distribute(CREDIT, 3, 2, parts)
    of_same, _ = distribute(CREDIT, 3, 2, parts)
    columns = ("url", "is_new", "cash_received", "inlinks", "min_depth", "due_at_once")
    assert plain(step.slice("discovered"), *columns) == [
        (HOME, False, CREDIT + of_same, 0, 1, False),  # all of COPY's, and a link of a page that did not change
        (KNOWN, False, of_home + of_same + of_second, 1, 1, False),  # the colliding link's cash came to it
        (SITEMAP, True, 0, 0, 1, False),  # announced by robots.txt: nobody pays for it
        (FOLDER, True, 0, 0, 3, False),  # an ancestor of a link
        (NEW, True, of_home + of_second, 1, 1, False),  # two links of HOME are one; only first captures count
        (MOVED, True, CREDIT, 0, 1, True),  # a redirect's target that was not reached
    ]
    new = step.slice("discovered").where(f"url_id = {url_id(NEW)}")
    assert plain(new, "host", "registered_domain", "request_url", "seed_tag") == [
        ("b.test", "b.test", f"{NEW}?", "ours")
    ]
    assert plain(step.slice("rejects"), "step", "filter", "dst_url", "reject_reason") == [
        ("dedupe", "id_collision", collision, f"Its 64-bit id is that of {KNOWN}"),
        ("dedupe", "id_collision", new_collision, f"Its 64-bit id is that of {NEW}"),
    ]
    assert plain(step.slice("content_seen"), "identity_checksum", "representative_url_id", "captures") == [
        (10, url_id(HOME), 2), (20, url_id(SECOND), 1), (30, url_id(SAME), 1),
    ]  # fmt: skip
    received = 2 * CREDIT + 2 * of_home + 2 * of_second + 2 * of_same
    assert summary == {"targets": 6, "new_urls": 4, "known_urls": 2, "cash_received": received}


@pytest.mark.parametrize("filters", ["right", "half wrong", "stale", "none, a large table"])
def test_filters_never_change_what_is_new(own_crawl: JobCrawl, filters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: 600 known URLs, filters of them, and a page that links to those and to as many new ones.
    known = [f"http://k{number % 7}.test/{number}" for number in range(600)]
    links = known + [f"http://n{number % 7}.test/{number}" for number in range(600)]
    own_crawl.know(urls=[row_of_url(HOME, cash=CREDIT), *[row_of_url(url) for url in known[:300]]])
    use = {"bloom_filter": "on"}
    if filters.startswith("none"):
        use = {"bloom_filter": "off"}
        monkeypatch.setattr("jobs.known_rows.LARGE_TABLE_ROWS", 600)
    before = own_crawl.open(known=301, number=1, dedupe=use)
    own_crawl.tables.fold("urls", "later", None, own_crawl.frame("urls", [row_of_url(url) for url in known[300:]]))
    if filters != "stale":
        # As rank does after its fold.
        write(before, url_updates=[{**row_of_url(url), "is_new": True} for url in known[300:]])
        assert keep_filters(before, error_rate=0.5 if filters == "half wrong" else None) == BUCKETS
        assert keep_filters(before) == 0
    else:
        stale_version = before.round.version_at_open("urls")
        ids = sorted(url_id(url) for url in [HOME, *known[:300]])
        for bucket in range(BUCKETS):
            old = UrlFilter.build(
                [one for one in ids if one % BUCKETS == bucket], Coverage(bucket, stale_version, RULES_VERSION)
            )
            before.store.write_bytes(filter_name(bucket), old.to_bytes())
    step = own_crawl.open("20261201T030000.000000Z", Ledger(CREDIT, 0, 0, 1), known=601, number=2, dedupe=use)
    write(
        step,
        fetch_plan=[row_of_plan(HOME)],
        fetches=[row_of_fetch(HOME)],
        pages=[row_of_page(HOME, 10, outlink_count=1_200, kept_outlink_count=1_200)],
        links=[row_of_link(HOME, url, position=place) for place, url in enumerate(links)],
    )

    # When
    summary = run(step)

    # Then
    assert (summary["new_urls"], summary["known_urls"]) == (600, 600)
    new = {url for url, is_new in plain(step.slice("discovered"), "url", "is_new") if is_new}
    assert new == set(links) - set(known)
    if filters.startswith("none"):
        return
    left = maybe_known(step, step.slice("discovered")).count()
    assert left >= 600
    assert (left < 620, left == 1_200) == {
        "right": (True, False),
        "half wrong": (False, False),
        "stale": (False, True),
    }[filters]


def test_near_duplicates_join_clusters(own_crawl: JobCrawl) -> None:
    # Given: a stored text with its signature; three near copies of it, two near copies of another text, a text
    # that is like nothing, and the stored one again under another address.
    draw = random.Random(11)
    words = [f"word{number}" for number in range(900)]

    def text_of(words: list[str], edits: int) -> str:
        edited = list(words)
        for _ in range(edits):
            edited[draw.randrange(len(edited))] = f"edit{draw.random()}"
        return " ".join(edited)

    def signed(checksum: int, text: str) -> dict[str, object]:
        signature = signature_of(text)
        assert signature is not None
        url = f"http://a.test/{checksum}"
        return {
            "url_id": url_id(url), "identity_checksum": checksum, "bands": signature.bands,
            "signature": signature.words,
        }  # fmt: skip

    one, other, third = words[:300], words[300:600], words[600:]
    own_crawl.know(
        contents=[{**row_of_content(5, HOME), "cluster_id": 4}],
        signatures=[{"round_id": BEFORE, **signed(5, text_of(one, 0))}],
    )
    step = own_crawl.open()
    texts = {1: text_of(one, 3), 2: text_of(one, 4), 3: text_of(one, 5), 5: text_of(one, 0)}
    texts |= {8: text_of(other, 1), 7: text_of(other, 2), 9: text_of(third, 0)}
    write(
        step,
        fetch_plan=[row_of_plan(HOME)],
        fetches=[row_of_fetch(HOME)],
        pages=[row_of_page(f"http://a.test/{checksum}", checksum) for checksum in [*texts, 10]],
        signatures=[signed(checksum, text) for checksum, text in texts.items()],
        links=[],
    )

    # When
    summary = run(step)

    # Then: those near the stored text are in its cluster; the others' smallest checksum names theirs.
    assert plain(step.slice("content_seen"), "identity_checksum", "cluster_id") == sorted(
        [(1, 4), (2, 4), (3, 4), (5, None), (7, 7), (8, 7), (9, 9), (10, None)], key=repr
    )
    assert summary["over_full_bands"] == 0


def test_a_full_band_is_left_aside_and_counted(spark: SparkSession) -> None:
    own = spark.createDataFrame(
        [(1, [10, 11], [0] * 8)], "identity_checksum LONG, bands ARRAY<LONG>, signature ARRAY<LONG>"
    )
    crowd = [(100 + place, [10, 50 + place]) for place in range(MAX_CONTENTS_PER_BAND)]
    stored = spark.createDataFrame(
        [*crowd, (90, [11, 60]), (90, [11, 60])], "identity_checksum LONG, bands ARRAY<LONG>"
    )
    shared = shared_bands(own, stored).cache()
    assert plain(shared.where("over_full").select("band").distinct(), "band") == [(10,)]
    assert plain(candidates(shared), "identity_checksum", "other", "stored") == [(1, 90, True)]
    shared.unpersist()


def test_sql_says_of_signatures_what_python_says(spark: SparkSession) -> None:
    draw = random.Random(2)
    rows = []
    for share in (0, 1, 3, 8):
        one = [draw.randrange(-(2**63), 2**63) for _ in range(8)]
        other = [word if place >= share else draw.randrange(-(2**63), 2**63) for place, word in enumerate(one)]
        rows.append((one, other))
    comparison = Comparison(spark, "one ARRAY<LONG>, other ARRAY<LONG>", rows)
    comparison.add(similarity_sql("one", "other"), similarity, tolerance=1e-12)
    assert comparison.differences() == []
    assert similarity(rows[0][0], rows[0][0]) == 1.0


def test_two_bodies_with_one_text_are_one_content(crawl: JobCrawl) -> None:
    # Given: a text under two bodies, the second URL standing for it since an earlier round.
    pages = [
        row_of_page(HOME, 1, text_checksum=70, depth=0), row_of_page(COPY, 2, text_checksum=70, depth=1),
        row_of_page(SECOND, 3, depth=1),
    ]  # fmt: skip
    contents = [{**row_of_content(70, KNOWN), "content_checksum": 9}]
    urls = [row_of_url(KNOWN, content_checksum=8, text_checksum=70)]
    seen = content_seen(crawl.frame("pages", pages), crawl.frame("contents", contents), crawl.frame("urls", urls))
    columns = ("identity_checksum", "content_checksum", "representative_url_id", "captures")
    assert plain(seen, *columns) == [(3, 3, url_id(SECOND), 1), (70, 1, url_id(KNOWN), 2)]
