"""Scrapy with warcio, as its users write it: the reference of `tests.bench.fetch`.

    python scrapy_warc.py URLS WARC PROXY_PORT

Run by a Python that has scrapy and warcio; it imports nothing of recrawl. The web is reached as an
HTTP proxy, because Scrapy knows no hosts file. Prints its usage and its counts as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

URLS, WARC, PORT = sys.argv[1:4]


class WarcSpider(scrapy.Spider):
    """Asks for each URL once and stores request and response."""

    name = "warc"
    pages = 0
    custom_settings = {  # noqa: RUF012 - Scrapy reads it so
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 256,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.file = Path(WARC).open("wb")  # noqa: SIM115 - open for the process's life
        self.writer = WARCWriter(self.file, gzip=True)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The URLs of the file."""
        for url in Path(URLS).read_text(encoding="utf-8").split():
            yield scrapy.Request(url, dont_filter=True, meta={"proxy": f"http://127.0.0.1:{PORT}"})

    def parse(self, response: scrapy.http.Response) -> None:
        """Store one exchange."""
        type(self).pages += 1
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, values in response.headers.items()
                 for value in values]  # fmt: skip
        head = StatusAndHeaders(f"{response.status} OK", pairs, protocol="HTTP/1.1")
        record = self.writer.create_warc_record(
            response.url, "response", payload=BytesIO(response.body), http_headers=head
        )
        sent = [(name.decode("latin-1"), b", ".join(values).decode("latin-1"))
                for name, values in response.request.headers.items()]  # fmt: skip
        asked = self.writer.create_warc_record(
            response.url, "request", http_headers=StatusAndHeaders("GET / HTTP/1.1", sent, is_http_request=True)
        )
        self.writer.write_request_response_pair(asked, record)


def main() -> None:
    """Crawl, then print what it cost; importing Scrapy is not counted."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.monotonic()
    process = CrawlerProcess()
    process.crawl(WarcSpider)
    process.start()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"seconds": time.monotonic() - started, "cpu_seconds": cpu}))
    print(json.dumps({"pages": WarcSpider.pages, "bytes": Path(WARC).stat().st_size}))


if __name__ == "__main__":
    main()
