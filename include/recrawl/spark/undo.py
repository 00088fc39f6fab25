"""Taking rounds back: state tables by RESTORE, event tables by deleting the slices.

The intent is written first (`rounds.round_state = undoing`), so that an undo that was killed is
finished by the next one, or by the next round's `seed`. Rounds are taken back newest first.
WARC files are moved aside, never deleted: they are captures of a world that has moved on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recrawl.config.model import Configuration
from recrawl.errors import UsageError
from recrawl.lease import Lease
from recrawl.round_ledger import Round, all_rounds, save_round
from recrawl.rounds import round_id_of, steps_folder, warc_folder
from recrawl.seed.rekeying import SeedChanges, rekeyed_seeds
from recrawl.spark.application import Application, say
from recrawl.stored_tables import rows_of_batch
from recrawl.tables.catalog import EVENT_TABLES, STATE_TABLES
from recrawl.tables.vocabulary import RoundKind, RoundState
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.identity import identity_of

#: Rounds in these states are part of the crawl and can be taken back.
_STANDING = (RoundState.OPEN, RoundState.FOLDING, RoundState.CLOSED, RoundState.ABANDONED, RoundState.UNDOING)


def rounds_to_drop(rounds: list[Round], to_round_id: str | None) -> list[Round]:
    """The rounds that an undo drops, newest first.

    Args:
        rounds: every round.
        to_round_id: the first round to drop; None: the last one alone.

    Raises:
        UsageError: nothing can be undone, or the round is none of those.
    """
    standing = sorted((r for r in rounds if r.state in _STANDING), key=lambda r: -int(r["round_number"]))
    if not standing:
        raise UsageError("There is no round to undo.")
    if to_round_id is None:
        return standing[:1]
    for place, row in enumerate(standing):
        if row.round_id == to_round_id:
            return standing[: place + 1]
    raise UsageError(f"Round {to_round_id} is not among those that can be undone.")


def undo(configuration: Configuration, to_round_id: str | None = None) -> list[str]:
    """Take back the last round, or every round from `to_round_id` on; the ids of those dropped."""
    application = Application(configuration)
    owner = f"undo {round_id_of(application.clock.now())}"
    with application.lease(owner, "an undo", keep=False) as lease:
        dropped = rounds_to_drop(all_rounds(application.stored), to_round_id)
        # All intents first: were only the newest marked, a kill between two rounds would leave the rest standing.
        for row in dropped:
            if row.state is not RoundState.UNDOING:
                save_round(application.stored, row.with_values(round_state=str(RoundState.UNDOING)))
        return finish_undos(application, lease)


def finish_undos(application: Application, lease: Lease) -> list[str]:
    """Finish every undo that was begun, newest round first; the ids of the rounds."""
    undoing = [row for row in all_rounds(application.stored) if row.state is RoundState.UNDOING]
    for row in sorted(undoing, key=lambda r: -int(r["round_number"])):
        lease.check()
        _take_back(application, row)
    return [row.round_id for row in undoing]


def take_back(application: Application, row: Round) -> None:
    """Take back one round, the newest: its intent first, so that it is finished if this is killed."""
    marked = row.with_values(round_state=str(RoundState.UNDOING))
    save_round(application.stored, marked)
    _take_back(application, marked)


def _take_back(application: Application, row: Round) -> None:
    stored, store = application.stored, application.store
    for table in STATE_TABLES:
        if stored.version(table) != row.version_at_open(table):
            # Deletion vectors: Delta's own engine alone writes these tables.
            application.tables.restore(table, row.version_at_open(table))
    if row["round_kind"] == RoundKind.REKEY:
        seeds = seed_changes(application, row)
        if seeds.put_back:
            stored.put("seeds", seeds.put_back)
        stored.remove("seeds", seeds.removed_again)
    for table in EVENT_TABLES:
        stored.delete_slice(table, row.round_id)
    generation = int(row["generation"]) + 1
    store.move_folder(warc_folder(row.round_id), f"undone/{row.round_id}-{generation}")
    store.delete_folder(f"spool/{row.round_id}")
    store.delete_folder(steps_folder(row.round_id).rpartition("/")[0])
    save_round(stored, row.with_values(round_state=str(RoundState.UNDONE), generation=generation))
    say(f"undo: round {row.round_id} is taken back; its WARC files are under undone/{row.round_id}-{generation}.")


def seed_changes(application: Application, row: Round) -> SeedChanges:
    """What a rekey does to the root set, and how that is taken back: it follows from the opening version alone."""
    canonicalizer = Canonicalizer.from_settings(row.configuration(application.configuration).urls)

    def opening() -> Iterator[dict[str, Any]]:
        for batch in application.stored.batches("seeds", row.version_at_open("seeds")):
            yield from rows_of_batch(batch)

    return rekeyed_seeds(opening, lambda seed: identity_of(seed["request_url"] or seed["url"], canonicalizer))
