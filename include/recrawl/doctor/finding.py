"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a thing was found."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What was found.

    Attributes:
        name: what was looked at.
        level: ok; warning: a round runs, but not well; problem: a round can't run.
        found: what was seen, one sentence.
        mend: what to do about it; empty where nothing is to be done.
    """

    name: str
    level: Level
    found: str
    mend: str = ""
