"""What a browser makes of a page of the documentation web."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import lxml.html

from tests.real.documentation import ADDRESS, DocumentationWeb

_SECONDS = 60


@dataclass(frozen=True)
class Seen:
    """A page as the browser has it.

    Attributes:
        links: the address of every a and area element with an href, in document order.
        text: the text as shown.
    """

    links: list[str]
    text: str


def browser_program() -> str | None:
    """Chromium, where it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


def seen(program: str, web: DocumentationWeb, url: str, profile: Path) -> Seen:
    """Let the browser load a page; addresses are told as if it had used the crawler's port."""
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={profile}",
        # Every name is this machine: a page's links to the world must not be looked up.
        f"--host-resolver-rules=MAP * {ADDRESS}",
        "--dump-dom", url.replace(f":{web.port}/", f":{web.browser_port}/"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
    document = lxml.html.fromstring(done.stdout.decode("utf-8"))
    links = [str(link) for link in document.xpath("//@data-resolved")]
    shown = document.xpath("string(/html/@data-shown)")
    return Seen([link.replace(f":{web.browser_port}/", f":{web.port}/") for link in links], str(shown))
