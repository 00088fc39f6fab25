"""Audio and video: format, duration, title and tags, from their headers alone.

Optional: without the package tinytag (`pip install recrawl[media]`) these types have no handler. The
crawl takes such files only where `urls.blocked_extensions` lets them through.
"""

from __future__ import annotations

from io import BytesIO

from recrawl.parse.capture import MAX_STATED_CHARACTERS, MAX_TITLE_CHARACTERS, ParsedPage
from recrawl.parse.documents import Document, Handler
from recrawl.parse.html import collapsed
from recrawl.tables.vocabulary import ParseOutcome

_AUDIO = (
    "mpeg",
    "mp3",
    "mp4",
    "x-m4a",
    "aac",
    "ogg",
    "opus",
    "wave",
    "wav",
    "x-wav",
    "flac",
    "x-flac",
    "aiff",
    "basic",
)
_VIDEO = ("mp4", "webm", "ogg", "avi", "x-msvideo", "quicktime", "x-matroska", "x-ms-wmv")
#: Tags that are kept, as tinytag names them.
_TAGS = ("album", "genre", "year", "track", "composer", "comment")
_FIGURES = {"samplerate": "sample_rate_hertz", "channels": "channels", "bitrate": "bit_rate_kbps"}


def parse_media(document: Document, page: ParsedPage) -> None:
    """Fill title, author and `page.metadata`; nothing is decoded.

    Of a format that tinytag does not read, format and size are stated, as PARTIAL.
    """
    from tinytag import TinyTag, TinyTagException

    page.metadata["format"] = document.media_type.partition("/")[2]
    page.metadata["bytes"] = str(len(document.capture.body))
    try:
        tag = TinyTag.get(file_obj=BytesIO(document.body))
    except TinyTagException as error:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"no header that can be read: {error}"[:MAX_STATED_CHARACTERS]
        return
    page.title = collapsed(tag.title or "")[:MAX_TITLE_CHARACTERS] or None
    page.author = collapsed(tag.artist or "")[:MAX_STATED_CHARACTERS] or None
    if tag.duration:
        page.metadata["duration_seconds"] = f"{tag.duration:.1f}"
    for name, key in _FIGURES.items():
        if getattr(tag, name):
            page.metadata[key] = f"{getattr(tag, name):.0f}"
    for name in _TAGS:
        if getattr(tag, name):
            page.metadata[name] = collapsed(str(getattr(tag, name)))[:MAX_STATED_CHARACTERS]


HANDLER = Handler(
    "media",
    frozenset({f"audio/{name}" for name in _AUDIO} | {f"video/{name}" for name in _VIDEO} | {"application/ogg"}),
    parse_media,
    requires="tinytag",
)
