"""HTTP response heads: the few headers that a crawler reads."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from recrawl.warc.decoding import content_encodings


class ResponseHeaders:
    """The headers of a response head as received; names without case, values as latin-1 text."""

    __slots__ = ("_fields",)

    def __init__(self, head: bytes) -> None:
        self._fields: dict[str, list[str]] = {}
        last: list[str] | None = None
        for line in head.decode("latin-1").split("\n")[1:]:
            if line[:1] in (" ", "\t") and last:  # obsolete line folding, RFC 9112, section 5.2
                last[-1] = f"{last[-1]} {line.strip()}".strip()
                continue
            name, colon, value = line.partition(":")
            if colon:
                last = self._fields.setdefault(name.strip().lower(), [])
                last.append(value.strip())

    def first(self, name: str) -> str | None:
        """The first non-empty value of a header (lower-case name); None without one."""
        return next((value for value in self._fields.get(name, ()) if value), None)

    def joined(self, name: str) -> str | None:
        """All values of a header, joined by newlines; None without one."""
        return "\n".join(self._fields[name]) if name in self._fields else None

    def encodings(self) -> list[str]:
        """The content encodings in the order in which they were applied."""
        values = self._fields.get("content-encoding")
        return content_encodings(values) if values else []


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """What a Retry-After header asks for (RFC 9110, section 10.2.3): seconds or an HTTP date.

    None where the header is absent or is neither; a date in the past is 0.
    """
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
