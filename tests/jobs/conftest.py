"""One Spark session and one set of empty tables for this folder; each module fills a copy."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.jobs.crawl import NOW, JobCrawl


@pytest.fixture(scope="session")
def empty_crawl(tmp_path_factory: pytest.TempPathFactory) -> JobCrawl:
    """Every table, without rows. Nobody writes here."""
    crawl = JobCrawl(tmp_path_factory.mktemp("jobs") / "empty")
    assert crawl.stored.create_missing(NOW)
    return crawl


@pytest.fixture(scope="session")
def spark(empty_crawl: JobCrawl) -> SparkSession:
    """The session."""
    return empty_crawl.spark


@pytest.fixture(scope="module", autouse=True)
def what_a_module_kept_goes(empty_crawl: JobCrawl) -> Iterator[None]:
    """Plans and rows that tests persisted, or still name, would fill the JVM that all modules share."""
    yield
    empty_crawl.application.forget_kept()
    gc.collect()


@pytest.fixture(scope="module")
def crawl(empty_crawl: JobCrawl, tmp_path_factory: pytest.TempPathFactory) -> JobCrawl:
    """A crawl for the tests of a module."""
    return empty_crawl.copy(tmp_path_factory.mktemp("crawl") / "root")


@pytest.fixture
def own_crawl(empty_crawl: JobCrawl, tmp_path_factory: pytest.TempPathFactory) -> JobCrawl:
    """A crawl for one test."""
    return empty_crawl.copy(tmp_path_factory.mktemp("crawl") / "root")
