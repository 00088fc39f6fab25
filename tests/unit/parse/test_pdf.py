"""PDF documents, sound and not."""

from __future__ import annotations

import zlib

import pytest

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.tables.vocabulary import LinkKind, ParseOutcome


def pdf_of(pages: list[str], links: list[str], packed: bool = False) -> bytes:
    """A PDF by hand: a line of text a page, links on the first, and an information dictionary."""
    objects: list[bytes] = [b"", b""]
    kids = []
    annotations = " ".join(
        f"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI({url})>>>>" for url in links
    ).encode()
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode("latin-1")
        stream = zlib.compress(stream) if packed else stream
        coding = b"/Filter/FlateDecode" if packed else b""
        objects.append(b"<<%s/Length %d>>stream\n%s\nendstream" % (coding, len(stream), stream))
        annotated = b"/Annots[%s]" % annotations if number == 0 and links else b""
        font = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>>>>>"
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources %s/Contents %d 0 R%s>>"
            % (font, len(objects), annotated)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    objects.append(b"<</Title(The  harbour)/Author(Ann)/CreationDate(D:20240506120000Z)/Producer(by hand)>>")
    body = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF" % (count, len(objects), len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % count + table + trailer


def parsed(body: bytes, settings: Parse | None = None, want_text: bool = True) -> ParsedPage:
    capture = Capture("http://e.example/a.pdf", "application/pdf", body, None, 0, "recrawl", want_text)
    return parse_capture(capture, settings or Parse())


SENTENCE = "The harbour lies at the edge of the town and ships come and go all day long."


@pytest.mark.parametrize("packed", [False, True])
def test_title_text_links_and_date(packed: bool) -> None:
    page = parsed(pdf_of([SENTENCE, "See http://e.example/more today."], ["http://e.example/x", "rel.pdf"], packed))
    assert (page.handler, page.parse_outcome, page.detail) == ("pdf", ParseOutcome.OK, "")
    assert (page.title, page.author, page.published_at_text) == ("The harbour", "Ann", "2024-05-06")
    assert page.text is not None and page.text.split() == f"{SENTENCE} See http://e.example/more today.".split()
    assert (page.language, page.metadata) == ("en", {"pages": "2", "producer": "by hand"})
    assert page.text_checksum is not None and page.quality is not None
    assert [(link.kind, link.url) for link in page.links] == [
        (LinkKind.A, "http://e.example/x"),
        (LinkKind.A, "http://e.example/rel.pdf"),
        (LinkKind.TEXT, "http://e.example/more"),
    ]


def test_text_is_left_out_where_it_is_not_wanted() -> None:
    for page in (
        parsed(pdf_of([SENTENCE], ["http://e.example/x"]), want_text=False),
        parsed(pdf_of([SENTENCE], ["http://e.example/x"]), Parse(text_extractor="none")),
    ):
        assert (page.title, page.text, len(page.links)) == ("The harbour", None, 1)


def test_a_pdf_whose_table_is_lost_is_still_read() -> None:
    body = pdf_of([SENTENCE], ["http://e.example/x"])
    page = parsed(body.replace(b"startxref\n", b"startxref\n9"))
    assert page.text is not None and "harbour" in page.text
    assert [link.url for link in page.links] == ["http://e.example/x"]


@pytest.mark.parametrize("body", [b"%PDF-1.7", b"%PDF-1.4\n" + b"\xff" * 2_000, pdf_of(["x"], [])[:200]])
def test_what_is_no_pdf_fails_with_a_reason(body: bytes) -> None:
    page = parsed(body)
    assert page.parse_outcome in (ParseOutcome.FAILED, ParseOutcome.PARTIAL)
    assert page.detail


def test_a_stream_that_unpacks_to_gigabytes_is_killed_or_cut() -> None:
    zeros = zlib.compressobj(9)
    bomb = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(1024)) + zeros.flush()
    body = pdf_of(["x"], []).replace(b"/Contents 3 0 R", b"/Contents 99 0 R")
    stream = b"99 0 obj\n<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\n" % (len(bomb), bomb)
    body = body.replace(b"xref\n0", stream + b"xref\n0", 1)
    page = parsed(body.replace(b"startxref\n", b"startxref\n9"), Parse(max_memory_mib=256, timeout_seconds=10))
    assert page.parse_outcome in (ParseOutcome.FAILED, ParseOutcome.PARTIAL, ParseOutcome.TIMEOUT)
    assert page.detail
