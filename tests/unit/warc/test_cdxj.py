"""The index agrees with cdxj-indexer, and its lines lead back to the captures."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta, timezone
from pathlib import Path

from recrawl.tables.vocabulary import TruncatedReason
from recrawl.warc.cdxj import cdxj_lines, read_entries, write_cdxj
from recrawl.warc.reader import read_capture
from recrawl.warc.records import Exchange, RevisitOf
from recrawl.warc.writer import PartWriter
from tests.unit.warc.exchanges import MOMENT, WARCINFO, an_exchange, write_part


def a_varied_part(folder: Path) -> Path:
    revisit = RevisitOf("identical-payload-digest", None, "http://example.com/", MOMENT)
    return write_part(
        folder / "part.warc.gz",
        an_exchange(b"one", url="http://www.example.com/B/?b=1&a=2"),
        an_exchange(b"two", url="https://example.org:8443/a.png", started_at=MOMENT + timedelta(days=1)),
        an_exchange(b"two", url="http://example.com/", response_head=b"HTTP/1.1 404 Gone\r\n\r\n"),
        an_exchange(b"", url="http://127.0.0.1:8000/x", revisit=revisit),
        an_exchange(b"three", url="http://example.com/", metadata={"fetchTimeMs": "3"}),
        an_exchange(b"four", url="http://example.com//c///d//?u=http://e//f"),
        an_exchange(b"five", url="http://example.com///"),
        an_exchange(b"six", url="http://example.com/c/d//"),
    )


def test_each_line_leads_to_its_capture(tmp_path: Path) -> None:
    path = a_varied_part(tmp_path)
    lines = cdxj_lines(read_entries(path), "warc/round/part.warc.gz")
    assert len(lines) == 8
    assert lines == sorted(lines, key=str.encode)
    for line in lines:
        _, moment, text = line.split(" ", 2)
        fields = json.loads(text)
        with path.open("rb") as file:
            capture = read_capture(file, int(fields["offset"]), 1000)
        assert fields["url"] == capture.url
        assert fields["digest"] == capture.payload_digest
        assert fields["status"] == str(capture.status)
        assert fields["filename"] == "warc/round/part.warc.gz"
        assert moment == f"{capture.date:%Y%m%d%H%M%S}"


def test_keys_are_surts(tmp_path: Path) -> None:
    keys = [line.split(" ")[0] for line in cdxj_lines(read_entries(a_varied_part(tmp_path)), "x")]
    assert keys == [
        "1,0,0,127:8000)/x",
        "com,example)/",
        "com,example)/",
        "com,example)/",
        "com,example)/b?a=2&b=1",
        "com,example)/c/d",
        "com,example)/c/d?u=http://e//f",
        "org,example:8443)/a.png",
    ]


def test_cdxj_indexer_says_the_same(tmp_path: Path) -> None:
    path = a_varied_part(tmp_path)
    write_cdxj(read_entries(path), tmp_path / "part.cdxj", "part.warc.gz")
    command = [str(Path(sys.executable).parent / "cdxj-indexer"), "--sort", str(path)]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ours = (tmp_path / "part.cdxj").read_text().splitlines()

    def by_offset(lines: list[str]) -> dict[str, tuple[str, str, dict[str, str]]]:
        parsed = [line.split(" ", 2) for line in lines]
        return {json.loads(text)["offset"]: (key, moment, json.loads(text)) for key, moment, text in parsed}

    expected, found = by_offset(theirs), by_offset(ours)
    assert found.keys() == expected.keys()
    for offset, (key, moment, fields) in expected.items():
        assert found[offset][:2] == (key, moment)
        # cdxj-indexer leaves out a mime type that is not declared.
        assert {**found[offset][2], "mime": fields.get("mime", "unk")} == {**fields, "mime": found[offset][2]["mime"]}


def test_a_url_without_a_canonical_form_is_its_own_key(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(url="gopher://example.com/1"))
    assert cdxj_lines(read_entries(path), "a")[0].startswith("gopher://example.com/1 20261130030000 {")


#: Heads and URLs whose way through a file and back could differ from what the writer keeps.
_ODD_EXCHANGES: list[Exchange] = [
    an_exchange(b"plain", payload_digest=""),
    an_exchange(b"folded", response_head=b"HTTP/1.1 200 OK\r\nContent-Type:\r\n text/plain\r\n\r\n"),
    an_exchange(b"twice", response_head=b"HTTP/1.0 200\r\ncontent-type: a/b\r\nContent-Type: c/d\r\n\r\n"),
    an_exchange(b"bare", response_head=b"HTTP/1.1 200 OK\nContent-Type : Text/HTML;x\n\n"),
    an_exchange(b"early", response_head=b"HTTP/1.1 503 No\r\n\r\nContent-Type: text/css\r\n\r\n"),
    an_exchange(b"newer", response_head=b"HTTP/2 404\r\ncontent-type: image/png\r\n\r\n"),
    an_exchange(b"odd", response_head=b"HTTP/1.1 9999 What\r\nContent-Type: \xff\xe9\r\n\r\n"),
    an_exchange(b"none", response_head=b"HTTP/1.1 200 OK\r\n\r\n", url="http://ex\u00e4mple.com/\u00fc?\u6f22#f"),
    an_exchange(b"z", started_at=MOMENT.astimezone(timezone(timedelta(hours=9, minutes=30)))),
    an_exchange(b"x" * 200_000, stream=True, truncated=TruncatedReason.LENGTH),
    an_exchange(b"", revisit=RevisitOf("server-not-modified", "<urn:uuid:1>", "http://example.com/", None)),
]


def test_the_writer_knows_the_entries_that_its_file_gives(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path / "part.warc.gz", WARCINFO, MOMENT)
    for exchange in _ODD_EXCHANGES:
        writer.write(exchange)
    writer.close()
    assert len(writer.entries) == len(_ODD_EXCHANGES)
    assert writer.entries == read_entries(tmp_path / "part.warc.gz")
