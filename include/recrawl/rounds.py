"""Round ids and the folders of a round under the storage root."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from recrawl.errors import UsageError

_FORM = "%Y%m%dT%H%M%S.%fZ"
_PATTERN = re.compile(r"\d{8}T\d{6}\.\d{6}Z")


def round_id_of(moment: datetime) -> str:
    """The round id of a run's moment: UTC, sortable, e.g. 20261130T030000.000000Z."""
    if moment.tzinfo is None:
        raise UsageError(f"The moment {moment.isoformat()} has no time zone.")
    return moment.astimezone(UTC).strftime(_FORM)


def moment_of(round_id: str) -> datetime:
    """The moment of a round id, in UTC. Raises UsageError for text of another form."""
    if not _PATTERN.fullmatch(round_id):
        raise UsageError(f"{round_id!r} is not a round id such as 20261130T030000.000000Z.")
    return datetime.strptime(round_id, _FORM).replace(tzinfo=UTC)


def warc_folder(round_id: str) -> str:
    """Where the round's published WARC files, CDXJ files and journals are."""
    return f"warc/{round_id}"


def progress_folder(round_id: str) -> str:
    """Where fetch tasks write their figures every 10 s, one JSON file a partition."""
    return f"control/rounds/{round_id}/progress"


def steps_folder(round_id: str) -> str:
    """Where each finished step leaves its summary, one JSON file a step."""
    return f"control/rounds/{round_id}/steps"


#: Append-only events of people, one small JSON file each (rule R7).
INBOX_FOLDER = "control/inbox"

#: The lease of the storage root (rule R7).
LEASE_FILE = "control/lease.json"
