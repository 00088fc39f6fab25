"""Keys derived from URLs and contents: 64-bit ids, buckets, SURTs.

`url_id` equals Spark's `xxhash64(url)` (seed 42), so Python, SQL and other engines agree on
it; NULL hashes to 42 in Spark, hence ids are only made of URLs that exist.
"""

from __future__ import annotations

import hashlib

import xxhash

SPARK_XXHASH64_SEED = 42


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned


def url_id(canonical_url: str) -> int:
    """The signed 64-bit id of a canonical URL, equal to Spark's `xxhash64(url)`."""
    return _signed(xxhash.xxh64_intdigest(canonical_url.encode("utf-8"), SPARK_XXHASH64_SEED))


def bucket_of(host: str, buckets: int) -> int:
    """The bucket of a host: `pmod(xxhash64(host), buckets)`, 0 <= bucket < buckets."""
    return _signed(xxhash.xxh64_intdigest(host.encode("utf-8"), SPARK_XXHASH64_SEED)) % buckets


def content_checksum(body: bytes) -> int:
    """The first 64 bits of SHA-256 of a decoded body, signed, big-endian."""
    return int.from_bytes(hashlib.sha256(body).digest()[:8], "big", signed=True)
