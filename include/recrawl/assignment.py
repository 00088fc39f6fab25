"""Which round a run works on, and from which step: decided once, by `seed`.

A run that finds another round open continues that one (rule R7); its later steps, each a process
of its own, read the decision here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from recrawl.errors import RoundStateError
from recrawl.rounds import steps_folder
from recrawl.stages import STEP_NAMES
from recrawl.storage import Store


@dataclass(frozen=True)
class Assignment:
    """What a run works on.

    Attributes:
        run_id: the run's own round id.
        round_id: the round it works on; another one where an open round is continued.
        first_step: steps before it have nothing to do in this run.
        abandon: fetch nothing more and close the round as abandoned.
        plan_only: plan, show the plan, take the round back.
        started_at: when the run began; its time budget counts from here.
    """

    run_id: str
    round_id: str
    first_step: str
    abandon: bool
    plan_only: bool
    started_at: datetime

    def covers(self, step: str) -> bool:
        """Whether the step has something to do in this run."""
        return STEP_NAMES.index(step) >= STEP_NAMES.index(self.first_step)


def save_assignment(store: Store, assignment: Assignment) -> None:
    """Store the decision of a run."""
    values = asdict(assignment) | {"started_at": assignment.started_at.isoformat()}
    store.write_bytes(_name(assignment.run_id), json.dumps(values, indent=1).encode())


def load_assignment(store: Store, run_id: str) -> Assignment | None:
    """The decision of a run; None when its `seed` has not decided yet."""
    data = store.read_bytes(_name(run_id))
    if data is None:
        return None
    values = json.loads(data)
    return Assignment(**values | {"started_at": datetime.fromisoformat(values["started_at"])})


def require_assignment(store: Store, run_id: str) -> Assignment:
    """The decision of a run. Raises RoundStateError when `seed` has not run."""
    assignment = load_assignment(store, run_id)
    if assignment is None:
        raise RoundStateError(f"The run {run_id} has no round yet.", "Run the step `seed` first.")
    return assignment


def save_step_summary(store: Store, round_id: str, step: str, summary: dict[str, object]) -> None:
    """Leave a finished step's figures; their presence tells that it finished."""
    store.write_bytes(f"{steps_folder(round_id)}/{step}.json", json.dumps(summary, indent=1, default=str).encode())


def step_summary(store: Store, round_id: str, step: str) -> dict[str, object] | None:
    """The figures of a finished step; None when it has not finished."""
    data = store.read_bytes(f"{steps_folder(round_id)}/{step}.json")
    return None if data is None else dict(json.loads(data))


def first_unfinished_step(store: Store, round_id: str) -> str:
    """The first step without a summary; the last step when all have one."""
    for step in STEP_NAMES:
        if step_summary(store, round_id, step) is None:
            return step
    return STEP_NAMES[-1]


def _name(run_id: str) -> str:
    return f"control/runs/{run_id}.json"
