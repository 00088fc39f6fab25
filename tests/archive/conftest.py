"""The misbehaving web, archived once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.archive.hostile import Archive, a_web, visit
from tests.web import MisbehavingWeb


@pytest.fixture(scope="session")
def hostile_web() -> Iterator[MisbehavingWeb]:
    """The web, running."""
    with a_web() as web:
        yield web


@pytest.fixture(scope="session")
def first_visit(hostile_web: MisbehavingWeb, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Everything, asked for the first time."""
    return visit(hostile_web, tmp_path_factory.mktemp("archive") / "first")


@pytest.fixture(scope="session")
def second_visit(
    hostile_web: MisbehavingWeb, first_visit: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Archive:
    """Some of it, asked for again."""
    return visit(hostile_web, tmp_path_factory.mktemp("archive") / "second", first_visit)
