"""Rounds through the real scheduler, triggered by the REST API: the sample web, then nothing due."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from recrawl.asking.reader import Reader
from recrawl.bootstrap.places import Places
from recrawl.config import load_configuration
from recrawl.orchestration.standalone import down
from recrawl.rounds import round_id_of
from recrawl.sampleweb import SampleWeb
from recrawl.stages import STEP_NAMES
from recrawl.storage import Store
from tests.dags.airflow_api import AirflowApi
from tests.dags.checkouts import checkout, processes_in

pytestmark = pytest.mark.timeout(900)

_CONFIGURATION = """
[storage]
root = {root}
buckets = 4
[dns]
hosts_file = {hosts}
[fetch]
allowed_private_ranges = ["127.0.0.0/8"]
min_delay_seconds = 0
ip_gap_seconds = 0
[parse]
text_extractor = "resiliparse"
"""


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Path]:
    """A checkout with a configuration for the sample web, and its Airflow running."""
    environment = checkout(tmp_path)
    root, hosts = json.dumps(str(tmp_path / "crawl")), json.dumps(str(tmp_path / "hosts"))
    (tmp_path / "recrawl.toml").write_text(_CONFIGURATION.format(root=root, hosts=hosts), encoding="utf-8")
    command = [sys.executable, "-m", "recrawl.orchestration.standalone", "up"]
    up = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield tmp_path
    finally:
        down(Places(tmp_path))
    assert processes_in(tmp_path) == []


def test_a_round_and_an_empty_round_by_the_scheduler_and_the_rest_api(airflow: Path) -> None:
    api = AirflowApi(airflow)
    dag = api.dag()
    assert dag is not None
    with SampleWeb(edition=1) as web:
        web.write_hosts(airflow / "hosts")
        run = api.trigger({"seeds": web.seeds(), "max_urls": 40})
        assert api.wait(run, 600) == "success", api.tasks(run)
    assert api.tasks(run) == dict.fromkeys(STEP_NAMES, "success")
    reader = Reader(Store(load_configuration(airflow / "recrawl.toml", {}).storage))
    first = reader.rounds()[-1]
    assert (first["round_state"], first["planned"]) == ("closed", 40)
    assert first["fetched"] + first["skipped_after_plan"] == 40 and first["outcomes_ok"] > 20
    # The round is the run's, and its operator reads in the log what the step did.
    shown = api.call("GET", f"/api/v2/dags/crawl_round/dagRuns/{run}")
    assert first["round_id"] == _round_id(shown["run_after"])
    assert "fetch: finished" in api.log(run, "fetch")

    run = api.trigger({"only": ["nowhere.sample.test"]})
    assert api.wait(run, 300) == "success", api.tasks(run)
    no_spark = dict.fromkeys(("fetch", "parse", "dedupe"), "skipped")
    assert api.tasks(run) == dict.fromkeys(STEP_NAMES, "success") | no_spark
    empty = reader.rounds()[-1]
    assert (empty["round_number"], empty["round_state"], empty["planned"]) == (2, "closed", 0)
    assert empty["known_before"] + empty["new_urls"] == empty["known_after"]


def _round_id(run_after: str) -> str:
    return round_id_of(datetime.fromisoformat(run_after))
