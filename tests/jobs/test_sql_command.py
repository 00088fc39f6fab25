"""`recrawl sql` with Spark: the command as a person calls it, one JVM for each way to look."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.unit.asking.small_crawl import CAPPED, HOME, PRIVATE, SmallCrawl, small_crawl

pytestmark = pytest.mark.timeout(300)

SCRIPT = f"""
SELECT url, state FROM crawl.urls WHERE url_id = url_id('HTTPS://example.org:443/#top');
SELECT nope FROM crawl.urls;
DELETE FROM crawl.skips;
INSERT INTO crawl.skips SELECT * FROM crawl.skips;
WITH s AS (SELECT * FROM crawl.skips) INSERT INTO crawl.skips SELECT * FROM s;
FROM crawl.skips INSERT INTO crawl.skips SELECT *;
DROP TABLE crawl.skips;
SELECT xxhash64('{HOME}') = url_id('{HOME}') AS same, url_id(NULL) AS id;
SELECT count(*) AS skips FROM skips;
CREATE TEMPORARY VIEW deep AS SELECT url FROM crawl.urls WHERE depth > 0;
SELECT url FROM deep ORDER BY url;
SELECT current_timezone() AS zone, last_fetch_at FROM crawl.urls WHERE url = '{HOME}';
"""


def _sql(crawl: SmallCrawl, *arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RECRAWL__SPARK__DRIVER_MEMORY": "600m"}
    command = [sys.executable, "-m", "recrawl.cli.main", "--root", str(crawl.root), "sql", "--csv", *arguments]
    return subprocess.run(command, input=script, capture_output=True, text=True, env=environment, cwd=crawl.root)


def test_statements_are_answered_and_nothing_is_written(tmp_path: Path) -> None:
    crawl = small_crawl(tmp_path)
    done = _sql(crawl, script=SCRIPT)
    faults = [line for line in done.stderr.splitlines() if line.startswith("recrawl: ")]
    assert done.returncode == 2, done.stderr
    assert list(csv.reader(done.stdout.splitlines())) == [
        ["url", "state"], [HOME, "fetched"],
        ["same", "id"], ["true", ""],
        ["skips"], ["1"],
        ["url"], [CAPPED], [PRIVATE],
        ["zone", "last_fetch_at"], ["UTC", "2026-12-02T04:00:00Z"],
    ]  # fmt: skip
    assert len(faults) == 6
    assert "`nope`" in faults[0]
    assert all("reading statements" in fault or "writes" in fault for fault in faults[1:])
    assert DeltaTable(crawl.path("skips")).version() == 0
    # No metastore and no warehouse is left where the person stands.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables"]


def test_at_a_round_the_tables_are_as_it_left_them(tmp_path: Path) -> None:
    crawl = small_crawl(tmp_path)
    done = _sql(crawl, "--at", "1", "SELECT count(*) AS n FROM crawl.urls")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "n\n2\n"
    # The JVM starts in silence; a Java that JAVA_HOME names warns of a module in one line.
    assert [line for line in done.stderr.splitlines() if "incubator modules" not in line] == []
