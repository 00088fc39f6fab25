"""A crawl of the misbehaving web by whole rounds, in this process or in one that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from recrawl.asking.reader import Reader
from recrawl.config import load_configuration
from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES
from recrawl.tables.columns import COLUMNS
from recrawl.tables.vocabulary import UrlState
from tests.web import MisbehavingWeb

HOSTS = ("alpha.test", "beta.test", "gamma.test")
ROUND_IDS = tuple(f"20261130T0{hour}0000.000000Z" for hour in range(1, 9))

#: Columns of state tables whose values follow from the moment of a request, not from its answer.
_TIMED = {
    "last_fetch_at", "last_success_at", "last_change_at", "next_fetch_at", "last_access_at", "robots_expires_at",
    "change_rate_per_day", "change_events", "observed_days", "last_warc_file", "last_warc_record_id", "last_warc_date",
    "adaptive_delay_seconds", "ips", "connect_ms", "first_byte_ms",
}  # fmt: skip


@dataclass(frozen=True)
class Crawl:
    """A crawl in a folder of a test."""

    folder: Path
    web: MisbehavingWeb

    @property
    def root(self) -> Path:
        return self.folder / "crawl"

    @property
    def store(self) -> Store:
        return Store(self.configuration().storage)

    @property
    def reader(self) -> Reader:
        return Reader(self.store)

    def configuration(self, form: RoundForm | None = None, **sections: dict[str, Any]) -> Configuration:
        """Politeness off, everything small; `sections` and the form are stronger."""
        overrides: dict[str, dict[str, Any]] = {
            "storage": {"root": str(self.root), "buckets": 4},
            "fetch": {
                "allowed_private_ranges": ["127.0.0.0/8"], "min_delay_seconds": 0, "ip_gap_seconds": 0,
                "read_timeout_seconds": 20, "total_timeout_seconds": 40, "max_backoff_seconds": 0.2, "slots": 2,
            },
            "dns": {"hosts_file": str(self.web.hosts_file(self.folder / "hosts"))},
            "parse": {"text_extractor": "resiliparse"},
        }  # fmt: skip
        for section, keys in [*sections.items(), *(form.overrides() if form else {}).items()]:
            overrides[section] = overrides.get(section, {}) | keys
        return load_configuration(environment={}, overrides=overrides)

    def form(self, **fields: Any) -> RoundForm:
        """A trigger form whose seeds are the front pages of all hosts."""
        seeds = [f"{self.web.url(host, '/')} scope=host tags={host.partition('.')[0]}" for host in HOSTS]
        return RoundForm.from_mapping({"seeds": seeds, "force": True} | fields)

    def rows(self, query: str, at: str | None = None) -> list[dict[str, Any]]:
        """The rows of a query by the engine that is not Spark."""
        table: pa.Table = self.reader.query(query, at)
        return table.to_pylist()

    def slice(self, table: str, round_id: str) -> list[str]:
        """A round's rows of an event table without volatile columns, as sorted text."""
        kept = [c.name for c in TABLES[table].columns if not COLUMNS[c.name].volatile and c.name not in _TIMED]
        return _texts(self.rows(f"SELECT {', '.join(kept)} FROM {table} WHERE round_id = '{round_id}'"))

    def state(self, table: str, at: str | None = None) -> list[str]:
        """A state table without columns that follow from a request's moment, as sorted text."""
        kept = [c.name for c in TABLES[table].columns if c.name not in _TIMED]
        return _texts(self.rows(f"SELECT {', '.join(kept)} FROM {table}", at))


def _texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def audit_of_cash(crawl: Crawl) -> tuple[int, int]:
    """Both sides of AOPIC's law over every row of `urls`: (sum(c) + N X - sum(x) + L, K)."""
    last = crawl.rows("SELECT * FROM rounds WHERE round_state = 'closed' ORDER BY round_number DESC LIMIT 1")[0]
    dead = ", ".join(f"'{state}'" for state in (UrlState.GONE, UrlState.DENIED, UrlState.TRAP, UrlState.EXCLUDED))
    rows = crawl.rows(f"SELECT cash, lambda_index, state IN ({dead}) AS dead FROM urls")
    alive = [row for row in rows if not row["dead"]]
    assert all(row["cash"] == 0 for row in rows if row["dead"])
    assert len(alive) == last["payable_urls"]
    held = sum(row["cash"] + last["lambda_index_after"] - row["lambda_index"] for row in alive)
    return held + int(Decimal(last["lambda_cash"])), int(Decimal(last["total_credit"]))


def start_round(crawl: Crawl, run_id: str, form: RoundForm, **sections: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A round in a process group of its own, which can be killed whole; `sections` as of `Crawl.configuration`."""
    program = (
        "import sys; from recrawl.config.form import RoundForm; from recrawl.config.model import Configuration; "
        "from recrawl.spark.application import run_round; "
        "run_round(Configuration.model_validate_json(sys.argv[1]), RoundForm.from_json(sys.argv[2]), sys.argv[3])"
    )
    configuration = crawl.configuration(form, **sections).model_dump_json()
    with (crawl.folder / "round.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, configuration, form.to_json(), run_id],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
