"""AOPIC conserves every unit, whatever happens in a round."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.rank.aopic import (
    UNITS_PER_CREDIT,
    Account,
    Ledger,
    Links,
    RoundEvents,
    apply_round,
    credit_units,
    distribute,
    effective_cash,
    history_after_capture,
    imbalance,
    importance,
    lambda_parts,
    lambda_payout,
    resolve_representative,
    seed_credit_due,
    windowed_history,
)

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOW = 90 * 86_400
PARTS = lambda_parts(0.1)
Value = TypeVar("Value")


def play(
    accounts: dict[int, Account], ledger: Ledger, events: RoundEvents, richest: int = 10**30, at: datetime = NOW
) -> tuple[dict[int, Account], Ledger]:
    return apply_round(accounts, ledger, events, now=at, parts=PARTS, window_seconds=WINDOW, richest=richest)


@st.composite
def rounds(draw: st.DrawFn, pages: int = 8) -> RoundEvents:
    """Any mixture of events on a handful of pages, some of which do not exist yet."""
    ids = range(pages)
    captures, moves, terminal = {}, {}, set()
    for url_id in ids:
        what = draw(st.sampled_from(["nothing", "capture", "move", "terminal"]))
        if what == "capture":
            kept = draw(st.frozensets(st.sampled_from(ids)))
            captures[url_id] = Links(len(kept) + draw(st.integers(0, 3)), kept)
        elif what == "move":
            moves[url_id] = draw(st.none() | st.sampled_from(ids))
        elif what == "terminal":
            terminal.add(url_id)
    return RoundEvents(
        captures=captures,
        moves=moves,
        terminal=frozenset(terminal),
        revived=draw(st.frozensets(st.sampled_from(ids))),
        credits=draw(st.dictionaries(st.sampled_from(ids), st.integers(0, 10**13), max_size=3)),
        representatives=draw(st.dictionaries(st.sampled_from(ids), st.sampled_from(ids), max_size=3)),
    )


@given(st.lists(st.tuples(rounds(), st.integers(0, 10**13)), min_size=1, max_size=8))
def test_every_unit_is_kept_over_any_rounds(played: list[tuple[RoundEvents, int]]) -> None:
    accounts: dict[int, Account] = {}
    ledger = Ledger()
    for number, (events, richest) in enumerate(played):
        accounts, ledger = play(accounts, ledger, events, richest, NOW + number * DAY)
        assert imbalance(accounts.values(), ledger) == 0
        assert ledger.lambda_cash >= 0
        assert all(account.lambda_index <= ledger.lambda_index for account in accounts.values())
        assert set(events.terminal) <= {i for i, a in accounts.items() if not a.payable}


@given(rounds(), rounds(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_events_does_not_matter(
    first: RoundEvents, second: RoundEvents, shuffler: random.Random
) -> None:
    def shuffled(mapping: Mapping[int, Value]) -> dict[int, Value]:
        items = list(mapping.items())
        shuffler.shuffle(items)
        return dict(items)

    accounts, ledger = play({}, Ledger(), first, richest=0)
    again = RoundEvents(
        captures=shuffled(second.captures),
        moves=shuffled(second.moves),
        terminal=second.terminal,
        revived=second.revived,
        credits=shuffled(second.credits),
        representatives=shuffled(second.representatives),
    )
    assert play(accounts, ledger, second, richest=0) == play(shuffled(accounts), ledger, again, richest=0)


@given(st.integers(0, 10**19), st.integers(0, 5_000), st.data())
def test_a_distribution_adds_up_and_lambda_gets_at_least_its_share(
    effective: int, count: int, data: st.DataObject
) -> None:
    kept = data.draw(st.integers(0, count))
    share, to_lambda = distribute(effective, count, kept, PARTS)
    assert kept * share + to_lambda == effective
    assert 10 * to_lambda >= effective
    if kept == count > 0:
        assert to_lambda - effective / 10 <= count + effective * 1e-15


def test_a_distribution_by_hand() -> None:
    assert distribute(1_000, 3, 2, PARTS) == (300, 400)
    assert distribute(1_000, 7, 7, PARTS) == (128, 104)
    assert distribute(1_000, 0, 0, PARTS) == (0, 1_000)


@pytest.mark.parametrize(("effective", "count", "kept"), [(-1, 1, 1), (5, 1, 2), (5, 2, -1)])
def test_an_impossible_distribution_is_refused(effective: int, count: int, kept: int) -> None:
    with pytest.raises(ValueError, match=r"negative|kept"):
        distribute(effective, count, kept, PARTS)


def test_seed_credit_flows_in_the_round_that_grants_it() -> None:
    events = RoundEvents(credits={1: UNITS_PER_CREDIT}, captures={1: Links(2, frozenset({2, 3}))})
    accounts, ledger = play({}, Ledger(), events)
    share = 450_000_000_000
    assert (accounts[2].cash, accounts[3].cash, accounts[1].cash) == (share, share, 0)
    assert accounts[1].history == UNITS_PER_CREDIT
    assert accounts[1].history_at == NOW
    assert ledger == Ledger(UNITS_PER_CREDIT, UNITS_PER_CREDIT - 2 * share, 0, 3)


def test_a_raised_credit_adds_the_difference_and_a_lowered_one_nothing() -> None:
    assert seed_credit_due(5, 0) == 5
    assert seed_credit_due(7, 5) == 2
    assert seed_credit_due(3, 5) == 0
    assert credit_units(0.1) == 100_000_000_000
    assert credit_units(2) == 2 * UNITS_PER_CREDIT


def test_a_move_gives_all_to_the_representative_and_leaves_history_alone() -> None:
    accounts = {1: Account(cash=50, history=7, history_at=NOW - DAY), 2: Account(cash=1)}
    after, ledger = play(accounts, Ledger(51, 0, 0, 2), RoundEvents(moves={1: 2}))
    assert after == {1: Account(0, 7, NOW - DAY), 2: Account(51)}
    assert ledger.lambda_cash == 0
    after, ledger = play(accounts, Ledger(51, 0, 0, 2), RoundEvents(moves={1: None}))
    assert (after[1].cash, ledger.lambda_cash) == (0, 50)


def test_a_representative_is_resolved_one_level_and_a_cycle_ends_at_the_smallest() -> None:
    assert resolve_representative(1, 2, {}) == 2
    assert resolve_representative(1, 2, {2: 3, 3: 4}) == 3
    assert resolve_representative(1, 2, {2: None}) is None
    assert resolve_representative(1, 2, {2: 1}) == resolve_representative(2, 1, {1: 2}) == 1
    accounts = {5: Account(cash=10), 3: Account(cash=4)}
    after, _ = play(accounts, Ledger(14, 0, 0, 2), RoundEvents(moves={5: 3, 3: 5}))
    assert (after[3].cash, after[5].cash) == (14, 0)


def test_a_captured_representative_keeps_what_an_old_redirect_would_pass_on() -> None:
    accounts = {1: Account(cash=10), 2: Account(cash=0), 3: Account(cash=0)}
    events = RoundEvents(moves={1: 2}, captures={2: Links(0, frozenset())}, representatives={2: 3})
    after, _ = play(accounts, Ledger(10, 0, 0, 3), events)
    assert (after[2].cash, after[3].cash) == (10, 0)


def test_a_terminal_page_gives_all_to_lambda_and_no_longer_counts() -> None:
    accounts = {1: Account(cash=3, lambda_index=5), 2: Account(cash=6, lambda_index=7)}
    ledger = Ledger(total_credit=3 + 6 + 2 + 4, lambda_cash=4, lambda_index=7, payable_urls=2)
    after, closed = play(accounts, ledger, RoundEvents(terminal=frozenset({1})))
    assert after[1] == Account(payable=False)
    assert (closed.lambda_cash, closed.payable_urls) == (9, 1)


def test_what_a_dead_page_is_sent_goes_to_lambda() -> None:
    accounts = {1: Account(cash=1_000), 2: Account(payable=False)}
    after, ledger = play(accounts, Ledger(1_000, 0, 0, 1), RoundEvents(captures={1: Links(1, frozenset({2}))}))
    assert after[2] == Account(payable=False)
    assert ledger.lambda_cash == 1_000


def test_a_new_row_starts_at_the_index_and_not_at_zero() -> None:
    accounts = {1: Account(cash=0, lambda_index=7)}
    events = RoundEvents(captures={1: Links(1, frozenset({2}))})
    after, ledger = play(accounts, Ledger(0, 0, 7, 1), events)
    assert effective_cash(after[2], ledger.lambda_index) == 0


def test_a_failed_page_is_left_as_it_was() -> None:
    accounts = {1: Account(cash=9, history=4, history_at=NOW - DAY, lambda_index=2)}
    after, _ = play(accounts, Ledger(12, 0, 5, 1), RoundEvents())
    assert after == accounts


def test_lambda_pays_only_when_it_is_richer_than_the_richest() -> None:
    assert lambda_payout(10, 3, richest=10) == 0
    assert lambda_payout(11, 3, richest=10) == 3
    assert lambda_payout(11, 0, richest=0) == 0
    accounts = {1: Account(), 2: Account(), 3: Account()}
    _, ledger = play(accounts, Ledger(11, 11, 0, 3), RoundEvents(), richest=10)
    assert (ledger.lambda_index, ledger.lambda_cash) == (3, 2)


def test_two_final_events_of_one_page_are_refused() -> None:
    with pytest.raises(ValueError, match="more than one"):
        play({}, Ledger(), RoundEvents(moves={1: 2}, terminal=frozenset({1})))


def test_no_account_is_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Account(cash=-1)
    with pytest.raises(ValueError, match="holds nothing"):
        Account(cash=1, payable=False)
    with pytest.raises(ValueError, match="behind"):
        effective_cash(Account(lambda_index=5), 4)


def test_a_wrong_ledger_is_seen() -> None:
    assert imbalance([Account(cash=5)], Ledger(4, 0, 0, 1)) == 1
    with pytest.raises(ValueError, match="counts 2"):
        imbalance([Account(cash=5)], Ledger(5, 0, 0, 2))


def test_history_leaves_the_window_evenly() -> None:
    assert windowed_history(900, NOW - 30 * DAY, NOW, WINDOW) == 600
    assert windowed_history(900, NOW - 91 * DAY, NOW, WINDOW) == 0
    assert windowed_history(900, NOW + DAY, NOW, WINDOW) == 900
    assert windowed_history(900, None, NOW, WINDOW) == 0
    assert windowed_history(9 * 10**18, NOW - 45 * DAY, NOW, WINDOW) == 45 * 10**17


def test_history_after_a_capture_follows_the_paper() -> None:
    assert history_after_capture(Account(), 10, NOW, WINDOW) == 10
    assert history_after_capture(Account(history=900, history_at=NOW - 30 * DAY), 10, NOW, WINDOW) == 610
    assert history_after_capture(Account(history=900, history_at=NOW - 180 * DAY), 10, NOW, WINDOW) == 5


def test_importance_is_history_and_cash() -> None:
    account = Account(cash=3, history=900, history_at=NOW - 30 * DAY, lambda_index=4)
    assert importance(account, 10, NOW, WINDOW) == 600 + 3 + 6


def test_the_share_of_lambda_is_a_rational() -> None:
    assert lambda_parts(0.1) == 100_000
    assert lambda_parts(1e-9) == 1
    with pytest.raises(ValueError, match="between"):
        lambda_parts(1.0)


def test_importance_settles_where_links_point() -> None:
    """A hub that three pages link to ends with the most importance, as in a random walk with jumps."""
    links = {1: {0}, 2: {0}, 3: {0}, 0: {1, 2, 3}}
    events = RoundEvents(captures={i: Links(len(out), frozenset(out)) for i, out in links.items()})
    accounts, ledger = play({}, Ledger(), RoundEvents(credits=dict.fromkeys(links, UNITS_PER_CREDIT)))
    for number in range(120):
        accounts, ledger = play(accounts, ledger, events, richest=0, at=NOW + number * DAY)
    at = NOW + 119 * DAY
    hub, leaf = (importance(accounts[i], ledger.lambda_index, at, WINDOW) for i in (0, 1))
    # Power iteration of p = 0.9 * A * p + 0.1 / 4 gives 0.4868 for the hub and 0.1711 for a leaf.
    assert hub / leaf == pytest.approx(0.4868 / 0.1711, rel=0.1)
