"""frontier: what is due, what is kept out, what fits, and where it goes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.frontier import judge, plan_rows, run, select
from jobs.frontier_inputs import PeoplesDecisions, candidates, host_terms, only_predicate
from jobs.frontier_packing import assign_partitions
from recrawl.config.form import RoundForm
from recrawl.errors import UsageError
from recrawl.frontier import packing, queues, quota, value
from recrawl.frontier.zones import zone_of
from recrawl.rank.aopic import Ledger
from recrawl.spark.application import Step
from recrawl.tables.vocabulary import FrontierMode, FrontQueue
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    DAY,
    NOW,
    ROUND,
    Comparison,
    JobCrawl,
    plain,
    row_of_host,
    row_of_seed,
    row_of_url,
    settings,
)

CREDIT = 10**12
SEED = queues.round_seed(ROUND)

# -- The SQL of each formula against its Python.


def test_values_and_queues_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(3)
    rows: list[tuple[Any, ...]] = [
        (
            draw.choice([0.0, 10 ** draw.uniform(-6, 6)]),
            10 ** draw.uniform(-4, 3),
            draw.choice([None, 0.0, -1.0, 10 ** draw.uniform(-9, 3)]),
            draw.choice([None, float("nan"), draw.uniform(-1, 5)]),
            draw.choice([None, 2.0]),
            draw.randrange(-(2**63), 2**63),
            draw.choice([None, 0.0, 1.0, 2.0, 0.5, 1e-300, 1e300, 10 ** draw.uniform(-20, 20)]),
            draw.choice([0, 1, 100, 10_000]),
            draw.choice([None, 0.0, 0.5, 2.0, 30.0, 100_000.0]),
            draw.choice([None, 0, 50, 20_000]),
            draw.choice([None, float("nan"), draw.uniform(-1, 2)]),
        )
        for _ in range(200)
    ]
    schema = "i DOUBLE, r DOUBLE, a DOUBLE, q DOUBLE, p DOUBLE, id BIGINT, v DOUBLE, quota INT, delay DOUBLE, taken INT"
    schema += ", listed DOUBLE"
    comparison = Comparison(spark, schema, rows)
    comparison.add(
        value.crawl_value_sql(
            importance="i", rate="r", age_days="a", quality="q", priority="p", listed_priority="listed"
        ),
        lambda i, r, a, q, p, *rest: value.crawl_value(i, r, a, q, 1.0 if p is None else p, rest[-1]),
        1e-6,  # ages of microseconds: the gain is a difference of nearly equal numbers
    )
    comparison.add(
        value.crawl_value_sql(importance="i", rate="r", age_days="a"),
        lambda i, r, a, *rest: value.crawl_value(i, r, a),
        1e-6,
    )
    for seed in (SEED, -(2**63)):
        comparison.add(queues.tie_hash_sql("id", seed), lambda *row, seed=seed: queues.tie_hash(row[5], seed))
    comparison.add(queues.band_sql("v"), lambda *row: queues.band(row[6] or 0.0))
    comparison.add(
        quota.host_quota_sql("quota", 10_800, "delay", "taken"),
        lambda *row: quota.host_quota(row[7], 10_800, row[8] or 0.0, row[9] or 0),
    )
    comparison.add(f"xxhash64('{ROUND}')", lambda *row: SEED)
    assert comparison.differences() == []


@pytest.mark.parametrize("capacity", [3, 200])
def test_the_url_sets_of_capacity_and_guarantees_are_those_of_the_oracle(crawl: JobCrawl, capacity: int) -> None:
    # Given: several hundred URLs over all queues, their values full of ties and of nothing.
    draw = random.Random(capacity)
    values = (0.0, 1.0, 3.3, None)
    due = [
        queues.Due(
            url_id(f"http://a.test/{number}"),
            draw.choice(list(FrontQueue)),
            10 ** draw.uniform(-3, 3) if (shared := draw.choice(values)) is None else shared,
        )
        for number in range(400)
    ]
    schema = "url_id BIGINT, queue STRING, crawl_value DOUBLE, skip_reason STRING"
    rows = [(row.url_id, str(row.queue), row.value, None) for row in due] + [(1, "manual", 9e9, "quota")]
    judged = crawl.spark.createDataFrame(rows, schema).selectExpr(
        "*", "crawl_value AS selection_value", f"{queues.band_sql('crawl_value')} AS band"
    )
    configuration = settings(crawl.root, frontier={"max_urls": capacity})
    weights = {entry.name: entry.weight for entry in configuration.frontier.queues}

    # When
    taken, cutoff = select(judged, configuration, ROUND)

    # Then
    expected = queues.take(due, capacity, weights, SEED)
    assert {row["url_id"] for row in taken.select("url_id").collect()} == {row.url_id for row in expected}
    assert cutoff == min(row.value for row in expected)


# -- What is due and what is kept out.

QUOTA = [f"http://quota.test/{n}" for n in range(5)]
DOMAIN = [f"http://{name}.wide.test/" for name in ("a", "b", "c", "d")]
LATER, OVERDUE, TRAP = "http://late.test/", "http://late.test/overdue", "http://trap.test/"
EXCLUDED = "http://quota.test/private/x"
BLOCKED = ["http://www.corp.test/", "http://corp.test/", "http://corp.test:8080/", "http://www.corp.test:8080/"]
RECOVERING = "http://recovering.test/"
FAVOURED, FAVOURITE, PLAIN = "http://dear.test/", "http://dear.test/best", "http://plain.test/"
FAILING, NEW, NEW_SEED, OWN_SEED = (
    "http://fail.test/", "http://new.test/", "http://seed.test/", "http://own-seed.test/",
)  # fmt: skip

SKIPPED = {
    **dict.fromkeys(BLOCKED, "blocked"), RECOVERING: "blocked", EXCLUDED: "excluded",
    **dict.fromkeys([*QUOTA[2:], DOMAIN[3]], "quota"),
}  # fmt: skip
TAKEN = {*QUOTA[:2], *DOMAIN[:3], OVERDUE, FAVOURED, FAVOURITE, PLAIN, FAILING, NEW, NEW_SEED, OWN_SEED}


@pytest.fixture(scope="module")
def decided(crawl: JobCrawl) -> JobCrawl:
    """A crawl with something to decide about every URL."""
    seen = {"last_success_at": NOW - 8 * DAY, "next_fetch_at": NOW - DAY, "fetch_count": 1}
    urls = [row_of_url(url, cash=CREDIT * (9 - n), **seen) for n, url in enumerate([*QUOTA, *DOMAIN])]
    urls += [row_of_url(url, cash=CREDIT, **seen) for url in (*BLOCKED, RECOVERING, FAVOURED, FAVOURITE, PLAIN)]
    urls += [
        row_of_url(LATER, next_fetch_at=NOW + DAY, cash=CREDIT, last_success_at=NOW - DAY),
        row_of_url(OVERDUE, next_fetch_at=NOW, last_success_at=NOW - 9 * DAY),
        row_of_url(TRAP, state="trap"),
        row_of_url(EXCLUDED, cash=99 * CREDIT, **seen),
        row_of_url(FAILING, state="failing", failure_streak=1, next_fetch_at=NOW - DAY),
        row_of_url(NEW, state="new", depth=3),
    ]

    def decision(subject: str, kind: str, value: str | None = None) -> dict[str, Any]:
        return {"subject": subject, "override_kind": kind, "value": value}

    crawl.know(
        urls=urls,
        hosts=[
            row_of_host(host, quota_urls_per_round=None)
            for host in sorted({url.split("/")[2] for url in (*TAKEN, *SKIPPED, LATER, TRAP)} - {"recovering.test"})
        ]
        + [row_of_host("recovering.test", blocked_until=NOW + DAY)],
        seeds=[
            row_of_seed(NEW_SEED, credit_granted=CREDIT),
            row_of_seed(OWN_SEED, credit_granted=CREDIT, manual_priority=5.0),
        ],
        overrides=[
            decision("quota.test", "quota", "2"),
            decision("corp.test", "block"),
            decision("http://quota.test/private/", "exclude"),
            decision("dear.test", "priority", "4"),
            decision("http://dear.test/b", "priority", "3"),
        ],
    )
    return crawl


def _judged(step: Step) -> dict[str, Any]:
    decisions = PeoplesDecisions.read(step)
    due = candidates(step, decisions)
    only = only_predicate(step, step.configuration)
    rows = judge(due if only is None else due.where(only), host_terms(step, due, decisions), step)
    return {row["url"]: row for row in rows.collect()}


def test_due_urls_are_judged_by_quotas_and_peoples_decisions(decided: JobCrawl) -> None:
    step = decided.open(ledger=Ledger(100 * CREDIT, 0, 0, 20), frontier={"domain_quota": 3})
    rows = _judged(step)
    assert {url: row["skip_reason"] for url, row in rows.items()} == {**SKIPPED, **dict.fromkeys(TAKEN)}
    # Where quotas bite, the best are kept, and what is excluded takes no place of the quota.
    assert [rows[url]["place_in_host"] for url in QUOTA] == [1, 2, 3, 4, 5]
    assert {url: rows[url]["queue"] for url in (OVERDUE, FAILING, NEW, NEW_SEED, OWN_SEED)} == {
        OVERDUE: "refresh", FAILING: "retry", NEW: "discovery", NEW_SEED: "discovery", OWN_SEED: "manual",
    }  # fmt: skip
    # A priority of a host and one of a URL prefix multiply.
    assert rows[FAVOURED]["crawl_value"] == pytest.approx(4 * rows[PLAIN]["crawl_value"])
    assert rows[FAVOURITE]["crawl_value"] == pytest.approx(12 * rows[PLAIN]["crawl_value"])
    gain = value.crawl_value(1.0, 1 / 7, 8.0)
    assert rows[PLAIN]["crawl_value"] == pytest.approx(gain)
    assert rows[PLAIN]["effective_cash"] == CREDIT
    assert rows[OWN_SEED]["crawl_value"] == pytest.approx(5 * rows[NEW_SEED]["crawl_value"])


def test_only_and_force_choose_what_is_looked_at(decided: JobCrawl, tmp_path: Any) -> None:
    listed = tmp_path / "only.txt"
    listed.write_text("# asked for\nhttp://new.test:80/#top\n", encoding="utf-8")
    form = RoundForm(only=["late.test", "corp.test", "http://quota.test/0", str(listed)], force=True)
    step = decided.open("20261130T040000.000000Z", number=2, form=form, ledger=Ledger(100 * CREDIT, 0, 0, 20))
    rows = _judged(step)
    # What is not due comes too, what is blocked stays blocked, and what a filter decided stays away.
    assert {url: row["skip_reason"] for url, row in rows.items()} == {
        **dict.fromkeys(BLOCKED, "blocked"), **dict.fromkeys((LATER, OVERDUE, QUOTA[0], NEW)),
    }  # fmt: skip
    assert {row["queue"] for row in rows.values()} == {"manual"}
    broken = decided.open("20261130T050000.000000Z", number=3, form=RoundForm(only=["nonsense://["]))
    with pytest.raises(UsageError, match="is not a URL"):
        only_predicate(broken, broken.configuration)


def test_a_round_that_is_full_says_what_did_not_fit(decided: JobCrawl, capsys: pytest.CaptureFixture[str]) -> None:
    step = decided.open(
        "20261130T060000.000000Z", number=4, ledger=Ledger(100 * CREDIT, 0, 0, 20),
        frontier={"domain_quota": 3, "max_urls": 4},
    )  # fmt: skip
    # When
    summary = run(step)
    # Then: every due URL is planned or a skip; as many of those that did not fit are listed as the round holds.
    plan, skips = plain(step.slice("fetch_plan"), "url"), plain(step.slice("skips"), "url_id", "step", "skip_reason")
    planned = {url for (url,) in plan}
    assert len(plan) == len(planned) == 4
    assert planned < TAKEN
    assert {OWN_SEED, FAVOURITE} < planned
    reasons = {id: reason for id, _, reason in skips}
    assert {step_name for _, step_name, _ in skips} == {"frontier"}
    assert {id: reason for id, reason in reasons.items() if reason != "capacity"} == {
        url_id(url): reason for url, reason in SKIPPED.items()
    }
    missed = {id for id, reason in reasons.items() if reason == "capacity"}
    assert 1 <= len(missed) <= 4
    assert missed < {url_id(url) for url in TAKEN - planned}
    assert summary["due"] == len(TAKEN) + len(SKIPPED)
    assert summary["planned"] == 4
    assert summary["richest_cash"] == 99 * CREDIT
    [(least,)] = plain(step.slice("fetch_plan").agg(F.min("crawl_value").alias("least")), "least")
    assert summary["value_cutoff"] == least
    assert f"{len(TAKEN) + len(SKIPPED)} due, 4 planned" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mode", "order"),
    [
        (FrontierMode.BEST_FIRST, ["deep", "middle", "top"]),
        (FrontierMode.BREADTH_FIRST, ["top", "middle", "deep"]),
        (FrontierMode.DEPTH_FIRST, ["deep", "middle", "top"]),
    ],
)
def test_the_mode_orders_a_host(crawl: JobCrawl, mode: FrontierMode, order: list[str]) -> None:
    values = {"deep": (4, 9.0), "middle": (2, 5.0), "top": (0, 1.0)}
    if mode is FrontierMode.DEPTH_FIRST:
        values |= {"deep": (4, 0.5)}
    rows = [(url_id(name), f"http://a.test/{name}", None, "a.test", *values[name], 2.5, NOW) for name in values]
    rows.append((1, "http://b.test/a/Sitemap-1.xml.gz", "http://b.test/x", "b.test", 0, 1.0, 0.0, None))
    schema = (
        "url_id BIGINT, url STRING, request_url STRING, host STRING, depth INT, crawl_value DOUBLE, "
        "delay_seconds DOUBLE, last_access_at TIMESTAMP"
    )
    configuration = settings(crawl.root, frontier={"mode": mode}, fetch={"max_body_bytes": 10, "max_sitemap_bytes": 20})
    plan = plan_rows(crawl.spark.createDataFrame(rows, schema), configuration, ROUND)
    columns = ("host", "rank_in_host", "url", "request_url", "max_bytes", "earliest_at")
    assert plain(plan, *columns) == [
        *[
            ("a.test", place, f"http://a.test/{name}", f"http://a.test/{name}", 10, NOW + 2.5 * DAY / 86_400)
            for place, name in enumerate(order, start=1)
        ],
        ("b.test", 1, "http://b.test/a/Sitemap-1.xml.gz", "http://b.test/x", 20, None),
    ]


# -- Packing.


def _hosts_to_pack() -> list[tuple[int, str, str, float, list[str]]]:
    draw = random.Random(2)
    rows = []
    for number in range(160):
        domain = f"d{number}.test"
        for sub in range(draw.choice([1, 1, 3])):
            # A chain of shared addresses, a crowded one, and addresses of their own.
            ips = [f"192.0.2.{number}"] if number >= 4 else [f"chain{number}", f"chain{number + 1}"]
            if number >= 100:
                ips.append("crowded")
            rows += [(len(rows) + n, f"h{sub}.{domain}", domain, 1.0, ips) for n in range(draw.choice([1, 2, 30]))]
    return rows


@pytest.mark.parametrize("ip_gap_seconds", [0.0, 0.5])
def test_what_must_stay_together_shares_a_partition(crawl: JobCrawl, ip_gap_seconds: float) -> None:
    hosts = _hosts_to_pack()
    addresses = {domain: ips for _, _, domain, _, ips in hosts}
    groups = packing.groups_by_address(addresses) if ip_gap_seconds else {domain: domain for domain in addresses}
    number = 5 if ip_gap_seconds else 6
    step = crawl.open(
        f"20261130T1{number}0000.000000Z", number=number,
        fetch={"slots": 4, "ip_gap_seconds": ip_gap_seconds}, frontier={"task_requests_per_second": 10.0},
    )  # fmt: skip
    schema = "url_id BIGINT, host STRING, registered_domain STRING, delay_seconds DOUBLE, ips ARRAY<STRING>"

    # When
    packed, forecasts = assign_partitions(step, step.spark.createDataFrame(hosts, schema))

    # Then: no URL is lost, a group has one partition, and partitions take about equally long.
    rows = packed.select("url_id", "registered_domain", "fetch_partition", "predicted_seconds").collect()
    assert sorted(row["url_id"] for row in rows) == [row[0] for row in hosts]
    partitions_of: dict[str, set[int]] = {}
    for row in rows:
        partitions_of.setdefault(groups[row["registered_domain"]], set()).add(row["fetch_partition"])
    assert all(len(partitions) == 1 for partitions in partitions_of.values())
    if ip_gap_seconds:
        assert {groups[f"d{number}.test"] for number in range(4)} == {"d0.test"}
    requests = Counter(row["fetch_partition"] for row in rows)
    assert {f.partition: f.requests for f in forecasts} == dict(requests)
    assert sum(f.groups for f in forecasts) == len(set(groups.values()))
    assert set(requests) == {0, 1, 2, 3}
    assert max(requests.values()) - min(requests.values()) < 0.1 * len(rows)
    assert {row["predicted_seconds"] for row in rows} == {f.seconds for f in forecasts}


def test_partitions_never_mix_zones(crawl: JobCrawl) -> None:
    zones = {"jp": "asia", "d3.jp": "home"}
    step = crawl.open(
        "20261130T170000.000000Z", number=7, fetch={"slots": 4, "ip_gap_seconds": 0.5}, frontier={"zones": zones}
    )
    domains = [f"d{number}.{'jp' if number % 2 else 'test'}" for number in range(40)]
    hosts = [(n, f"h{n}.{domains[n % 40]}", domains[n % 40], 1.0, [f"192.0.2.{n % 40}"]) for n in range(400)]
    # One address of two zones: its domains stay together all the same.
    hosts[4] = (*hosts[4][:4], ["192.0.2.5"])
    schema = "url_id BIGINT, host STRING, registered_domain STRING, delay_seconds DOUBLE, ips ARRAY<STRING>"
    packed, forecasts = assign_partitions(step, step.spark.createDataFrame(hosts, schema))
    rows = packed.select("url_id", "registered_domain", "fetch_partition").collect()
    assert sorted(row["url_id"] for row in rows) == list(range(400))
    found: dict[int, set[str]] = {}
    for row in rows:
        if row["registered_domain"] not in ("d4.test", "d5.jp"):
            found.setdefault(row["fetch_partition"], set()).add(zone_of(row["registered_domain"], zones))
    assert set(found) == {0, 1, 2, 3} == {f.partition for f in forecasts}
    assert all(len(zones_there) == 1 for zones_there in found.values())
    together = {row["fetch_partition"] for row in rows if row["registered_domain"] in ("d4.test", "d5.jp")}
    assert len(together) == 1


def test_running_sums_in_sql_place_as_the_packing_says(spark: SparkSession) -> None:
    draw = random.Random(4)
    pace = packing.TaskPace(37.0, 3e6)
    rows = [(f"d{n}.test", draw.randrange(1, 300), draw.randrange(10**8)) for n in range(300)]
    works = {group: packing.work_micros(requests, size, pace) for group, requests, size in rows}
    threshold = packing.big_from_micros(sum(works.values()), 5)
    big = [(group, work) for group, work in works.items() if work >= threshold]
    small = sum(work for work in works.values() if work < threshold)
    packed = packing.pack(big, small, 5)
    spark.createDataFrame(rows, "g STRING, n INT, b BIGINT").selectExpr(
        "g", f"{packing.work_micros_sql('n', 'b', pace)} AS w"
    ).createOrReplaceTempView("packing_groups")
    offsets = f"""
        SELECT slice, sum(x) OVER (ORDER BY slice ROWS UNBOUNDED PRECEDING) - x AS below
        FROM (SELECT {packing.slice_sql("g")} AS slice, sum(w) AS x FROM small GROUP BY 1)"""
    found = spark.sql(f"""
        WITH small AS (SELECT * FROM packing_groups WHERE w < {threshold}), offsets AS ({offsets})
        SELECT g, w, run, {packing.partition_sql("run", packed)} AS p
        FROM (SELECT g, w, {packing.running_sum_sql("w", "g", "below")} AS run
              FROM small JOIN offsets ON slice = {packing.slice_sql("small.g")})""").collect()
    # The sums laid end to end leave no gap, and each stands in the partition that Python names.
    assert {row["g"]: row["w"] for row in found} == {g: w for g, w in works.items() if w < threshold}
    end = 0
    for row in sorted(found, key=lambda row: row["run"]):
        assert row["run"] == end
        assert row["p"] == packed.partition_at(row["run"])
        end += row["w"]
    assert end == small
