"""Rules for all tests: under CI=true nothing is skipped."""

from __future__ import annotations

import os

import pytest

_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note each skip: a test that needs a program which is not installed here says so and is skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped.append(f"{report.nodeid}: {reason}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note modules that are skipped as a whole."""
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed, a skip is a failure."""
    if os.environ.get("CI") == "true" and _skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which skips made the run fail."""
    if os.environ.get("CI") == "true" and _skipped:
        terminalreporter.section("Skipped under CI=true, which counts as a failure")
        for line in _skipped:
            terminalreporter.write_line(line)
