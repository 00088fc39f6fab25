"""A crawl of the documentation web by the command, as a person runs it, and what must hold of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.config.load import PROJECT_FOLDER
from recrawl.config.model import Storage
from recrawl.storage import Store
from recrawl.warc.reader import StoredCapture, read_capture
from tests.real.documentation import DocumentationWeb

_MAX_BODY_BYTES = 5 << 20
_CONFIGURATION = """\
[agent]
contact = "tests@example.org"

[storage]
root = "{root}"

[dns]
hosts_file = "{hosts}"

[fetch]
allowed_private_ranges = ["127.0.0.0/8"]
min_delay_seconds = 0
ip_gap_seconds = 0

[spark]
driver_memory = "2g"
"""


@dataclass(frozen=True)
class Fetched:
    """The final try of a planned URL, with its page where it was parsed."""

    url: str
    outcome: str
    status: int | None
    title: str | None
    text: str | None
    language: str | None
    warc_file: str | None
    warc_offset: int | None


class DocumentationCrawl:
    """One crawl: its folder, its rounds, its tables.

    Args:
        web: the web, running.
        folder: for the storage root, the configuration and the seeds.
    """

    def __init__(self, web: DocumentationWeb, folder: Path) -> None:
        self.web = web
        self.store = Store(Storage(root=str(folder / "crawl")))
        self._folder = folder
        hosts = folder / "hosts"
        web.write_hosts(hosts)
        text = _CONFIGURATION.format(root=self.store.root, hosts=hosts)
        (folder / "recrawl.toml").write_text(text, encoding="utf-8")

    @property
    def reader(self) -> Reader:
        """The tables, read by an engine that is not Spark."""
        return Reader(self.store)

    def run_round(self, seeds: list[str], *arguments: str) -> dict[str, Any]:
        """Run a round; the steps' summaries.

        Raises:
            AssertionError: the command failed; the text is the end of what it said.
        """
        seed_file = self._folder / "seeds.txt"
        seed_file.write_text("".join(f"{seed}\n" for seed in seeds), encoding="utf-8")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RECRAWL__")},
            "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)]),
            "RECRAWL_CONFIG": str(self._folder / "recrawl.toml"),
        }
        command = [sys.executable, "-m", "recrawl.cli.main", "round", "--json", "--seeds", str(seed_file), *arguments]
        done = subprocess.run(command, env=environment, cwd=self._folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr[-4000:]}\n{done.stdout[-1000:]}"
        summaries: dict[str, Any] = json.loads(done.stdout)
        return summaries

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        found: list[dict[str, Any]] = self.reader.query(sql).to_pylist()
        return found

    def broken_laws(self) -> list[str]:
        """What does not add up in the closing rows of the rounds; [] when every law of rule R5 holds."""
        broken = []
        for row in self.reader.rounds():
            laws = {
                "closed": row["round_state"] == "closed",
                "planned = fetched + skipped": row["planned"] == row["fetched"] + row["skipped_after_plan"],
                "known before + new = known after": row["known_before"] + row["new_urls"] == row["known_after"],
                "cash before + credit = cash after": row["cash_before"] + row["credit_granted_in_round"]
                == row["cash_after"],
                "cash = all credit": row["cash_after"] == row["total_credit"],
                "outcomes add up": row["outcomes_ok"] + row["outcomes_unchanged"] + row["outcomes_failed"]
                <= row["fetched"],
            }
            broken += [f"round {row['round_number']}: not {law}" for law, holds in laws.items() if not holds]
        return broken

    def lost_urls(self) -> list[str]:
        """Planned URLs without exactly one final row or skip, over all rounds."""
        planned = Counter(
            (row["round_id"], row["url_id"]) for row in self.rows("SELECT round_id, url_id FROM fetch_plan")
        )
        final = "SELECT round_id, planned_url_id AS url_id FROM fetches WHERE final"
        given_back = "SELECT round_id, url_id FROM skips WHERE step = 'fetch'"
        settled = Counter((row["round_id"], row["url_id"]) for row in (*self.rows(final), *self.rows(given_back)))
        return [str(key) for key in planned.keys() | settled.keys() if (planned[key], settled[key]) != (1, 1)]

    def fetched(self) -> list[Fetched]:
        """The final tries of all rounds."""
        rows = self.rows(
            "SELECT f.url, f.outcome, f.status, p.title, p.text, p.language, f.warc_file, f.warc_offset "
            "FROM fetches f LEFT JOIN pages p ON p.round_id = f.round_id AND p.url_id = f.url_id WHERE f.final"
        )
        return [Fetched(**row) for row in rows]

    def warc_paths(self) -> list[Path]:
        """The published WARC files."""
        names = [row["warc_file"] for row in self.rows("SELECT warc_file FROM warc_files ORDER BY warc_file")]
        return [self.store.local_path(name) for name in names]

    def captures(self, fetched: list[Fetched]) -> Iterator[tuple[Fetched, StoredCapture]]:
        """What the WARC files hold for these tries."""
        for item in fetched:
            if item.warc_file is not None and item.warc_offset is not None:
                with self.store.local_path(item.warc_file).open("rb") as file:
                    yield item, read_capture(file, item.warc_offset, _MAX_BODY_BYTES)

    def wrong_bodies(self, fetched: list[Fetched]) -> list[str]:
        """Captures of pages (status 200) whose body is not the file that nginx served."""
        wrong = []
        for item, capture in self.captures([item for item in fetched if item.status == 200]):
            site, path = self.web.page(item.url)
            path = path / site.start if path.is_dir() else path
            if capture.record_type == "response" and capture.body != path.read_bytes():
                wrong.append(item.url)
        return wrong
