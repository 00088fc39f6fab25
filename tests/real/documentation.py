"""Documentation that Debian packages bring, as a web: a host name a book and language, one nginx.

Each host is a registered domain of its own, so that a round has several fetch partitions.

`python -m tests.real.documentation` serves it until interrupted and prints how to reach it.
"""

from __future__ import annotations

import contextlib
import html
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote

ADDRESS = "127.0.0.1"
_DOC = Path("/usr/share/doc")
_START_SECONDS = 15.0
_TITLE = re.compile(r"<title[^>]*>(.*?)</title\s*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Site:
    """One book in one language.

    Attributes:
        host: the name it is served under.
        package: the Debian package that brings it.
        folder: its HTML files.
        start: path of its first page.
        language: ISO 639-1 code of its prose.
        pattern: the files that are its pages, under `folder`.
        disallowed: path prefixes that its robots.txt forbids.
        has_robots: whether there is a robots.txt at all.
    """

    host: str
    package: str
    folder: Path
    start: str
    language: str
    pattern: str = "**/*.html"
    disallowed: tuple[str, ...] = ()
    has_robots: bool = True

    def robots_text(self) -> str:
        """The robots.txt, in the writing of nginx's configuration."""
        rules = "".join(f"Disallow: {prefix}\\n" for prefix in self.disallowed) or "Disallow:\\n"
        return f"# {self.package}\\nUser-agent: *\\n{rules}"

    @cached_property
    def paths(self) -> list[str]:
        """The URL paths of its pages that robots.txt allows, the start page first."""
        found = sorted(
            "/" + quote(path.relative_to(self.folder).as_posix())
            for path in self.folder.glob(self.pattern)
            if path.is_file()
        )
        start = "/" + self.start
        return [start, *(path for path in found if path != start and not path.startswith(self.disallowed))]

    def file_of(self, path: str) -> Path:
        """The file that a URL path stands for, as `paths` gives it."""
        return self.folder / unquote(path.lstrip("/"))


def _handbook(host: str, folder: str, language: str) -> Site:
    return Site(host, "debian-handbook", _DOC / "debian-handbook/html" / folder, "index.html", language)


SITES = (
    Site("python-docs.test", "python3-doc", _DOC / "python3-doc/html", "index.html", "en",
         disallowed=("/whatsnew/", "/search.html")),
    Site("postgresql-docs.test", "postgresql-doc-15", _DOC / "postgresql-doc-15/html", "index.html", "en",
         disallowed=("/release-",)),
    Site("rust-docs.test", "rust-doc", _DOC / "rust-doc/html", "book/index.html", "en", "book/*.html"),
    Site("reference-zh-docs.test", "debian-reference-zh-cn", Path("/usr/share/debian-reference"), "index.zh-cn.html",
         "zh", "*.zh-cn.html"),
    Site("reference-ja-docs.test", "debian-reference-ja", Path("/usr/share/debian-reference"), "index.ja.html", "ja",
         "*.ja.html", has_robots=False),
    Site("aptitude-docs.test", "aptitude-doc-ru", _DOC / "aptitude/html/ru", "index.html", "ru",
         disallowed=("/ch01s0",)),
    _handbook("handbook-de-docs.test", "de-DE", "de"),
    _handbook("handbook-es-docs.test", "es-ES", "es"),
    _handbook("handbook-fr-docs.test", "fr-FR", "fr"),
    _handbook("handbook-ja-docs.test", "ja-JP", "ja"),
    _handbook("handbook-zh-docs.test", "zh-CN", "zh"),
)  # fmt: skip


def installed_sites() -> tuple[list[Site], list[str]]:
    """The sites whose packages are installed, and the names of the packages that are missing."""
    there = [site for site in SITES if (site.folder / site.start).is_file()]
    return there, sorted({site.package for site in SITES if site not in there})


def title_in_file(path: Path) -> str | None:
    """The title as the file itself says it, read without the parser under test."""
    match = _TITLE.search(path.read_text(encoding="utf-8", errors="replace"))
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", match[1])).split()) if match else None


class DocumentationWeb:
    """nginx with every site, as a context manager; it needs no root and touches nothing outside `folder`.

    A second port serves the same pages with a script that writes down what the browser makes of
    them: each link's resolved address, and the text as shown.

    Args:
        sites: what is served.
        folder: for its configuration, its log and its temporary files.
    """

    def __init__(self, sites: list[Site], folder: Path) -> None:
        self.sites = sites
        self.folder = folder
        self.port, self.browser_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        nginx = nginx_program()
        assert nginx is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "nginx.conf"
        configuration.write_text(self._configuration(), encoding="utf-8")
        command = [nginx, "-p", str(self.folder), "-c", str(configuration), "-e", str(self.folder / "error.log")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{ADDRESS}:{self.port}/up", timeout=2):
                return self
            time.sleep(0.05)
        self.__exit__(None, None, None)
        raise RuntimeError(f"nginx does not start: {(self.folder / 'error.log').read_text()[-2000:]}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def url(self, site: Site, path: str) -> str:
        """The URL of a page."""
        return f"http://{site.host}:{self.port}{path}"

    def page(self, url: str) -> tuple[Site, Path]:
        """The site and the file of a page's URL."""
        authority, _, path = url.removeprefix("http://").partition("/")
        site = next(site for site in self.sites if site.host == authority.partition(":")[0])
        return site, site.file_of(path)

    def requests(self) -> list[tuple[str, str, int, str]]:
        """Host, path, status and User-Agent of every request to the crawler's port so far, in order."""
        log = self.folder / "access.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        fields = (line.split("\t") for line in lines)
        return [(host, path, int(status), agent) for host, path, status, agent in fields if path != "/up"]

    def write_hosts(self, path: Path) -> None:
        """Write the host names in the form of /etc/hosts."""
        path.write_text("".join(f"{ADDRESS} {site.host}\n" for site in self.sites), encoding="utf-8")

    def _configuration(self) -> str:
        temporary = "\n".join(
            f"    {name}_temp_path {self.folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        servers = "\n".join(self._server(site) for site in self.sites)
        return f"""daemon off;
master_process off;
pid {self.folder}/nginx.pid;
error_log {self.folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
{temporary}
    types {{
        text/html html; text/css css; text/javascript js; image/png png; image/svg+xml svg; image/jpeg jpg jpeg;
        text/plain txt; application/pdf pdf; font/woff2 woff2;
    }}
    default_type application/octet-stream;
    server_names_hash_bucket_size 128;
    log_format hits escape=json "$host\\t$request_uri\\t$status\\t$http_user_agent";
    gzip on;
    gzip_types text/plain text/css;
    server {{
        listen {ADDRESS}:{self.port} default_server;
        access_log off;
        location = /up {{ return 204; }}
        location / {{ return 421; }}
    }}
{servers}
}}
"""

    def _server(self, site: Site) -> str:
        robots = "return 404;"
        if site.has_robots:
            robots = f"default_type text/plain; return 200 '{site.robots_text()}';"
        shared = f"server_name {site.host}; root {site.folder}; index {site.start};"
        return f"""    server {{
        listen {ADDRESS}:{self.port}; {shared}
        access_log {self.folder}/access.log hits;
        location = /robots.txt {{ {robots} }}
    }}
    server {{
        listen {ADDRESS}:{self.browser_port}; {shared}
        access_log off; etag off; gzip off;
        sub_filter_once on;
        sub_filter '</body>' '{_BROWSER_SCRIPT}</body>';
    }}"""


#: What a browser makes of a page: kept in attributes, where --dump-dom shows it.
_BROWSER_SCRIPT = (
    "<script>for(const a of document.links)a.setAttribute(\"data-resolved\",a.href);"
    "document.documentElement.setAttribute(\"data-shown\",document.body.innerText)</script>"
)  # fmt: skip


def nginx_program() -> str | None:
    """nginx, where it is installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((ADDRESS, 0))
        return [probe.getsockname()[1] for probe in probes]


def main() -> None:
    """Serve until interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.suppress(KeyboardInterrupt),
        DocumentationWeb(installed_sites()[0], Path(folder)) as web,
    ):
        for site in web.sites:
            print(f"{web.url(site, '/' + site.start)}  {len(site.paths):,} pages, {site.language}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
