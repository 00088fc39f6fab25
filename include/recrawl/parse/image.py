"""Images: size in pixels and format, from their headers alone."""

from __future__ import annotations

from io import BytesIO

from recrawl.parse.capture import ParsedPage
from recrawl.parse.documents import Document, Handler
from recrawl.tables.vocabulary import ParseOutcome

_TYPES = ("png", "jpeg", "gif", "webp", "bmp", "x-icon", "vnd.microsoft.icon", "tiff", "svg+xml", "avif", "heic", "jp2")


def parse_image(document: Document, page: ParsedPage) -> None:
    """Fill `page.metadata` with `format`, `width_pixels` and `height_pixels`; no pixel is decoded."""
    page.metadata["format"] = document.media_type.partition("/")[2]
    page.metadata["bytes"] = str(len(document.capture.body))
    width, height = _size(document.body)
    if width <= 0 or height <= 0:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = "the header states no size"
        return
    page.metadata["width_pixels"] = str(width)
    page.metadata["height_pixels"] = str(height)


def _size(body: bytes) -> tuple[int, int]:
    """Width and height in pixels; (-1, -1) where they are not stated."""
    if body.startswith((b"\x00\x00\x01\x00", b"\x00\x00\x02\x00")):
        # An icon's folder: the first image's bytes 6 and 7, where 0 stands for 256.
        return ((body[6] or 256), (body[7] or 256)) if len(body) >= 8 else (-1, -1)
    import imagesize

    try:
        width, height = imagesize.get(BytesIO(body))
    except Exception:  # a header that lies breaks the reader in ways of its own
        return -1, -1
    return int(width), int(height)


HANDLER = Handler("image", frozenset(f"image/{name}" for name in _TYPES), parse_image, isolated=False)
