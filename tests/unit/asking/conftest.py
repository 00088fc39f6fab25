"""A small crawl on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.asking.small_crawl import SmallCrawl, small_crawl


@pytest.fixture
def crawl(tmp_path: Path) -> SmallCrawl:
    """Two closed rounds and an open one."""
    return small_crawl(tmp_path / "crawl")
