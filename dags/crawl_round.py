"""# crawl_round: one round of the crawl

A round picks what is due, fetches it politely into WARC files, parses it, deduplicates it, and
recomputes importance and due times for the next round:

`seed → frontier → fetch → parse → dedupe → rank`

Each step is one Spark application. Steps talk through stored tables only, so any of them can be
cleared and run again: it writes the same rows. The lasting tables change in `rank` alone, at the end.

## Trigger it

**Trigger** opens the form; every field may stay empty, then the configuration decides. Often used:

* `seeds`: seed lines or paths of seed files, besides the configured ones;
* `only`: take only these hosts, domains, URLs;
* `force`: take what is not due yet as well; politeness and robots.txt always hold;
* `max_urls`, `time_budget_seconds`: a smaller round;
* `plan_only`: show the plan and its predicted end in the log of `frontier`, fetch nothing.

By REST: POST `/api/v2/dags/crawl_round/dagRuns` with `{"logical_date": null, "conf": {"max_urls": 1000}}`.
The schedule is `round.schedule` of the configuration; without one, the DAG runs when triggered.

## Watch it

The log of `fetch` tells every 10 s what is planned, fetched, waiting and backing off, and the time
left. `recrawl status` says the same in a terminal. `recrawl stop` drains a running fetch: the round
goes on with `parse`, and the rest of the plan becomes skips.

## When a step fails

It is tried again by itself. After the last try the round stays open: clear the task, or trigger
again (the run continues the open round from its first unfinished step), or trigger with
`on_open_round = abandon` (captures are kept and folded, the rest is given up).

## Backfill

A crawl can't fetch the past, so a backfill run fails and says so. `recrawl sql --at ROUND` shows the
tables as a past round left them.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG

from recrawl.config import load_configuration
from recrawl.orchestration.alerts import explain_failure
from recrawl.orchestration.round_form import round_params
from recrawl.orchestration.rounds import MACROS
from recrawl.orchestration.stage_task import stage_tasks

configuration = load_configuration()

with DAG(
    dag_id="crawl_round",
    description="Crawls one round: seed, frontier, fetch, parse, dedupe, rank.",
    doc_md=__doc__,
    schedule=configuration.round.schedule or None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=round_params(),
    user_defined_macros=MACROS,
    default_args={"owner": "recrawl", "on_failure_callback": explain_failure},
    tags=["recrawl"],
):
    stage_tasks(configuration)
