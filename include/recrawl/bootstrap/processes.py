"""Running other programs quietly: a line of progress every few seconds, a clear end.

What a program printed is shown only when it failed, and then only its last lines.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from recrawl.errors import EnvironmentFaultError

PROGRESS_SECONDS = 5.0
_TAIL_LINES = 12

#: What a program's last words mean: words to look for, what is wrong, the mend.
_KNOWN_TROUBLES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("no space left on device", "disk quota exceeded", "os error 28"),
        "The disk is full.",
        "Free some space (the set-up needs about 3 GB) and run the same command again; it goes on where it stopped.",
    ),
    (
        (
            "name resolution",
            "name or service not known",
            "nodename nor servname",
            "dns error",
            "unknownhostexception",
            "network is unreachable",
            "no route to host",
            "connection refused",
            "failed to establish a new connection",
            "connect timed out",
            "connecttimeout",
            "error sending request",
            "could not connect",
            "no matching distribution found",
        ),
        "The package registry can't be reached.",
        "Check the network (or the proxy in HTTPS_PROXY) and run the same command again; it goes on where it stopped.",
    ),
    (
        ("certificate verify failed", "invalid peer certificate", "unknownissuer", "pkix path building failed"),
        "The package registry's certificate is not trusted here.",
        "Name your organisation's certificate file in SSL_CERT_FILE (Python) or Java's trust store, and run again.",
    ),
    (
        ("permission denied",),
        "A folder of the project can't be written.",
        "Make the project folder yours (chown) and run the same command again.",
    ),
    (
        ("ensurepip is not available", "no module named venv", "no module named ensurepip"),
        "This Python has no venv module.",
        "Install it (Debian and Ubuntu: apt install python3-venv) and run the same command again.",
    ),
)


def say(line: str) -> None:
    """Print one line at once, also into a pipe."""
    print(line, flush=True)


def run(command: Sequence[str | Path], what: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end, saying every few seconds that it still runs.

    Args:
        command: the program and its arguments.
        what: what it does, for the progress lines, e.g. "installing packages".
        environment: its whole environment; None means ours.

    Returns:
        All that it printed.

    Raises:
        EnvironmentFaultError: it could not be started or ended with a fault.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
            )
        except OSError as error:
            raise EnvironmentFaultError(f"{command[0]} can't be started: {error.strerror}.") from None
        _wait(process, what)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if process.returncode != 0:
        raise trouble(what, text)
    return text


def trouble(what: str, output: str) -> EnvironmentFaultError:
    """The fault that a program's output tells: a known trouble with its mend, else its last lines."""
    lowered = output.lower()
    for words, message, mend in _KNOWN_TROUBLES:
        if any(word in lowered for word in words):
            return EnvironmentFaultError(f"{_sentence(what)} failed. {message}", mend)
    tail = "\n".join(f"    {line}" for line in output.strip().splitlines()[-_TAIL_LINES:])
    return EnvironmentFaultError(f"{_sentence(what)} failed; its last words were:\n{tail}")


def _sentence(what: str) -> str:
    return what[:1].upper() + what[1:]


def _wait(process: subprocess.Popen[bytes], what: str) -> None:
    started = time.monotonic()
    free_before = shutil.disk_usage(".").free
    try:
        while True:
            try:
                process.wait(timeout=PROGRESS_SECONDS)
                return
            except subprocess.TimeoutExpired:
                written_mb = max(0, free_before - shutil.disk_usage(".").free) // 1_000_000
                say(f"    … {what}: {time.monotonic() - started:.0f} s, {written_mb} MB written")
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
