"""The ledger `rounds`: opened by seed, closed by rank, marked by undo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.errors import RoundStateError
from recrawl.stored_tables import StoredTables
from recrawl.tables.vocabulary import RoundState

#: States in which a round's fold is part of what readers see.
FOLDED_STATES = (RoundState.CLOSED, RoundState.ABANDONED)
UNFINISHED_STATES = (RoundState.OPEN, RoundState.FOLDING)


@dataclass(frozen=True)
class Round:
    """One row of `rounds`, its columns by name."""

    values: Mapping[str, Any]

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    @property
    def round_id(self) -> str:
        return str(self.values["round_id"])

    @property
    def state(self) -> RoundState:
        return RoundState(self.values["round_state"])

    @property
    def now(self) -> datetime:
        """The frozen time, in UTC."""
        moment: datetime = self.values["now"]
        return moment.astimezone(UTC)

    def version_at_open(self, table: str) -> int:
        """The Delta version of a table that this round reads."""
        try:
            return int(self.values["versions_at_open"][table])
        except KeyError:
            raise RoundStateError(f"Round {self.round_id} did not freeze the table {table}.") from None

    @property
    def form(self) -> RoundForm:
        """The trigger form with which it was opened."""
        return RoundForm.from_mapping(json.loads(self.values["configuration"])["form"])

    def configuration(self, current: Configuration) -> Configuration:
        """The frozen configuration; where the crawl lives, Spark, the proxy and secrets are today's."""
        settings = json.loads(self.values["configuration"])["settings"]
        frozen = Configuration.model_validate(settings)
        todays = {"host_settings": current.fetch.host_settings, "proxy": current.fetch.proxy}
        return frozen.model_copy(
            update={
                "storage": current.storage,
                "spark": current.spark,
                "fetch": frozen.fetch.model_copy(update=todays),
            }
        )

    def with_values(self, **values: Any) -> Round:
        """The row with some columns set anew."""
        return Round({**self.values, **values})


def frozen_configuration(configuration: Configuration, form: RoundForm) -> str:
    """What `rounds.configuration` holds: settings without secrets, and the trigger form."""
    return json.dumps({"settings": configuration.without_secrets(), "form": json.loads(form.to_json())}, sort_keys=True)


def all_rounds(tables: StoredTables) -> list[Round]:
    """Every round, by its number."""
    return sorted((Round(row) for row in tables.rows("rounds")), key=lambda row: int(row["round_number"]))


def find_round(tables: StoredTables, round_id: str) -> Round:
    """The round with this id. Raises RoundStateError when there is none."""
    for row in all_rounds(tables):
        if row.round_id == round_id:
            return row
    raise RoundStateError(f"There is no round {round_id}.", "Run the step `seed` first.")


def save_round(tables: StoredTables, row: Round) -> None:
    """Insert or replace the row of a round."""
    tables.put("rounds", [row.values])
