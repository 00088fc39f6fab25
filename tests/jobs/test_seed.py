"""seed: opens a round from seed files, the trigger form and the inbox; keeps the root set and decisions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.seed import run
from recrawl.config.form import RoundForm
from recrawl.errors import RoundStateError, UsageError
from recrawl.inbox import add_event, add_seed_lines, new_event
from recrawl.round_ledger import all_rounds, find_round, save_round
from recrawl.rounds import INBOX_FOLDER
from recrawl.spark.application import Application
from recrawl.tables.vocabulary import OverrideKind, RoundState
from recrawl.urls.keys import url_id
from tests.jobs.crawl import DAY, NOW, ROUND, JobCrawl, plain, settings

NEXT = "20261201T030000.000000Z"


def test_a_round_opens_from_files_form_and_inbox(
    own_crawl: JobCrawl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given: a file with a bad line and a repetition, a form, a person's seed, decisions, a spoilt inbox file.
    listed = tmp_path / "seeds.txt"
    listed.write_text(
        "# the list\nhttp://kept.test/ scope=page tags=a,b credit=2.5 priority=3\nhttp://kept.test:80/#top\n"
        "http://bad.test/ scope=planet\n",
        encoding="utf-8",
    )
    application = Application(settings(own_crawl.root, seed={"files": [str(listed)]}))
    store = application.store
    with pytest.raises(RoundStateError, match="There is no open round to continue from parse"):
        run(application, ROUND, RoundForm(from_step="parse"), own_crawl.lease)
    missing = Application(settings(own_crawl.root, seed={"files": [str(tmp_path / "none.txt")]}))
    with pytest.raises(UsageError, match=r"none\.txt can't be read"):
        run(missing, ROUND, RoundForm(), own_crawl.lease)
    add_seed_lines(store, ["http://new.test/"], "ann", NOW - DAY)
    for at, kind, subject, value in [
        (3, OverrideKind.BLOCK, "lifted.test", None),
        (2, OverrideKind.QUOTA, "kept.test", "5"),
        (2, OverrideKind.LIFT, "lifted.test", "block"),
        (1, OverrideKind.QUOTA, "kept.test", "9"),
        (-1, OverrideKind.BLOCK, "tomorrow.test", None),
    ]:
        add_event(store, new_event(NOW - timedelta(hours=at), "ben", kind, subject, "because", value))
    store.write_bytes(f"{INBOX_FOLDER}/spoilt.json", b"{")

    # When
    summary = run(application, ROUND, RoundForm(seeds=["gone.test", "http://new.test/"]), own_crawl.lease)

    # Then
    assert summary == {"round_id": ROUND, "round_number": 1, "seeds_read": 3, "seeds_rejected": 3}
    seeds = application.tables.read("seeds")
    assert plain(seeds, "url", "scope", "credit_granted", "tags", "manual_priority", "added_by", "added_at") == [
        ("http://kept.test/", "page", 2_500_000_000_000, ["a", "b"], 3.0, str(listed), NOW),
        ("http://new.test/", "domain", 10**12, [], 1.0, "trigger form", NOW),
        ("https://gone.test/", "domain", 10**12, [], 1.0, "trigger form", NOW),
    ]
    assert plain(seeds.where("url_id <> xxhash64(url)"), "url") == []
    rejects = plain(application.tables.read_slice("rejects", ROUND), "step", "filter", "dst_url", "reject_reason")
    assert [row[:3] for row in rejects] == [
        ("seed", "bad_seed", "http://bad.test/ scope=planet"),
        ("seed", "duplicate_seed", "http://kept.test:80/#top"),
        ("seed", "duplicate_seed", "http://new.test/"),
    ]
    assert f"{listed} line 4: scope=planet is none of" in rejects[0][3]
    assert rejects[2][3] == "ann line 1: also in trigger form"
    assert plain(application.tables.read("overrides"), "subject", "override_kind", "value", "who", "since") == [
        ("kept.test", "quota", "9", "ben", NOW - timedelta(hours=1))
    ]
    assert "spoilt.json is no inbox event" in capsys.readouterr().out
    row = find_round(application.stored, ROUND)
    assert (row.state, row.now, row["round_number"], row["generation"]) == (RoundState.OPEN, NOW, 1, 0)
    assert (row["known_before"], row["cash_before"], row["lambda_index_after"]) == (0, 0, 0)
    assert row["versions_at_open"] == {
        "urls": 0, "hosts": 0, "contents": 0, "outlinks": 0, "seeds": 1, "overrides": 1,
    }  # fmt: skip
    assert row.form.seeds == ["gone.test", "http://new.test/"]
    assert "s3_secret_key" not in json.loads(row["configuration"])["settings"]["storage"]

    # When the run is repeated, or another one finds the round open: the round is continued, nothing is read.
    version = application.stored.version("seeds")
    assert run(application, ROUND, RoundForm(), own_crawl.lease) == {"round_id": ROUND, "continues": False}
    assert run(application, NEXT, RoundForm(), own_crawl.lease) == {"round_id": ROUND, "continues": True}
    with pytest.raises(RoundStateError, match="a plan can only be shown between rounds"):
        run(application, NEXT, RoundForm(plan_only=True), own_crawl.lease)
    assert application.stored.version("seeds") == version

    # When it is closed, the next one carries its ledger on, with the same seeds unread into the table.
    figures = {"known_after": 7, "cash_after": 70, "lambda_cash": 5, "payable_urls": 6, "total_credit": 70}
    save_round(application.stored, row.with_values(round_state="closed", lambda_index_after=11, **figures))
    assert run(application, ROUND, RoundForm(), own_crawl.lease) == {"round_id": ROUND, "round_state": "closed"}
    moment = datetime(2026, 12, 5, tzinfo=UTC)
    summary = run(application, NEXT, RoundForm(seeds=["gone.test", "http://new.test/"], now=moment), own_crawl.lease)
    assert summary["round_number"] == 2
    opened = find_round(application.stored, NEXT)
    assert opened.now == moment
    carried = ("known_before", "cash_before", "lambda_cash", "lambda_index_after", "payable_urls", "total_credit")
    assert [int(opened[name]) for name in carried] == [7, 70, 5, 11, 6, 70]
    assert opened["versions_at_open"]["seeds"] == version
    # What the person decided for tomorrow holds now.
    assert plain(application.tables.read("overrides"), "subject", "override_kind") == [
        ("kept.test", "quota"), ("tomorrow.test", "block"),
    ]  # fmt: skip
    assert [r.round_id for r in all_rounds(application.stored)] == [ROUND, NEXT]
    assert plain(seeds.where(f"url_id = {url_id('http://kept.test/')}"), "added_at") == [(NOW,)]
