"""The six steps of a round, in order: the one declaration.

The Airflow tasks, the job files, the documentation and the tests derive from this list.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step of a round.

    Attributes:
        name: the Airflow task, `jobs/<name>.py`, the package `recrawl.<name>`.
        purpose: one sentence for operators.
        retries: how often Airflow tries again before the round stands still.
    """

    name: str
    purpose: str
    retries: int


STEPS: tuple[Step, ...] = (
    Step("seed", "Takes the lease, opens the round and canonicalises the seeds.", 2),
    Step("frontier", "Picks what is due by crawl value and packs hosts into fetch partitions.", 2),
    Step("fetch", "Fetches politely, one Spark task a partition, into WARC files.", 3),
    Step("parse", "Reads the captures back: charset, links, directives, title, text.", 2),
    Step("dedupe", "Content seen? URL seen? One row a link target with the cash it received.", 2),
    Step("rank", "AOPIC, change rates, due times; checks the laws, folds, closes the round.", 3),
)

STEP_NAMES: tuple[str, ...] = tuple(step.name for step in STEPS)


def steps_from(first: str) -> tuple[Step, ...]:
    """The steps from `first` on. Raises ValueError for a name that is no step."""
    return STEPS[STEP_NAMES.index(first) :]
