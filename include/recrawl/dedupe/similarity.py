"""How alike two MinHash signatures say that two texts are: in Python, and as SQL for the job.

A signature is 128 values of 4 bits, 16 in each of 8 signed numbers (`recrawl.parse.minhash`).
"""

from __future__ import annotations

from collections.abc import Sequence

VALUES = 128
_WORDS = 8
_LOW_BITS = 0x1111111111111111

#: Two texts of at least this estimated Jaccard similarity are near-duplicates.
NEAR_SIMILARITY = 0.8
#: Contents that share a band with one another, above which the band is left aside: boilerplate, not
#: likeness. With 16 bands a page has at most 16 * 62 = 992 candidates.
MAX_CONTENTS_PER_BAND = 62


def similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """The estimated Jaccard similarity; below 0 where fewer values agree than by chance."""
    equal = 0
    for a, b in zip(one, other, strict=True):
        differing = (a ^ b) & 0xFFFFFFFFFFFFFFFF
        differing |= differing >> 2
        differing |= differing >> 1
        equal += 16 - (differing & _LOW_BITS).bit_count()
    # Values of different minima agree in one of 16 cases (Li & König 2010, theorem 1, for large sets).
    return (equal / VALUES - 1 / 16) / (1 - 1 / 16)


def similarity_sql(one: str, other: str) -> str:
    """SQL of `similarity` over two columns ARRAY<BIGINT>; DOUBLE."""
    differing = []
    for place in range(_WORDS):
        halved = f"({one}[{place}] ^ {other}[{place}])"
        halved = f"({halved} | shiftrightunsigned({halved}, 2))"
        differing.append(f"bit_count(({halved} | shiftrightunsigned({halved}, 1)) & {_LOW_BITS}L)")
    equal = f"({VALUES} - ({' + '.join(differing)}))"
    return f"(({equal} / {VALUES}D - 0.0625D) / 0.9375D)"
