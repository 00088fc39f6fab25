"""Each finding of the doctor, on machines that lack something."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from recrawl.bootstrap.jars import JARS
from recrawl.bootstrap.places import Places
from recrawl.clock import ManualClock
from recrawl.config import Configuration, load_configuration
from recrawl.doctor import machine, program
from recrawl.doctor.checks import clock_is_sane, run_checks
from recrawl.doctor.finding import Level

NOW = datetime.now(UTC)


def configured(tmp_path: Path, **sections: dict[str, object]) -> Configuration:
    """A configuration whose crawl would lie under `tmp_path`."""
    return load_configuration("/dev/null", {}, {"storage": {"root": str(tmp_path / "crawl")}, **sections})


def test_every_finding_that_is_not_ok_has_a_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_JARS", str(tmp_path))
    (tmp_path / "project").mkdir()
    findings = run_checks(configured(tmp_path), Places(tmp_path / "project"), ManualClock(NOW))
    names = [finding.name for finding in findings]
    assert len(names) == len(set(names)) == 13
    assert all(finding.found for finding in findings)
    assert all(finding.mend for finding in findings if finding.level is not Level.OK)
    assert {finding.name: finding.level for finding in findings}["jars"] is Level.PROBLEM


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    assert machine.storage(configured(tmp_path)).level is Level.OK
    assert not (tmp_path / "crawl").exists()


def test_a_crawl_that_is_there_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "crawl" / "control" / "inbox" / "event.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}", encoding="utf-8")
    assert machine.storage(configured(tmp_path)).level is Level.OK
    assert [path.name for path in (tmp_path / "crawl" / "control").iterdir()] == ["inbox"]


def test_a_root_that_can_not_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "crawl").write_text("a file in its place", encoding="utf-8")
    finding = machine.storage(configured(tmp_path))
    assert finding.level is Level.PROBLEM and "storage.root" in finding.mend


def test_a_full_disk_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free_bytes, level in ((10 << 20, Level.PROBLEM), (2 << 30, Level.WARNING), (50 << 30, Level.OK)):
        usage = SimpleNamespace(free=free_bytes)
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda _, usage=usage: usage)
        assert machine.free_space(configured(tmp_path)).level is level


def test_little_memory_is_a_warning_that_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 4000000 kB\nMemAvailable:    1048576 kB\n", encoding="utf-8")
    assert machine.available_memory_bytes(meminfo) == 1 << 30
    assert machine.available_memory_bytes(tmp_path / "none") is None
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 1 << 30)
    finding = machine.memory(configured(tmp_path))
    assert finding.level is Level.WARNING and "spark.driver_memory" in finding.mend


def test_few_descriptors_are_a_warning_only_where_they_can_not_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limits, level in (((1024, 4096), Level.OK), ((1024, 1024), Level.WARNING), ((9000, 9000), Level.OK)):
        monkeypatch.setattr(machine.resource, "getrlimit", lambda _, limits=limits: limits)
        assert machine.file_descriptors(configured(tmp_path)).level is level


def test_a_jar_with_other_content_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_JARS", str(tmp_path))
    (tmp_path / JARS[0].file_name).write_bytes(b"half")
    finding = program.jars()
    assert finding.level is Level.PROBLEM and str(tmp_path / JARS[0].file_name) in finding.mend


def test_the_contact_is_asked_for_by_the_line_to_write(tmp_path: Path) -> None:
    assert 'contact = "' in program.contact(configured(tmp_path)).mend
    named = program.contact(configured(tmp_path, agent={"contact": "me@a.test"}))
    assert named.level is Level.OK and "+me@a.test" in named.found


def test_a_taken_port_is_no_problem(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8080))
        taken.listen()
        finding = program.port(Places(tmp_path))
    assert finding.level is Level.OK and "8080 is taken" in finding.found


def test_a_clock_before_the_projects_own_files_is_a_problem(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (NOW.timestamp(), NOW.timestamp()))
    assert clock_is_sane(NOW + timedelta(minutes=2), Places(tmp_path)).level is Level.OK
    assert clock_is_sane(NOW - timedelta(days=400), Places(tmp_path)).level is Level.PROBLEM
