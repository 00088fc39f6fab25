"""CDXJ indexes: one sorted line a capture, as pywb and OutbackCDX read them."""

from __future__ import annotations

import json
from pathlib import Path

from recrawl.errors import WarcError
from recrawl.urls.canonical import canonical_with
from recrawl.urls.domains import surt
from recrawl.warc.reader import StoredCapture, iterate
from recrawl.warc.records import RecordPlace

REVISIT_MIME = "warc/revisit"

#: What look-up keys of archives leave out of a URL, in the words of `recrawl.urls.rules`.
_KEY_RULES = ("drop_userinfo", "drop_fragment", "trailing_dot", "sort_query")


def cdxj_lines(warc_path: Path, warc_name: str) -> list[str]:
    """The sorted CDXJ lines of a WARC file's response and revisit records.

    A line is the SURT key, the 14-digit time and a JSON object whose values are text: url, mime,
    status, digest, length, offset, filename.

    Args:
        warc_path: the local file.
        warc_name: its name as readers of the index will look for it.

    Raises:
        WarcError: the file can't be read.
    """
    try:
        with warc_path.open("rb") as file:
            lines = [
                _line(place, capture, warc_name)
                for place, capture in iterate(file, max_bytes=0)
                if capture.record_type in ("response", "revisit")
            ]
    except OSError as error:
        raise WarcError(f"The WARC file {warc_path} can't be read: {error.strerror}.") from None
    # By bytes, as binary searches in such files compare.
    return sorted(lines, key=str.encode)


def write_cdxj(warc_path: Path, cdxj_path: Path, warc_name: str) -> int:
    """Write the CDXJ index of a WARC file; the number of its lines.

    Raises:
        WarcError: the WARC file can't be read or the index can't be written.
    """
    lines = cdxj_lines(warc_path, warc_name)
    try:
        cdxj_path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise WarcError(f"The index {cdxj_path} can't be written: {error.strerror}.") from None
    return len(lines)


def _line(place: RecordPlace, capture: StoredCapture, warc_name: str) -> str:
    content_type = next((value for name, value in capture.http_headers if name.lower() == "content-type"), "")
    mime = content_type.partition(";")[0].strip().lower()
    fields = {
        "url": capture.url,
        "mime": REVISIT_MIME if capture.record_type == "revisit" else mime or "unk",
        "status": "-" if capture.status is None else str(capture.status),
        "digest": capture.payload_digest or "-",
        "length": str(place.length),
        "offset": str(place.offset),
        "filename": warc_name,
    }
    return f"{_key(capture.url)} {place.date:%Y%m%d%H%M%S} {json.dumps(fields, ensure_ascii=False)}"


def _key(url: str) -> str:
    """The SURT of the URL's canonical form; a URL that has none is its own key."""
    canonical_url = canonical_with(url, _KEY_RULES)
    return "".join(url.split()) if canonical_url is None else surt(canonical_url)
