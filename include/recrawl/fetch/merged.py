"""One row of what several parts say of the same host or robots.txt file.

A journal part holds the visit of its own time, and an attempt that was killed may have fetched a
robots.txt that the next one fetched again.
"""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.fetch.journal import Row


def whole_visit(rows: Sequence[Row]) -> Row:
    """One row of `host_visits`: counts added, extremes kept, all addresses; the rest as the last part left it.

    Args:
        rows: of one host, at least one, in any order.
    """
    return {
        # Times of one form sort as text; a part without a request knows the least.
        **max(rows, key=lambda row: (row["last_access_at"] or "", row["requests"])),
        "requests": sum(row["requests"] for row in rows),
        "min_gap_ms": min((row["min_gap_ms"] for row in rows if row["min_gap_ms"] is not None), default=None),
        "errors": sum(row["errors"] for row in rows),
        "deferred": sum(row["deferred"] for row in rows),
        "retry_after_seconds": max(
            (row["retry_after_seconds"] for row in rows if row.get("retry_after_seconds") is not None), default=None
        ),
        "ips": sorted({ip for row in rows for ip in row["ips"]}),
    }


def newest_robots(rows: Sequence[Row]) -> list[Row]:
    """One row of `robots` a scheme: the newest.

    Args:
        rows: of one host, in any order.
    """
    newest: dict[str, Row] = {}
    for row in rows:
        held = newest.get(row["scheme"])
        if held is None or row["fetched_at"] > held["fetched_at"]:
            newest[row["scheme"]] = row
    return [newest[scheme] for scheme in sorted(newest)]
