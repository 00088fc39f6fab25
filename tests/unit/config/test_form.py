"""The trigger form: what a person may ask of one run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recrawl.config.form import RoundForm
from recrawl.config.load import load_configuration
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import FrontierMode


def test_nulls_mean_left_empty() -> None:
    empty = dict.fromkeys(RoundForm.model_fields)
    assert RoundForm.from_mapping(empty) == RoundForm()
    assert RoundForm.from_mapping({"mode": "", "seeds": ""}) == RoundForm()


def test_json_and_back() -> None:
    form = RoundForm.from_mapping(
        {
            "seeds": ["https://example.org/ scope=host"],
            "only": "example.org\n\n  example.com  \n",
            "force": True,
            "max_urls": 20,
            "mode": "breadth-first",
            "now": "2026-11-30T03:00:00+01:00",
            "round_id": "20261130T030000.000000Z",
        }
    )
    assert form.only == ["example.org", "example.com"]
    assert form.now == datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
    assert form.mode is FrontierMode.BREADTH_FIRST
    assert RoundForm.from_json(form.to_json()) == form
    assert RoundForm().to_json() == "{}"


def test_a_time_without_zone_is_utc() -> None:
    assert RoundForm.from_mapping({"now": "2026-11-30T03:00"}).now == datetime(2026, 11, 30, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"max_url": 3}, "Did you mean max_urls?"),
        ({"from_step": "fech"}, "Did you mean fetch"),
        ({"from_step": "x"}, "is none of seed, frontier"),
        ({"max_urls": 0}, "max_urls can't be used"),
        ({"time_budget_seconds": "soon"}, "time_budget_seconds can't be used"),
        ({"mode": "worst-first"}, "mode can't be used"),
        ({"on_open_round": "ignore"}, "on_open_round can't be used"),
        ({"round_id": "20261332T030000.000000Z"}, "is not a round id"),
        ({"now": "yesterday"}, "now can't be used"),
    ],
)
def test_what_can_not_be_used_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        RoundForm.from_mapping(values)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "3", "{"])
def test_a_form_is_a_json_object(text: str) -> None:
    with pytest.raises(UsageError):
        RoundForm.from_json(text)


def test_what_the_form_sets_is_stronger_than_the_configuration() -> None:
    form = RoundForm.from_mapping({"max_urls": 7, "mode": "depth-first", "time_budget_seconds": 60})
    configuration = load_configuration(
        file=None, environment={"RECRAWL__FRONTIER__MAX_URLS": "9"}, overrides=form.overrides()
    )
    assert configuration.frontier.max_urls == 7
    assert configuration.frontier.mode is FrontierMode.DEPTH_FIRST
    assert configuration.fetch.time_budget_seconds == 60
    assert RoundForm().overrides() == {}


def test_files_are_told_from_seeds(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("https://example.org/\n", encoding="utf-8")
    form = RoundForm(seeds=[str(file), "https://example.com/ scope=page", "example.net"])
    assert form.seed_files_and_lines() == ([file], ["https://example.com/ scope=page", "example.net"])
    with pytest.raises(UsageError, match="there is no file"):
        RoundForm(only=[str(tmp_path / "absent")]).only_files_and_names()
