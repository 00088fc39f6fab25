"""`python -m recrawl.firsttry [--seeds FILE]`: what `make round` runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from recrawl.bootstrap.places import Places
from recrawl.errors import EnvironmentFaultError, RecrawlError, RoundStateError
from recrawl.firsttry.report import print_report
from recrawl.firsttry.trial import Trial, prepared
from recrawl.firsttry.watch import ABOUT_SECONDS, TaskLogs, Watcher, run_and_watch
from recrawl.orchestration.environment import (
    CONNECTION_VARIABLE,
    airflow_settings,
    process_environment,
    spark_connection,
)
from recrawl.orchestration.single_run import DAG_ID
from recrawl.orchestration.standalone import running

_AGAIN = "Run the same command again: it goes on where this one stopped."


def main() -> int:
    """One watched round; the exit status."""
    parser = argparse.ArgumentParser(prog="make round", description="One crawl round through Airflow, watched.")
    parser.add_argument("--seeds", help="a seed file: a URL a line; without it the sample web is crawled")
    arguments = parser.parse_args()
    places = Places()
    # Also when it is ended by a signal, the sample web and the round's processes end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        airflow = running(places)
        if airflow is not None:
            raise EnvironmentFaultError(
                f"Airflow runs at {airflow.address} and would take the round away from this command.",
                "Trigger crawl_round there, or `make down` first.",
            )
        with prepared(places, arguments.seeds) as trial:
            _round(places, trial)
    except RecrawlError as error:
        print(f"\n{error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print(f"\nStopped. {_AGAIN}", file=sys.stderr)
        return 130
    return 0


def _round(places: Places, trial: Trial) -> None:
    print(f"Crawling {trial.title}.")
    print(
        f"One round through Airflow's DAG {DAG_ID}: about {sum(ABOUT_SECONDS.values()) // 60 + 1} minutes.", flush=True
    )
    started_seconds = time.monotonic()
    settings = airflow_settings(places)
    environment = {
        CONNECTION_VARIABLE: spark_connection(trial.configuration),
        **process_environment(os.environ, settings, places),
        **trial.environment,
    }
    home = Path(settings["AIRFLOW_HOME"])
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    log_file = places.state / "logs" / f"round-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
    watcher = Watcher(trial.configuration, TaskLogs(home / "logs", DAG_ID))
    if not run_and_watch(trial.form, environment, log_file, watcher):
        raise RoundStateError(
            f"The round did not finish: {watcher.fault or 'Airflow could not run it.'}",
            f"{_AGAIN}\nThe whole log: {log_file}",
        )
    print_report(trial.configuration, trial.command)
    print(f"\nNext:\n  {trial.command} status\n  make up        Airflow's UI, with this run in it")
    print(f"\n{trial.advice}\nThe whole took {time.monotonic() - started_seconds:.0f} s; its log: {log_file}")


if __name__ == "__main__":
    sys.exit(main())
