"""Rows of `urls` that turn out to be one URL: the row that they become.

The best-placed row is kept (its state, its content, its validators and what it last said); counts, cash and
history of all are added up. A row that can be fetched beats one that cannot, so a merge never takes
cash from a page that lives. Formulas stand in Python and in SQL, as in `recrawl.rank.aopic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recrawl.rank.aopic import Account, effective_cash, effective_cash_sql, windowed_history, windowed_history_sql
from recrawl.rank.change_rate import ChangeEvidence, rate_per_day_sql
from recrawl.rank.transitions import PAYABLE_STATES, payable_sql
from recrawl.tables.vocabulary import UrlState

UrlRow = Mapping[str, Any]

#: The state kept, the best first: payable states stand before the others.
STATE_ORDER: tuple[UrlState, ...] = (
    UrlState.FETCHED,
    UrlState.DUPLICATE,
    UrlState.REDIRECT,
    UrlState.FAILING,
    UrlState.NEW,
    UrlState.DENIED,
    UrlState.GONE,
    UrlState.EXCLUDED,
    UrlState.TRAP,
)

#: What is added up, taken as the least, and taken as the greatest of all rows.
SUMMED = ("fetch_count", "change_count", "change_events", "observed_days", "seed_credit", "inlinks")
_REAL = ("change_events", "observed_days")
LEAST = ("depth", "discovered_round")
GREATEST = ("manual_priority", "last_fetch_at", "history_at")

#: What a row that stood for itself becomes when its representative is itself.
OWN_AGAIN: Mapping[UrlState, UrlState] = {UrlState.DUPLICATE: UrlState.FETCHED, UrlState.REDIRECT: UrlState.NEW}

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def place(row: UrlRow) -> tuple[int, datetime, int, int]:
    """How a row stands against others of its URL: the greatest is kept."""
    state = len(STATE_ORDER) - STATE_ORDER.index(UrlState(row["state"]))
    return state, row["last_success_at"] or _NEVER, row["fetch_count"], row["url_id"]


def place_struct_sql() -> str:
    """SQL of `place`."""
    cases = " ".join(f"WHEN '{state}' THEN {len(STATE_ORDER) - rank}" for rank, state in enumerate(STATE_ORDER))
    return (
        f"named_struct('state', CASE state {cases} END, 'success', last_success_at, 'fetches', fetch_count, "
        "'url_id', url_id)"
    )


def merged_row(rows: Sequence[UrlRow], index: int, window_seconds: int, first_interval_days: float) -> dict[str, Any]:
    """The row that `rows` become; url, url_id, host and representative are those of the row that is kept.

    Args:
        rows: rows of `urls` that are one URL, at least one.
        index: Lambda's index X, to which cash is settled.
        window_seconds: T of the history window.
        first_interval_days: prior of the change rate.
    """
    best: UrlRow = max(rows, key=place)
    kept = dict(best)
    for name in SUMMED:
        kept[name] = sum(sorted(row[name] for row in rows))
    for names, choose in ((LEAST, min), (GREATEST, max)):
        for name in names:
            kept[name] = choose((row[name] for row in rows if row[name] is not None), default=None)
    kept["seed_tag"] = kept["seed_tag"] or max(row["seed_tag"] for row in rows)
    payable = UrlState(kept["state"]) in PAYABLE_STATES
    accounts = [
        Account(row["cash"], row["history"], row["history_at"], row["lambda_index"], row["state"] in PAYABLE_STATES)
        for row in rows
    ]
    kept["cash"] = sum(effective_cash(account, index) for account in accounts)
    kept["lambda_index"] = index if payable else 0
    kept["history"] = sum(
        windowed_history(account.history, account.history_at, kept["history_at"] or _NEVER, window_seconds)
        for account in accounts
    )
    evidence = ChangeEvidence(kept["change_events"], kept["observed_days"])
    kept["change_rate_per_day"] = evidence.rate_per_day(first_interval_days)
    return kept


def merged_columns_sql(
    columns: Sequence[str], index: int, window_seconds: int, first_interval_days: float
) -> tuple[dict[str, str], dict[str, str]]:
    """SQL of `merged_row`: aggregates over the rows of a URL, then the columns made of them.

    Args:
        columns: the columns of `urls` that the row has.

    Returns:
        (aggregate by name, to be taken GROUP BY the URL; column by name, over these aggregates). The rows
        need a column `newest_history_at`, the greatest `history_at` of their URL.
    """
    cash = effective_cash_sql("cash", "lambda_index", f"{index}L", payable_sql("state"))
    history = windowed_history_sql("history", "history_at", "newest_history_at", window_seconds)
    aggregates = {
        "kept": f"max_by(struct({', '.join(columns)}), {place_struct_sql()})",
        "all_cash": f"CAST(sum({cash}) AS BIGINT)",
        "all_history": f"CAST(sum({history}) AS BIGINT)",
        "all_tags": "max(seed_tag)",
        **{f"all_{name}": f"sum({name})" for name in SUMMED if name not in _REAL},
        # In one order, because a sum of floats depends on it.
        **{f"all_{name}": f"aggregate(array_sort(collect_list({name})), 0D, (sum, x) -> sum + x)" for name in _REAL},
        **{f"all_{name}": f"min({name})" for name in LEAST},
        **{f"all_{name}": f"max({name})" for name in GREATEST},
    }
    own = {
        "cash": "all_cash",
        "history": "all_history",
        "lambda_index": f"CASE WHEN {payable_sql('kept.state')} THEN {index}L ELSE 0L END",
        "seed_tag": "coalesce(nullif(kept.seed_tag, ''), all_tags)",
        "change_rate_per_day": rate_per_day_sql("all_change_events", "all_observed_days", first_interval_days),
        **{name: f"all_{name}" for name in (*SUMMED, *LEAST, *GREATEST)},
    }
    return aggregates, {name: own.get(name, f"kept.{name}") for name in columns}
