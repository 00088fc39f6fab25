"""AOPIC in batch and in integers: the accounts of pages, Lambda and the index.

Abiteboul, Preda & Cobena, "Adaptive On-Line Page Importance Computation" (WWW 2003): each page
holds cash; a captured page hands its cash to its outlinks and writes it into its history; the
virtual page Lambda takes a share of each and gives to all. Here all of it is integer
(`UNITS_PER_CREDIT` units a credit), shares are floored and remainders go to Lambda, so that
conservation is an equality and a repeated round gives the same rows.

Lambda pays everybody without touching a row: it raises one index X. A row that was settled at
x holds e = c + (X - x). With N payable rows and K the credit ever given the law is

    sum(c) + N * X - sum(x) + L = K        (sums over all rows; rows not payable have c = x = 0)

This module is the oracle of the SQL at scale; each formula has its SQL beside it. Products of
units and seconds or parts leave BIGINT, so the SQL computes them in DECIMAL(38,0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

UNITS_PER_CREDIT = 10**12

#: Lambda's share is a rational with this denominator: a float share would not be reproducible.
SHARE_PARTS = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Account:
    """What a row of `urls` holds.

    Attributes:
        cash: c, units, never negative.
        history: units that passed through the page, over the window that ended at `history_at`.
        history_at: when `history` was last brought forward; None before the first capture.
        lambda_index: x, the index at which the row was last settled; 0 for rows not payable.
        payable: whether Lambda's index pays the row. The others hold nothing.
    """

    cash: int = 0
    history: int = 0
    history_at: datetime | None = None
    lambda_index: int = 0
    payable: bool = True

    def __post_init__(self) -> None:
        if self.cash < 0 or self.history < 0 or self.lambda_index < 0:
            raise ValueError(f"an account can't be negative: {self}")
        if not self.payable and (self.cash or self.lambda_index):
            raise ValueError(f"a row that is not payable holds nothing: {self}")


@dataclass(frozen=True)
class Ledger:
    """The four numbers of a crawl, kept in `rounds`: K, L, X in units, N in rows."""

    total_credit: int = 0
    lambda_cash: int = 0
    lambda_index: int = 0
    payable_urls: int = 0


@dataclass(frozen=True)
class Links:
    """The outlinks of a captured page.

    Attributes:
        outlink_count: k, its distinct outlinks before any filter.
        kept: the distinct targets that passed the filters and the cap.
    """

    outlink_count: int
    kept: frozenset[int]


@dataclass(frozen=True)
class RoundEvents:
    """What happened to accounts in a round; rows not named here failed, were skipped or lay still.

    Attributes:
        captures: pages finally captured that are their own representative, with their links.
        moves: pages that turned out to be redirect, duplicate or non-canonical, with their
            representative; None where the representative was turned away by a filter.
        terminal: pages that became gone, denied or trap, or were excluded.
        revived: pages that are payable again without a capture (an exclusion was lifted).
        credits: seed credit due in this round, units (`seed_credit_due`).
        representatives: representatives in force after the round for pages that were not captured
            in it; with `moves` they resolve a representative's own representative.
    """

    captures: Mapping[int, Links] = field(default_factory=dict)
    moves: Mapping[int, int | None] = field(default_factory=dict)
    terminal: frozenset[int] = frozenset()
    revived: frozenset[int] = frozenset()
    credits: Mapping[int, int] = field(default_factory=dict)
    representatives: Mapping[int, int] = field(default_factory=dict)


def credit_units(credit: float) -> int:
    """Units of a credit given as a decimal number, through its shortest decimal text (0.1 is 0.1)."""
    units = Decimal(repr(float(credit))) * UNITS_PER_CREDIT
    return int(units.to_integral_value(rounding=ROUND_HALF_EVEN))


def lambda_parts(lambda_share: float) -> int:
    """Lambda's share (0 < share < 1) in parts of `SHARE_PARTS`, at least 1 and less than all."""
    if not 0.0 < lambda_share < 1.0:
        raise ValueError(f"Lambda's share must lie between 0 and 1, not {lambda_share}")
    return min(max(1, round(lambda_share * SHARE_PARTS)), SHARE_PARTS - 1)


def seed_credit_due(credit: int, granted: int) -> int:
    """Units that a seed gets now: the part of its credit not granted before; a lowered credit takes nothing back."""
    return max(0, credit - granted)


def effective_cash(account: Account, index: int) -> int:
    """Effective cash e = c + (X - x), units; 0 for a row that is not payable. ValueError if X went back behind x."""
    if not account.payable:
        return 0
    if index < account.lambda_index:
        raise ValueError(f"the index {index} lies behind the row's {account.lambda_index}")
    return account.cash + index - account.lambda_index


def effective_cash_sql(cash: str, lambda_index: str, index: str, payable: str = "true", credit: str = "0") -> str:
    """SQL of `effective_cash` plus the seed credit due in the round; BIGINT, a missing row holds the credit alone.

    Args:
        cash, lambda_index: columns c and x of the opening version; index: X at the opening.
        payable: predicate on the opening state (`transitions.payable_sql`).
        credit: units due to the row as a seed.
    """
    held = f"CASE WHEN {payable} THEN coalesce({cash} + ({index} - {lambda_index}), 0L) ELSE 0L END"
    return f"({held} + coalesce(CAST({credit} AS BIGINT), 0L))"


def distribute(effective: int, outlink_count: int, kept: int, parts: int) -> tuple[int, int]:
    """What each kept target gets and what Lambda gets: rule 2, floor((1 - lambda) * e / k) each.

    Args:
        effective: e, units, not negative.
        outlink_count: k, distinct outlinks before filters.
        kept: how many of them are paid.
        parts: Lambda's share in `SHARE_PARTS` (`lambda_parts`).

    Returns:
        (share_each, to_lambda) with kept * share_each + to_lambda == effective.
    """
    if effective < 0:
        raise ValueError(f"effective cash can't be negative: {effective}")
    if not 0 <= kept <= outlink_count:
        raise ValueError(f"{kept} links kept of {outlink_count}")
    if outlink_count == 0:
        return 0, effective
    share = effective * (SHARE_PARTS - parts) // (SHARE_PARTS * outlink_count)
    return share, effective - kept * share


def share_sql(effective: str, outlink_count: str, parts: int) -> str:
    """SQL of the share that each kept target gets; BIGINT, 0 where there are no outlinks.

    Lambda's part needs no formula of its own: it is `effective - kept * share`.
    """
    divisor = f"(CAST({SHARE_PARTS} AS DECIMAL(38,0)) * CAST({outlink_count} AS DECIMAL(19,0)))"
    share = f"CAST({effective} AS DECIMAL(38,0)) * {SHARE_PARTS - parts} div {divisor}"
    return f"CASE WHEN coalesce({outlink_count}, 0) > 0 THEN {share} ELSE 0L END"


def _whole_seconds(since: datetime, now: datetime) -> int:
    """Seconds between two times, both cut to whole seconds as Spark's unix_seconds does; never negative."""
    second = timedelta(seconds=1)
    return max(0, (now - _EPOCH) // second - (since - _EPOCH) // second)


def _seconds_sql(since: str, now: str) -> str:
    return f"greatest(0L, unix_seconds({now}) - unix_seconds({since}))"


def windowed_history(history: int, history_at: datetime | None, now: datetime, window_seconds: int) -> int:
    """What is left of `history` in the window that ends now: floor(h * max(0, T - dt) / T), units.

    Section 5.2 of the paper ("interpolation"): history leaves the window evenly.
    """
    if history_at is None:
        return 0
    remaining = max(0, window_seconds - _whole_seconds(history_at, now))
    return history * remaining // window_seconds


def windowed_history_sql(history: str, history_at: str, now: str, window_seconds: int) -> str:
    """SQL of `windowed_history`; BIGINT; TIMESTAMP arguments."""
    remaining = f"greatest(0L, {window_seconds}L - {_seconds_sql(history_at, now)})"
    product = f"CAST({history} AS DECIMAL(38,0)) * CAST({remaining} AS DECIMAL(19,0))"
    # Spark's greatest() passes over NULLs, so "never captured" must be asked for.
    return f"CASE WHEN {history_at} IS NULL THEN 0L ELSE {product} div CAST({window_seconds} AS DECIMAL(38,0)) END"


def history_after_capture(account: Account, effective: int, now: datetime, window_seconds: int) -> int:
    """The history of a page that has just handed out `effective` units (section 5.2 of the paper).

    Within the window the cash adds to what is left. If the last capture lies a window or more
    back, the cash was gathered over all that time, and the window gets its part: e * T / dt.
    """
    if account.history_at is None:
        return effective
    elapsed = _whole_seconds(account.history_at, now)
    if elapsed < window_seconds:
        return windowed_history(account.history, account.history_at, now, window_seconds) + effective
    return effective * window_seconds // elapsed


def history_after_capture_sql(history: str, history_at: str, effective: str, now: str, window_seconds: int) -> str:
    """SQL of `history_after_capture`; BIGINT."""
    elapsed = _seconds_sql(history_at, now)
    within = f"({windowed_history_sql(history, history_at, now, window_seconds)}) + {effective}"
    beyond = f"CAST({effective} AS DECIMAL(38,0)) * {window_seconds} div CAST({elapsed} AS DECIMAL(38,0))"
    return (
        f"CASE WHEN {history_at} IS NULL THEN {effective} "
        f"WHEN {elapsed} < {window_seconds} THEN {within} ELSE {beyond} END"
    )


def importance(account: Account, index: int, now: datetime, window_seconds: int) -> int:
    """Importance in units: history in the window plus effective cash (section 4.3 of the paper)."""
    history = windowed_history(account.history, account.history_at, now, window_seconds)
    return history + effective_cash(account, index)


def importance_sql(
    *, cash: str, lambda_index: str, index: str, history: str, history_at: str, now: str, window_seconds: int
) -> str:
    """SQL of `importance`; BIGINT units; for payable rows."""
    window = windowed_history_sql(history, history_at, now, window_seconds)
    return f"(({window}) + {effective_cash_sql(cash, lambda_index, index)})"


def resolve_representative(url_id: int, target: int, in_force: Mapping[int, int | None]) -> int | None:
    """Who gets the cash of `url_id`, whose representative is `target`: one level, rule 3.

    If the target has a representative of its own, that one is taken, and no further step: a
    chain settles over rounds instead of costing a join a link. Where two pages name each other
    the smallest id of the two keeps the cash. None: Lambda.
    """
    final = in_force.get(target, target)
    if final == url_id:
        return min(url_id, target)
    return final


def resolve_representative_sql(url_id: str, target: str, target_has_representative: str, targets_target: str) -> str:
    """SQL of `resolve_representative` after one left join of the representatives on `target`; NULL: Lambda."""
    return (
        f"CASE WHEN {target} IS NULL THEN NULL WHEN NOT ({target_has_representative}) THEN {target} "
        f"WHEN {targets_target} = {url_id} THEN least({url_id}, {target}) ELSE {targets_target} END"
    )


def lambda_payout(lambda_cash: int, payable_urls: int, richest: int) -> int:
    """q, by which the index rises: floor(L / N) if Lambda is richer than the richest page seen, else 0 (rule 6)."""
    if payable_urls == 0 or lambda_cash <= richest:
        return 0
    return lambda_cash // payable_urls


def imbalance(accounts: Iterable[Account], ledger: Ledger) -> int:
    """Left minus right side of the law; anything but 0 is a broken law."""
    payable = [account for account in accounts if account.payable]
    if len(payable) != ledger.payable_urls:
        raise ValueError(f"the ledger counts {ledger.payable_urls} payable rows, there are {len(payable)}")
    cash = sum(account.cash for account in payable)
    settled = sum(account.lambda_index for account in payable)
    return cash + len(payable) * ledger.lambda_index - settled + ledger.lambda_cash - ledger.total_credit


def _checked(events: RoundEvents) -> None:
    named = len(events.captures) + len(events.moves) + len(events.terminal)
    if len(set(events.captures) | set(events.moves) | events.terminal) != named:
        raise ValueError("a page has more than one final event in the round")
    if any(units < 0 for units in events.credits.values()):
        raise ValueError("seed credit can't be negative")


def _handed_out(
    accounts: Mapping[int, Account], index: int, events: RoundEvents, parts: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Rules 1 to 4: the units each target receives, and the units each acting page held.

    Units for Lambda are not listed: they are what was held less what is received.
    """
    received: dict[int, int] = {}
    held: dict[int, int] = {}
    in_force = {**events.representatives, **events.moves}
    for url_id in events.captures:
        in_force.pop(url_id, None)
    for url_id in {*events.captures, *events.moves, *events.terminal, *events.credits}:
        account = accounts.get(url_id, Account(lambda_index=index))
        credit = events.credits.get(url_id, 0)
        if url_id in events.captures:
            held[url_id] = effective_cash(account, index) + credit
            links = events.captures[url_id]
            share, _ = distribute(held[url_id], links.outlink_count, len(links.kept), parts)
            for target in links.kept:
                received[target] = received.get(target, 0) + share
        elif url_id in events.moves:
            held[url_id] = effective_cash(account, index) + credit
            target_or_none = events.moves[url_id]
            if target_or_none is not None:
                final = resolve_representative(url_id, target_or_none, in_force)
                if final is not None:
                    received[final] = received.get(final, 0) + held[url_id]
        elif url_id in events.terminal:
            held[url_id] = effective_cash(account, index) + credit
        else:
            received[url_id] = received.get(url_id, 0) + credit
    return received, held


def apply_round(
    accounts: Mapping[int, Account],
    ledger: Ledger,
    events: RoundEvents,
    *,
    now: datetime,
    parts: int,
    window_seconds: int,
    richest: int,
) -> tuple[dict[int, Account], Ledger]:
    """One round on rows in memory: the six rules of `rank`, the oracle of the job.

    Args:
        accounts: the opening version of all rows, by url_id.
        ledger: K, L, X, N at the opening.
        events: what happened; each page in at most one of captures, moves and terminal.
        now: the round's frozen time. parts: Lambda's share (`lambda_parts`).
        window_seconds: T of the history window.
        richest: effective cash of the richest page that the frontier's scan saw, units.

    Returns:
        The new rows (targets never seen before included) and the new ledger.
    """
    _checked(events)
    index = ledger.lambda_index
    received, held = _handed_out(accounts, index, events, parts)
    after = dict(accounts)
    for url_id in held:
        account = after.get(url_id, Account(lambda_index=index))
        if url_id in events.terminal:
            after[url_id] = replace(account, cash=0, lambda_index=0, payable=False)
            continue
        settled = replace(account, cash=0, lambda_index=index, payable=True)
        if url_id in events.captures:
            history = history_after_capture(account, held[url_id], now, window_seconds)
            settled = replace(settled, history=history, history_at=now)
        after[url_id] = settled
    for url_id in events.revived - events.terminal:
        if url_id in after and not after[url_id].payable:
            after[url_id] = replace(after[url_id], lambda_index=index, payable=True)

    lost = 0
    for url_id, units in received.items():
        account = after.get(url_id, Account(lambda_index=index))
        if account.payable:
            after[url_id] = replace(account, cash=effective_cash(account, index) + units, lambda_index=index)
        else:
            lost += units  # A dead page must not hoard: what it is sent goes to Lambda.

    idle_credit = sum(units for url_id, units in events.credits.items() if url_id not in held)
    to_lambda = sum(held.values()) + idle_credit - sum(received.values()) + lost
    lambda_cash = ledger.lambda_cash + to_lambda
    payable = sum(1 for account in after.values() if account.payable)
    raised = lambda_payout(lambda_cash, payable, richest)
    return after, Ledger(
        total_credit=ledger.total_credit + sum(events.credits.values()),
        lambda_cash=lambda_cash - raised * payable,
        lambda_index=index + raised,
        payable_urls=payable,
    )
