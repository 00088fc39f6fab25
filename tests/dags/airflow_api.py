"""A client of Airflow's REST API, as an operator's script would have it."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from recrawl.bootstrap.places import Places
from recrawl.orchestration.standalone import passwords, running

_END = ("success", "failed")


class AirflowApi:
    """Logged in as admin.

    Args:
        folder: the checkout whose `make up` runs.
    """

    def __init__(self, folder: Path) -> None:
        places = Places(folder)
        found = running(places)
        assert found is not None, "Airflow does not run"
        self.address = found.address
        self.password = passwords(places)["admin"]
        self._token = ""
        self._token = str(
            self.call("POST", "/auth/token", {"username": "admin", "password": self.password})["access_token"]
        )

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Ask the API; gives its JSON."""
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.address}{path}", data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def dag(self, patience_seconds: float = 60.0) -> dict[str, Any] | None:
        """crawl_round as the API shows it; None when it is not there in time."""
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline:
            dags = self.call("GET", "/api/v2/dags?dag_id_pattern=crawl_round")["dags"]
            if dags:
                return dict(dags[0])
            time.sleep(1)
        return None

    def trigger(self, conf: dict[str, Any]) -> str:
        """Trigger crawl_round; gives the id of the run."""
        body = {"logical_date": None, "conf": conf}
        return str(self.call("POST", "/api/v2/dags/crawl_round/dagRuns", body)["dag_run_id"])

    def wait(self, run: str, patience_seconds: float) -> str:
        """The state in which a run ended."""
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline:
            state = str(self.call("GET", f"/api/v2/dags/crawl_round/dagRuns/{run}")["state"])
            if state in _END:
                return state
            time.sleep(1)
        return "still running"

    def tasks(self, run: str) -> dict[str, str]:
        """The state of each task of a run."""
        found = self.call("GET", f"/api/v2/dags/crawl_round/dagRuns/{run}/taskInstances")["task_instances"]
        return {task["task_id"]: str(task["state"]) for task in found}

    def log(self, run: str, task: str, attempt: int = 1) -> str:
        """What a task said, as the UI shows it."""
        path = f"/api/v2/dags/crawl_round/dagRuns/{run}/taskInstances/{task}/logs/{attempt}"
        return "\n".join(str(line.get("event", "")) for line in self.call("GET", path)["content"])
