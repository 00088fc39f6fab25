"""A second opinion on a WARC file: warcio, which shares no code with what wrote or checked it.

An archive is read by others' programs: what only our own reader understands is not published well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class SecondOpinion:
    """What warcio read of a file.

    Attributes:
        offsets: where each record begins, in bytes.
        problems: digests that do not agree, and what stopped it; empty is a pass.
    """

    offsets: tuple[int, ...]
    problems: tuple[str, ...]


def second_opinion(stream: BinaryIO) -> SecondOpinion:
    """Read a gzipped WARC file with warcio, block and payload digests checked.

    Raises:
        OSError: the stream can't be read.
    """
    offsets: list[int] = []
    problems: list[str] = []
    records = ArchiveIterator(stream, check_digests=True)
    try:
        for record in records:
            # As stored: what a body decodes to is in no digest.
            while record.raw_stream.read(_READ_BYTES):
                continue
            offset = records.get_record_offset()
            offsets.append(offset)
            problems += [f"byte {offset:,}: warcio says: {problem}" for problem in record.digest_checker.problems]
    except ArchiveLoadFailed as error:
        problems.append(f"warcio reads {len(offsets):,} records and stops: {' '.join(str(error).split())}")
    return SecondOpinion(tuple(offsets), tuple(problems))
