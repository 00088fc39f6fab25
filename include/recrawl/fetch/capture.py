"""From an engine's answer to a capture: outcome, digests, sniffed type, WARC exchange."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from recrawl.fetch.dns import host_name, is_literal
from recrawl.fetch.engine import EngineAnswer
from recrawl.fetch.heads import ResponseHeaders
from recrawl.mime import sniff
from recrawl.tables.vocabulary import Outcome, TruncatedReason
from recrawl.warc.decoding import StreamDecoder, decode_whole
from recrawl.warc.digests import labelled_sha1
from recrawl.warc.records import Exchange, Lookup, RevisitOf

#: The sniffing table of the WHATWG looks at this many bytes.
_SNIFF_BYTES = 1_445
_FORBIDDEN = frozenset({401, 402, 403, 407, 451})


class Digests(NamedTuple):
    """What reading a body once told.

    Attributes:
        payload: "sha1:" and base 32 of the entity as sent.
        checksum: first 64 bits of SHA-256 of the decoded body, signed, big-endian, as
            `recrawl.urls.keys.content_checksum`.
        decoded_bytes: length of the decoded body, at most the cap.
        start: its first bytes.
        is_cut: the decoded body passed the cap.
    """

    payload: str
    checksum: int
    decoded_bytes: int
    start: bytes
    is_cut: bool


def outcome_of(answer: EngineAnswer, has_location: bool) -> Outcome:
    """How a try ended, from the answer alone."""
    if answer.failure is not None:
        return answer.failure
    status = answer.status
    if status is None:
        return Outcome.OK if answer.request.url.startswith("ftp:") else Outcome.PROTOCOL_ERROR
    if 200 <= status < 300:
        return Outcome.OK
    if status == 304:
        return Outcome.NOT_MODIFIED
    if 300 <= status < 400:
        return Outcome.REDIRECT if has_location else Outcome.INVALID_URL
    if 400 <= status < 500:
        if status in _FORBIDDEN:
            return Outcome.FORBIDDEN
        return {404: Outcome.NOT_FOUND, 410: Outcome.GONE, 429: Outcome.RATE_LIMITED}.get(status, Outcome.CLIENT_ERROR)
    return Outcome.SERVER_ERROR if 500 <= status < 600 else Outcome.PROTOCOL_ERROR


def digests_of(answer: EngineAnswer, whole: bytes | None, headers: ResponseHeaders, max_bytes: int) -> Digests:
    """Read the body once: digest of what was sent, checksum and length of what it decodes to.

    Args:
        whole: the body where it is at hand in one piece.
    """
    encodings = headers.encodings()
    if whole is not None:
        content = decode_whole(encodings, whole, max_bytes) if encodings else whole
        if content is not None:
            payload = hashlib.sha1(whole, usedforsecurity=False)
            return _digests(payload, hashlib.sha256(content), len(content), content[:_SNIFF_BYTES], False)
    payload = hashlib.sha1(usedforsecurity=False)
    decoded = hashlib.sha256()
    decoder = StreamDecoder(encodings, max_bytes) if encodings else None
    start = b""
    decoded_bytes = 0
    for piece in answer.body.pieces():
        payload.update(piece)
        if decoder is not None:
            piece = decoder.feed(piece)
        decoded.update(piece)
        decoded_bytes += len(piece)
        if len(start) < _SNIFF_BYTES:
            start += piece[: _SNIFF_BYTES - len(start)]
    return _digests(payload, decoded, decoded_bytes, start, decoder is not None and decoder.cut)


def _digests(payload: hashlib._Hash, decoded: hashlib._Hash, decoded_bytes: int, start: bytes, is_cut: bool) -> Digests:
    return Digests(
        labelled_sha1(payload),
        int.from_bytes(decoded.digest()[:8], "big", signed=True),
        decoded_bytes,
        start,
        is_cut,
    )


def decoded_body(answer: EngineAnswer, headers: ResponseHeaders, max_bytes: int) -> bytes:
    """The decoded body, at most `max_bytes` of it."""
    decoder = StreamDecoder(headers.encodings(), max_bytes)
    return b"".join(decoder.feed(piece) for piece in answer.body.pieces())


def sniffed_type(content_type: str | None, start: bytes) -> str | None:
    """The media type that the body shows; None for an empty one."""
    return sniff(content_type, start) if start else None


def exchange_of(
    answer: EngineAnswer,
    whole: bytes | None,
    payload_digest: str,
    truncated: TruncatedReason | None,
    revisit: RevisitOf | None,
    metadata: Mapping[str, str],
    ip: str | None,
    content_type: str,
) -> Exchange:
    """The WARC exchange of an answer that has a response head (or came by FTP, which has no heads)."""
    return Exchange(
        url=answer.request.url,
        started_at=answer.started_at,
        ip=ip,
        request_head=answer.request_head,
        response_head=answer.response_head,
        body=answer.body.stream() if whole is None else whole,  # type: ignore[arg-type]
        body_bytes=answer.body.size_bytes,
        payload_digest=payload_digest,
        truncated=truncated,
        revisit=revisit,
        metadata=metadata,
        content_type=content_type,
    )


def lookup_of(answer: EngineAnswer) -> Lookup | None:
    """What the name of the host resolved to; None where the URL has an address, or that is not known.

    Where libcurl asked the system's resolver, only the address that it chose is known.
    """
    name = host_name(answer.request.host)
    addresses = answer.request.addresses or ((answer.ip,) if answer.ip else ())
    may_be_literal = ":" in name or name[-1:].isdigit()
    if not addresses or not name.isascii() or (may_be_literal and is_literal(name)):
        return None
    return Lookup(name, tuple(addresses), answer.started_at)


def timings_of(answer: EngineAnswer) -> dict[str, str]:
    """Fields of the metadata record: milliseconds from the start (the first is that of WARC 1.1, 6.6), TLS faults."""
    fields = {"fetchTimeMs": str(round(answer.total_seconds * 1000))}
    for name, seconds in (
        ("dnsTimeMs", answer.dns_seconds),
        ("connectTimeMs", answer.connect_seconds),
        ("firstByteTimeMs", answer.first_byte_seconds),
    ):
        if seconds is not None:
            fields[name] = f"{seconds * 1000:.1f}"
    if answer.tls_problem:
        fields["invalidCertificate"] = answer.tls_problem
    return fields
