"""Small pieces of SQL that several steps need."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp_sql(moment: datetime) -> str:
    """A moment as a SQL literal of a session in UTC."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
