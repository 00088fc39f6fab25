"""CDXJ indexes: one sorted line a capture, as pywb and OutbackCDX read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from recrawl.errors import WarcError
from recrawl.urls.canonical import canonical_with
from recrawl.urls.domains import surt
from recrawl.warc.reader import StoredCapture, iterate, parse_response_head
from recrawl.warc.records import RecordPlace

#: Records that an index lists.
INDEXED_TYPES = frozenset({"response", "revisit", "resource"})

REVISIT_MIME = "warc/revisit"

_SLASHES = re.compile(r"/{2,}")

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_FOLD_START = re.compile(rb"\n[ \t]")
_CONTENT_TYPE = re.compile(rb"^content-type[ \t]*:([^\n]*)", re.IGNORECASE | re.MULTILINE)

#: What look-up keys of archives leave out of a URL, in the words of `recrawl.urls.rules`.
_KEY_RULES = ("drop_userinfo", "drop_fragment", "trailing_dot", "sort_query")


_encoded = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class IndexEntry(NamedTuple):
    """What the index says of a capture.

    Attributes:
        offset: where its record begins, in bytes.
        length: its compressed length in bytes.
        mime: the declared media type (a resource's own), `REVISIT_MIME` or "unk".
        digest: the labelled payload digest; empty when it is not known.
    """

    url: str
    date: datetime
    offset: int
    length: int
    mime: str
    status: int | None
    digest: str


def index_entry(
    url: str, place: RecordPlace, response_head: bytes, payload_digest: str, *, is_revisit: bool, content_type: str = ""
) -> IndexEntry:
    """The entry of a capture that has just been written; the same as that of the record read back.

    Args:
        content_type: of the block, where there is no response head.
    """
    status, declared = _status_and_type(response_head)
    mime = REVISIT_MIME if is_revisit else _media_type(content_type or declared)
    return IndexEntry(url, place.date.astimezone(UTC), place.offset, place.length, mime, status, payload_digest)


def cdxj_lines(entries: Iterable[IndexEntry], warc_name: str) -> list[str]:
    """The sorted CDXJ lines of captures.

    A line is the SURT key, the 14-digit time and a JSON object whose values are text: url, mime,
    status, digest, length, offset, filename.

    Args:
        warc_name: the WARC file's name as readers of the index will look for it.
    """
    # By bytes, as binary searches in such files compare.
    return sorted((_line(entry, warc_name) for entry in entries), key=str.encode)


def read_entries(warc_path: Path) -> list[IndexEntry]:
    """The entries of a local WARC file's response, revisit and resource records.

    Raises:
        WarcError: the file can't be read.
    """
    try:
        with warc_path.open("rb") as file:
            return [
                _entry(place, capture)
                for place, capture in iterate(file, max_bytes=0)
                if capture.record_type in INDEXED_TYPES
            ]
    except OSError as error:
        raise WarcError(f"The WARC file {warc_path} can't be read: {error.strerror}.") from None


def write_cdxj(entries: Iterable[IndexEntry], cdxj_path: Path, warc_name: str) -> int:
    """Write the CDXJ index of captures; the number of its lines.

    Raises:
        WarcError: the index can't be written.
    """
    lines = cdxj_lines(entries, warc_name)
    try:
        cdxj_path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise WarcError(f"The index {cdxj_path} can't be written: {error.strerror}.") from None
    return len(lines)


def _entry(place: RecordPlace, capture: StoredCapture) -> IndexEntry:
    if capture.record_type == "revisit":
        mime = REVISIT_MIME
    elif capture.record_type == "resource":
        mime = _media_type(capture.content_type)
    else:
        mime = _declared_mime(capture.http_headers)
    return IndexEntry(capture.url, place.date, place.offset, place.length, mime, capture.status, capture.payload_digest)


def _status_and_type(head: bytes) -> tuple[int | None, str]:
    """The status and the first Content-Type of a head, as `parse_response_head` would have them."""
    status = _STATUS.match(head)
    if status is None or _FOLD_START.search(head):
        parsed, http_headers = parse_response_head(head)
        return parsed, next((value for name, value in http_headers if name.lower() == "content-type"), "")
    found = _CONTENT_TYPE.search(head)
    return int(status[1]), "" if found is None else found[1].decode("latin-1")


def _declared_mime(http_headers: list[tuple[str, str]]) -> str:
    return _media_type(next((value for name, value in http_headers if name.lower() == "content-type"), ""))


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or "unk"


def _line(entry: IndexEntry, warc_name: str) -> str:
    fields = {
        "url": entry.url,
        "mime": entry.mime,
        "status": "-" if entry.status is None else str(entry.status),
        "digest": entry.digest or "-",
        "length": str(entry.length),
        "offset": str(entry.offset),
        "filename": warc_name,
    }
    return f"{_key(entry.url)} {entry.date:%Y%m%d%H%M%S} {_encoded(fields)}"


def _key(url: str) -> str:
    """The SURT of the URL's canonical form, slashes in a row taken for one as readers of archives do.

    A URL that has no canonical form is its own key.
    """
    canonical_url = canonical_with(url, _KEY_RULES)
    if canonical_url is None:
        return "".join(url.split())
    front, mark, query = surt(canonical_url).partition("?")
    front = _SLASHES.sub("/", front)
    return f"{front if front.endswith(')/') else front.removesuffix('/')}{mark}{query}"
