"""What came of the round: its figures, one page to read, queries to copy."""

from __future__ import annotations

import textwrap
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.config.model import Configuration
from recrawl.storage import Store

TEXT_CHARACTERS = 600
_WIDTH = 100


def print_report(configuration: Configuration, command: str) -> None:
    """Print the last round's table, a page, three queries.

    Args:
        configuration: of the crawl.
        command: how `recrawl` is called for it.
    """
    reader = Reader(Store(configuration.storage))
    row = reader.rounds()[-1]
    print("\n" + "\n".join(summary_lines(row)))
    page = _best_page(reader, row["round_id"])
    if page is not None:
        print("\n" + "\n".join(page_lines(page)))
    print("\nAsk on, in Spark SQL (about 10 s to start; with --engine arrow at once):")
    for query in queries(row["round_id"], page):
        print(f'  {command} sql "{query}"')


def summary_lines(row: dict[str, Any]) -> list[str]:
    """The figures of a round as a small table."""
    seconds = (row["closed_at"] - row["opened_at"]).total_seconds() if row["closed_at"] else None
    figures: list[tuple[str, Any, str]] = [
        ("planned", row["planned"], "URLs"),
        ("fetched", row["fetched"], "of them"),
        ("  with new content", row["outcomes_ok"], ""),
        ("  unchanged", row["outcomes_unchanged"], ""),
        ("  failed", row["outcomes_failed"], "denied by robots.txt, missing, …"),
        ("skipped", row["skipped_after_plan"], "each with its reason in crawl.skips"),
        ("new URLs", row["new_urls"], "seeds, and links that were found"),
        ("known URLs", row["known_after"], "in all"),
        ("WARC files", f"{(row['warc_bytes'] or 0) / 1e3:,.0f} kB", ""),
    ]
    lines = [
        f"Round {row['round_number']} ({row['round_id']}): {row['round_state']}"
        + (f", {seconds:.0f} s" if seconds else "")
    ]
    for name, value, note in figures:
        lines.append(f"  {name:<20}{'-' if value is None else value!s:>10}  {note}".rstrip())
    return lines


def page_lines(page: dict[str, Any]) -> list[str]:
    """A page's title and the beginning of its text."""
    text = " ".join(str(page["text"]).split())
    cut = text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return [
        f"One of its pages: {page['title']}",
        f"  {page['url']}",
        *textwrap.wrap(cut, _WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]


def queries(round_id: str, page: dict[str, Any] | None) -> list[str]:
    """Three queries with ids that exist; two where there is no page to ask about."""
    in_round = f"WHERE round_id = '{round_id}'"
    asked = [f"SELECT outcome, count(*) AS tries FROM crawl.fetches {in_round} GROUP BY outcome"]
    if page is None:
        return [*asked, f"SELECT skip_reason, count(*) AS urls FROM crawl.skips {in_round} GROUP BY skip_reason"]
    chosen = page["url_id"]
    return [
        *asked,
        f"SELECT url, state, last_status, inlinks, cash, next_fetch_at FROM crawl.urls WHERE url_id = {chosen}",
        f"SELECT dst_url, anchor_text FROM crawl.links WHERE src_url_id = {chosen} LIMIT 10",
    ]


def _best_page(reader: Reader, round_id: str) -> dict[str, Any] | None:
    """The page with a title and the longest text: of this round, else of an earlier one."""
    found = reader.query(
        "SELECT url_id, url, title, text FROM pages WHERE title <> '' AND text <> '' "
        f"ORDER BY CASE WHEN round_id = '{round_id}' THEN 0 ELSE 1 END, length(text) DESC LIMIT 1"
    ).to_pylist()
    return found[0] if found else None
