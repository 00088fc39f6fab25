"""Signatures: near texts agree in most values and share a band, others do neither."""

from __future__ import annotations

import random
import statistics

import pytest

from recrawl.dedupe.similarity import NEAR_SIMILARITY, similarity
from recrawl.parse.minhash import BANDS, MIN_SHINGLES, Signature, signature_of

_draw = random.Random(5)
_WORDS = [f"word{number}" for number in range(4_000)]


def a_text(words: int) -> list[str]:
    """Random words."""
    return [_draw.choice(_WORDS) for _ in range(words)]


def edited(words: list[str], edits: int) -> list[str]:
    """The same words but `edits` of them."""
    changed = list(words)
    for place in _draw.sample(range(len(words)), edits):
        changed[place] = f"edit{place}"
    return changed


def signed(words: list[str]) -> Signature:
    """The signature of a text that has one."""
    signature = signature_of(" ".join(words))
    assert signature is not None
    return signature


def jaccard(one: list[str], other: list[str]) -> float:
    """The true similarity of two texts' shingles."""
    shingles = [{tuple(words[place : place + 3]) for place in range(len(words) - 2)} for words in (one, other)]
    return len(shingles[0] & shingles[1]) / len(shingles[0] | shingles[1])


@pytest.mark.parametrize("edits", [2, 6, 15])
def test_estimates_are_right_on_average(edits: int) -> None:
    errors = []
    for _ in range(40):
        one = a_text(300)
        other = edited(one, edits)
        errors.append(similarity(signed(one).words, signed(other).words) - jaccard(one, other))
    assert abs(statistics.mean(errors)) < 0.03
    assert statistics.stdev(errors) < 0.08


def test_near_texts_share_a_band_and_others_do_not() -> None:
    texts = [a_text(200) for _ in range(40)]
    near = [edited(text, 2) for text in texts]
    signatures, others = [signed(text) for text in texts], [signed(text) for text in near]
    assert all(set(a.bands) & set(b.bands) for a, b in zip(signatures, others, strict=True))
    assert all(similarity(a.words, b.words) >= NEAR_SIMILARITY for a, b in zip(signatures, others, strict=True))
    strangers = [(a, b) for place, a in enumerate(signatures) for b in signatures[:place]]
    assert not any(set(a.bands) & set(b.bands) for a, b in strangers)
    assert max(similarity(a.words, b.words) for a, b in strangers) < 0.3


def test_the_signature_of_a_text_never_changes() -> None:
    # Stored ones are compared with those of later programs.
    signature = signature_of(" ".join(f"w{number}" for number in range(50)))
    assert signature is not None
    assert (len(signature.bands), len(signature.words)) == (BANDS, 8)
    assert (signature.bands[0], signature.words[0]) == (6292815346383805698, 2814130706816726889)


def test_short_texts_have_none() -> None:
    assert signature_of("") is None
    assert signature_of(" ".join(f"w{number}" for number in range(MIN_SHINGLES + 1))) is None
    assert signature_of(" ".join(f"w{number}" for number in range(MIN_SHINGLES + 2))) is not None
    assert signature_of("the same words " * 100) is None


def test_texts_without_spaces_are_taken_by_characters() -> None:
    text = "".join(chr(0x4E00 + _draw.randrange(2_000)) for _ in range(400))
    one, other = signature_of(text), signature_of(text[:200] + "新" + text[200:])
    assert one is not None and other is not None
    assert similarity(one.words, other.words) > NEAR_SIMILARITY
