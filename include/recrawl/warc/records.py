"""What goes into a WARC file and what comes back: plain values, no input or output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Literal, NamedTuple

from recrawl.errors import WarcError
from recrawl.tables.vocabulary import TruncatedReason

RevisitProfile = Literal["server-not-modified", "identical-payload-digest"]

#: The start of the WARC-Profile of revisit records (WARC 1.1, 6.7).
PROFILE_PREFIX = "http://netpreserve.org/warc/1.1/revisit/"

#: What headers are kept under that tell of the answer on its way but not of the body as stored.
RENAMED_TRANSFER_ENCODING = b"X-Crawler-Transfer-Encoding"
RENAMED_CONTENT_LENGTH = b"X-Crawler-Content-Length"

_TRANSFER_ENCODING = re.compile(rb"^Transfer-Encoding(?=[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_CONTENT_LENGTH = re.compile(
    rb"^Content-Length(?P<rest>[ \t]*:[ \t]*(?P<value>[^\r\n]*?)[ \t]*\r?)$", re.IGNORECASE | re.MULTILINE
)
_NEWER_STATUS_LINE = re.compile(rb"HTTP/([23])(?:\.0)?[ \t]+(\d{3})[ \t]*([^\r\n]*)")
_NEWER_VERSION = re.compile(rb" HTTP/[23](?:\.0)?[ \t]*\r?$")
_BLANK_LINES = re.compile(rb"(?:\r?\n){2,}")


@dataclass(frozen=True)
class RevisitOf:
    """The earlier capture whose content an exchange repeats.

    Attributes:
        profile: the server said so (304), or the payload has the same digest.
        refers_to_record_id: WARC-Record-ID of the earlier response, as `RecordPlace` gives it.
        refers_to_uri: its WARC-Target-URI.
        refers_to_date: its WARC-Date.
    """

    profile: RevisitProfile
    refers_to_record_id: str | None
    refers_to_uri: str | None
    refers_to_date: datetime | None


@dataclass(frozen=True)
class Exchange:
    """One request and its answer.

    Attributes:
        url: the URL requested.
        started_at: when the request was sent; aware.
        ip: the address that answered.
        request_head: request line, headers and blank line as sent; empty for ftp.
        response_head: status line, headers and blank line as received; of the last answer
            only, without interim (1xx) ones; empty for ftp.
        body: the entity with its transfer coding removed and its content encoding kept; a
            stream must be seekable, its body begins at its current position.
        body_bytes: the length of `body`.
        payload_digest: "sha1:" and base 32 of the payload; for a revisit, of the earlier
            payload; empty when it is not known.
        truncated: why the body was cut, if it was.
        revisit: set when the content stands in an earlier record; the body is not stored then.
        metadata: fields of the metadata record, such as fetchTimeMs; none is written if empty.
        content_type: media type of the body where there is no response head to say it.
    """

    url: str
    started_at: datetime
    ip: str | None
    request_head: bytes
    response_head: bytes
    body: BinaryIO | bytes
    body_bytes: int
    payload_digest: str
    truncated: TruncatedReason | None
    revisit: RevisitOf | None
    metadata: Mapping[str, str]
    content_type: str = ""


class Lookup(NamedTuple):
    """A host name and what it resolved to.

    Attributes:
        name: the host name, without port.
        addresses: IPv4 and IPv6 addresses; one at least.
        looked_up_at: when, at the latest; aware.
    """

    name: str
    addresses: tuple[str, ...]
    looked_up_at: datetime

    def answers(self) -> list[tuple[str, bytes]]:
        """(URI of RFC 4501, block of text/dns) for each type of address.

        The block has the text form of RFC 2540, section 4: the time, then the records as in a master
        file (RFC 1035, section 5.1), without a TTL, which resolvers do not tell.
        """
        found = []
        for record_type, query in (("A", ""), ("AAAA", "?type=AAAA")):
            addresses = [address for address in self.addresses if (":" in address) == (record_type == "AAAA")]
            if addresses:
                lines = [f"{self.looked_up_at.astimezone(UTC):%Y%m%d%H%M%S}"]
                lines += [f"{self.name}. IN {record_type} {address}" for address in addresses]
                found.append((f"dns:{self.name}{query}", "".join(f"{line}\r\n" for line in lines).encode("ascii")))
        return found


class RecordPlace(NamedTuple):
    """Where a record stands: byte offset and compressed length in its file."""

    offset: int
    length: int
    record_id: str
    date: datetime


class PartSummary(NamedTuple):
    """A finished WARC file: its size, its records of any type, and the dates of its captures.

    A file without captures is dated by its warcinfo record.
    """

    bytes: int
    records: int
    sha256: str
    first_date: datetime
    last_date: datetime


def stored_response_head(head: bytes, body_bytes: int | None = None) -> tuple[bytes, str | None]:
    """The response head as it is stored, and its WARC-Protocol when that is not HTTP/1.

    A stored head must not contradict the stored body, which has no transfer coding and may be
    truncated: the header Transfer-Encoding is renamed, as archives do, and so is a Content-Length
    that is not that of the body (there it tells what the body lacks). Content codings stay. HTTP/2
    and HTTP/3 have no textual head; theirs is written in the form of HTTP/1.1. Exactly one blank
    line ends the head and none is inside it.

    Args:
        body_bytes: length of the stored body; None where it is left out on purpose (a revisit).

    Raises:
        WarcError: the head does not begin with an HTTP status line.
    """
    head = _TRANSFER_ENCODING.sub(RENAMED_TRANSFER_ENCODING, _one_blank_line(head))
    if body_bytes is not None:
        head = _with_true_length(head, b"%d" % body_bytes)
    if not head.startswith(b"HTTP/"):
        raise WarcError(f"An answer whose head begins with {head[:20]!r} is not HTTP; it can't be stored as such.")
    newer = _NEWER_STATUS_LINE.match(head)
    if newer is None:
        return head, None
    return b"HTTP/1.1 %b %b" % (newer[2], newer[3]) + head[newer.end() :], f"h{newer[1].decode()}"


def _with_true_length(head: bytes, length: bytes) -> bytes:
    for found in reversed(list(_CONTENT_LENGTH.finditer(head))):
        if found["value"] != length:
            head = head[: found.start()] + RENAMED_CONTENT_LENGTH + found["rest"] + head[found.end() :]
    return head


def stored_request_head(head: bytes) -> bytes:
    """The request head as it is stored: in the form of HTTP/1.1, ended by one blank line."""
    head = _one_blank_line(head)
    line_bytes = head.find(b"\n")
    # The engines speak HTTP/1 almost always, and a search costs less than a pattern.
    if head.find(b" HTTP/1.", 0, line_bytes) >= 0:
        return head
    line = head[:line_bytes]
    end = b" HTTP/1.1\r" if line.endswith(b"\r") else b" HTTP/1.1"
    return _NEWER_VERSION.sub(end, line) + head[line_bytes:]


def _one_blank_line(head: bytes) -> bytes:
    # The usual head is left alone; the first blank line would end any other too early.
    head = head.lstrip(b"\r\n")
    if head.endswith(b"\r\n\r\n") and head.find(b"\n\r\n") == len(head) - 3 and b"\n\n" not in head:
        return head
    return _BLANK_LINES.sub(b"\r\n", head.rstrip(b"\r\n")) + b"\r\n\r\n"


def warc_date(moment: datetime) -> str:
    """WARC-Date: UTC with microseconds, as WARC 1.1 allows. Raises WarcError for a naive time."""
    if moment.tzinfo is None:
        raise WarcError(f"The time {moment.isoformat()} has no zone.")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_warc_date(text: str) -> datetime:
    """The moment of a WARC-Date, which may have any precision down to nanoseconds.

    Raises:
        ValueError: the text is no WARC-Date with at least a day.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no WARC-Date")
    day, clock, fraction = match[1], match[2] or "00:00:00", (match[3] or "")[:6]
    if len(clock) == 5:
        clock += ":00"
    return datetime.fromisoformat(f"{day}T{clock}.{fraction:0<6}+00:00").replace(tzinfo=UTC)


_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?Z)?")
