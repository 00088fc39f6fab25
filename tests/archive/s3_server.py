"""An S3-compatible store on loopback: moto's server, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import SecretStr

from recrawl.config.model import Storage

BUCKET = "archive"
_START_SECONDS = 60.0


class S3Server:
    """The server, as a context manager, with an empty bucket.

    Args:
        folder: for what it says.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "moto.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def storage(self, name: str = "crawl") -> Storage:
        """A storage root of its own."""
        return Storage(
            root=f"s3a://{BUCKET}/{name}", s3_endpoint=self.endpoint, s3_access_key="key",
            s3_secret_key=SecretStr("secret"),
        )  # fmt: skip

    def stop(self) -> None:
        """End the server: from now on the store is out of reach."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._ask("GET", "/moto-api/data.json")
                break
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.stop()
                    raise RuntimeError(f"moto's server does not start: {self._log.read_text()[-2000:]}") from None
                time.sleep(0.1)
        self._ask("PUT", f"/{BUCKET}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ask(self, method: str, path: str) -> None:
        with urllib.request.urlopen(urllib.request.Request(self.endpoint + path, method=method), timeout=10):
            pass
