"""The trigger form: what one run of a round is asked to do.

The same form is filled in by the Airflow UI (JSON, with null for what was left empty), by the
REST API and by `recrawl round`. What it does not say, the configuration says.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from recrawl.errors import UsageError
from recrawl.stages import STEP_NAMES
from recrawl.tables.vocabulary import FrontierMode

_LOOKS_LIKE_PATH = re.compile(r"^(?:/|\./|\.\./|~)")


def _list_of_lines(value: object) -> object:
    """A text area's text as a list: one item a line, without empty lines."""
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return value


Lines = Annotated[list[str], BeforeValidator(_list_of_lines)]


class RoundForm(BaseModel):
    """What one run is asked to do; a field left empty leaves the matter to the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: Lines = Field([], description="Seed lines, or paths of seed files, taken besides the configured ones.")
    only: Lines = Field(
        [], description="Take only these: hosts, domains, URLs, or paths of files with one of them a line."
    )
    force: bool = Field(False, description="Ignore due times (never politeness).")
    max_urls: int | None = Field(None, gt=0, description="URLs that the round plans at most.")
    time_budget_seconds: float | None = Field(None, gt=0, description="Seconds that the fetch step may take.")
    mode: FrontierMode | None = Field(None, description="The order in which due URLs are taken.")
    from_step: str | None = Field(
        None, description="First step to run; the earlier ones must have finished in this round."
    )
    now: datetime | None = Field(
        None, description="The round's frozen time, ISO 8601: what due means; empty: the time of the run."
    )
    plan_only: bool = Field(False, description="Show the plan and its predicted end; fetch nothing.")
    on_open_round: Literal["continue", "abandon"] | None = Field(
        None, description="What to do with a round that is found open."
    )
    round_id: str | None = Field(
        None, description="The round's id, such as 20261130T030000.000000Z; empty: made from the time of the run."
    )

    @field_validator("from_step")
    @classmethod
    def _known_step(cls, value: str | None) -> str | None:
        if value is not None and value not in STEP_NAMES:
            near = difflib.get_close_matches(value, STEP_NAMES, n=1, cutoff=0.4)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(f"{value!r} is none of {', '.join(STEP_NAMES)}.{hint}")
        return value

    @field_validator("now")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    @field_validator("round_id")
    @classmethod
    def _well_formed(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                datetime.strptime(value, "%Y%m%dT%H%M%S.%fZ")
            except ValueError:
                raise ValueError(f"{value!r} is not a round id such as 20261130T030000.000000Z") from None
        return value

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Check a form; nulls and empty texts mean "left empty".

        Raises:
            UsageError: an unknown field (with the nearest known one) or an impossible value.
        """
        given = {name: value for name, value in values.items() if value is not None and value != ""}
        for name in given:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(name, cls.model_fields, n=1, cutoff=0.4)
                raise UsageError(
                    f"The trigger form has no field {name!r}.",
                    f"Did you mean {near[0]}?" if near else f"Its fields: {', '.join(cls.model_fields)}.",
                )
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"])
            message = problem["msg"].removeprefix("Value error, ").rstrip(".?")
            raise UsageError(f"The trigger form's {where} can't be used: {message}.") from None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The form of a JSON object. Raises UsageError."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"The trigger form is not JSON: {error}.") from None
        if not isinstance(values, dict):
            raise UsageError("The trigger form must be a JSON object.")
        return cls.from_mapping(values)

    def to_json(self) -> str:
        """The form as JSON, without what was left empty; `from_json` gives it back."""
        return self.model_dump_json(exclude_defaults=True)

    def overrides(self) -> dict[str, dict[str, Any]]:
        """Section → key → value of the configuration that this run sets (`load_configuration`)."""
        named: tuple[tuple[str, str, Any], ...] = (
            ("frontier", "max_urls", self.max_urls),
            ("frontier", "mode", self.mode and self.mode.value),
            ("fetch", "time_budget_seconds", self.time_budget_seconds),
            ("round", "on_open_round", self.on_open_round),
        )
        values: dict[str, dict[str, Any]] = {}
        for section, key, value in named:
            if value is not None:
                values.setdefault(section, {})[key] = value
        return values

    def seed_files_and_lines(self) -> tuple[list[Path], list[str]]:
        """`seeds` as files and seed lines. Raises UsageError for a path without a file."""
        return split_files("seeds", self.seeds)

    def only_files_and_names(self) -> tuple[list[Path], list[str]]:
        """`only` as files and hosts, domains or URLs. Raises UsageError for a path without a file."""
        return split_files("only", self.only)


def split_files(field: str, items: list[str]) -> tuple[list[Path], list[str]]:
    """Tell the items that name a file from those that are meant themselves.

    An item with `://` is never a file; one that names an existing file is one; one that begins
    as a path (`/`, `./`, `../`, `~`) must be one.

    Raises:
        UsageError: an item that begins as a path and names no file.
    """
    files: list[Path] = []
    plain: list[str] = []
    for item in items:
        if "://" in item:
            plain.append(item)
            continue
        path = Path(item).expanduser()
        if path.is_file():
            files.append(path)
        elif _LOOKS_LIKE_PATH.match(item):
            raise UsageError(f"{field}: there is no file {path}.")
        else:
            plain.append(item)
    return files, plain
