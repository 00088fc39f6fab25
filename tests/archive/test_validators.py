"""Every judge accepts every file, whatever the servers did."""

from __future__ import annotations

import pytest

from tests.archive.hostile import Archive
from tests.real import validators


@pytest.fixture(params=["first_visit", "second_visit"])
def archive(request: pytest.FixtureRequest) -> Archive:
    """Each visit."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Archive)
    assert found.files
    return found


def test_by_the_letter(archive: Archive) -> None:
    assert {path.name: validators.by_our_check(path) for path in archive.files} == {
        path.name: [] for path in archive.files
    }


def test_warcio_check(archive: Archive) -> None:
    for path in archive.files:
        assert validators.by_warcio(path) == []


def test_jwarc(archive: Archive) -> None:
    jar = validators.jwarc_jar()
    if jar is None:
        pytest.skip(f"jwarc is not there: {validators.JAR_VARIABLE} names no jar, and Maven could not fetch it")
    for path in archive.files:
        assert validators.by_jwarc(path, jar) == []


def test_cdxj_indexer_has_the_same_index(archive: Archive) -> None:
    for path in archive.files:
        assert validators.by_cdxj_indexer(path) == []
        lines = path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj").read_bytes().splitlines()
        assert lines == sorted(lines)
