"""PDF: title, author, date, text and links, through pypdf.

A PDF is a program more than a text: pages may refer to each other in circles and streams unpack to
a thousand times their size, so each is read in a child process that can be killed.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from recrawl.parse.capture import MAX_STATED_CHARACTERS, MAX_TITLE_CHARACTERS, FoundLink, ParsedPage
from recrawl.parse.documents import Document, Handler
from recrawl.parse.html import collapsed
from recrawl.parse.monitor import watched
from recrawl.parse.plain import text_links
from recrawl.parse.text import add_text
from recrawl.parse.text import prepare as prepare_text
from recrawl.tables.vocabulary import LinkKind, ParseOutcome
from recrawl.urls.canonical import parse

#: Pages that are read, and characters of text that are kept.
MAX_PAGES = 500
MAX_TEXT_CHARACTERS = 2_000_000

_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


def parse_pdf(document: Document, page: ParsedPage) -> None:
    """Fill `page` from a PDF; one that is damaged or locked gives what can be had, as PARTIAL."""
    import logging

    from pypdf import PdfReader

    # It warns of each oddity of each file.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = PdfReader(BytesIO(document.body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = "locked by a password"
        return
    _add_information(reader, page)
    texts: list[str] = []
    faults = 0
    for number, sheet in enumerate(reader.pages):
        if number >= MAX_PAGES or sum(map(len, texts)) >= MAX_TEXT_CHARACTERS:
            page.parse_outcome = ParseOutcome.PARTIAL
            page.detail = f"cut after {number} pages"
            break
        faults += _add_annotations(sheet, document.capture.url, page)
        if document.capture.want_text and document.settings.text_extractor != "none":
            try:
                texts.append(sheet.extract_text())
            except Exception:  # one damaged page of many
                faults += 1
    if faults:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"{faults} pages or annotations can't be read"
    text = "\n".join(texts).strip()[:MAX_TEXT_CHARACTERS]
    known = {link.url for link in page.links}
    page.links += [link for link in text_links(text) if link.url not in known]
    page.watched = watched(document.settings.monitors, document.capture.url, page.title, text)
    add_text(page, text or None, 0, None, document.settings.unwanted_words, document.capture.duplicate_share)


def _add_information(reader: Any, page: ParsedPage) -> None:
    page.metadata["pages"] = str(len(reader.pages))
    information = reader.metadata
    if information is None:
        return
    page.title = _text(information.title, MAX_TITLE_CHARACTERS)
    page.author = _text(information.author, MAX_STATED_CHARACTERS)
    for name, value in (("producer", information.producer), ("subject", information.subject)):
        if stated := _text(value, MAX_STATED_CHARACTERS):
            page.metadata[name] = stated
    date = _DATE.match(_text(information.creation_date_raw, MAX_STATED_CHARACTERS) or "")
    if date is not None:
        page.published_at_text = "-".join(part for part in date.groups() if part)


def _text(value: Any, most: int) -> str | None:
    return collapsed(str(value))[:most] or None if value is not None else None


def _add_annotations(sheet: Any, page_url: str, page: ParsedPage) -> int:
    """The links that stand on a sheet; how many can't be read."""
    faults = 0
    try:
        annotations = list(sheet.get("/Annots") or ())
    except Exception:
        return 1
    for annotation in annotations:
        try:
            action = annotation.get_object().get("/A")
            raw = None if action is None else action.get_object().get("/URI")
        except Exception:
            faults += 1
            continue
        if isinstance(raw, bytes):
            raw = raw.decode("utf-8", "replace")
        if isinstance(raw, str) and raw.strip():
            page.links.append(FoundLink(parse(raw, page_url) or "", raw.strip(), LinkKind.A, "", ""))
    return faults


def prepare(document: Document) -> None:
    """Load the library once, and what the text needs."""
    import pypdf  # noqa: F401

    prepare_text(document)


HANDLER = Handler("pdf", frozenset({"application/pdf"}), parse_pdf, prepare=prepare)
