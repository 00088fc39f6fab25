"""Main text, its language and how much it is worth."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from itertools import pairwise
from typing import Literal

from recrawl.parse.capture import ParsedPage
from recrawl.parse.documents import Document
from recrawl.parse.normalised import text_checksum

_WORD = re.compile(r"\w+")
Extractor = Literal["trafilatura", "resiliparse", "none"]

#: Characters of a text that its language is guessed from.
LANGUAGE_CHARACTERS = 1_000
#: Characters below which a guess is worth nothing.
MIN_LANGUAGE_CHARACTERS = 20
#: Characters of a text at which its length counts for 63 % (1 - 1/e).
QUALITY_LENGTH_CHARACTERS = 800
#: A text of which a tenth are unwanted words is worth nothing.
UNWANTED_WEIGHT = 10
#: Words of a text that are looked at for repetition and for unwanted ones.
QUALITY_WORDS = 2_000


def add_text(
    page: ParsedPage,
    text: str | None,
    anchor_characters: int,
    declared_language: str | None,
    unwanted_words: Collection[str] = (),
    duplicate_share: float = 0.0,
) -> None:
    """Fill in main text, checksum where the document has none yet, quality and language.

    Args:
        text: main text; None where there is none.
        anchor_characters: characters of the texts of the page's links.
        declared_language: what the document says of its language, ISO 639-1.
        unwanted_words: words that lower the quality.
        duplicate_share: of its host's captures, those whose content another URL has.
    """
    page.language = declared_language
    if text is None:
        return
    page.text = text
    if page.text_checksum is None:
        page.text_checksum = text_checksum(text)
    page.quality = quality(text, anchor_characters, unwanted_words, duplicate_share)
    page.language = language_of_text(text) or declared_language


def main_text(html: str, extractor: Extractor) -> str | None:
    """The main text of a document, or None where there is none or `extractor` is none."""
    if extractor == "none":
        return None
    # Both libraries may stop at NUL; the HTML standard reads it as U+FFFD.
    html = html.replace("\0", "\ufffd")
    if not html.strip():
        return None
    if extractor == "resiliparse":
        from resiliparse.extract.html2text import extract_plain_text

        return extract_plain_text(html, main_content=True).strip() or None
    from trafilatura import bare_extraction

    # Lists and tables stay; comments of readers are no main text.
    found = bare_extraction(html, fast=True, include_comments=False)
    text = getattr(found, "text", None)
    return text.strip() or None if isinstance(text, str) else None


def language_of_text(text: str) -> str | None:
    """The ISO 639-1 code of a text's language; None when it is too short to tell."""
    sample = text[:LANGUAGE_CHARACTERS]
    if len(sample) < MIN_LANGUAGE_CHARACTERS:
        return None
    # Its model takes a third of a second to load: only when it is needed.
    import py3langid

    return str(py3langid.classify(sample)[0])


def prepare(document: Document) -> None:
    """Load what main text and language need, once, so that child processes inherit it."""
    extractor = document.settings.text_extractor
    if not document.capture.want_text or extractor == "none":
        return
    if extractor == "trafilatura":
        import trafilatura  # noqa: F401
    language_of_text("a text that is long enough to be looked at")


def quality(
    text: str, anchor_characters: int, unwanted_words: Collection[str] = (), duplicate_share: float = 0.0
) -> float:
    """How much a text is worth reading, 0 to 1: the product of five shares.

    - length: 1 - exp(-characters / 800); a stub is worth little, an article all.
    - prose: 1 - the share of link text in text and link text together; a page that only leads
      elsewhere is worth little.
    - novelty: distinct pairs of neighbouring words among all of them in the first 2,000 words;
      what repeats itself is boilerplate or spam. Text without spaces counts by pairs of
      characters, held against a fifth of them, since those repeat in any text.
    - wanted: 1 - ten times the share of unwanted words among the first 2,000.
    - own: 1 - half the share of duplicates among its host's captures; what a host of copies shows
      first is likely to be a copy too.

    Args:
        text: main text.
        anchor_characters: characters of the texts of the page's links.
        unwanted_words: single words; case does not matter.
        duplicate_share: 0 to 1.
    """
    characters = len(text)
    if not characters:
        return 0.0
    length = 1.0 - math.exp(-characters / QUALITY_LENGTH_CHARACTERS)
    prose = characters / (characters + max(0, anchor_characters))
    own = 1.0 - duplicate_share / 2.0
    return round(length * prose * _novelty(text) * _wanted(text, unwanted_words) * own, 4)


def _wanted(text: str, unwanted_words: Collection[str]) -> float:
    if not unwanted_words:
        return 1.0
    unwanted = {word.casefold() for word in unwanted_words}
    words = [word.casefold() for word in _WORD.findall(text[: 10 * QUALITY_WORDS])[:QUALITY_WORDS]]
    share = sum(word in unwanted for word in words) / max(1, len(words))
    return max(0.0, 1.0 - UNWANTED_WEIGHT * share)


def _novelty(text: str) -> float:
    words = text.split(maxsplit=QUALITY_WORDS)[:QUALITY_WORDS]
    if len(words) * 20 < min(len(text), 40 * QUALITY_WORDS):
        sample = text[:QUALITY_WORDS]
        return min(1.0, 5 * len(set(pairwise(sample))) / max(1, len(sample) - 1))
    pairs = len(words) - 1
    return len(set(pairwise(words))) / pairs if pairs > 0 else 1.0
