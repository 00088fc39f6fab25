"""Serves the sample web until it is told to stop (SIGTERM, SIGINT)."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from recrawl.errors import RecrawlError
from recrawl.sampleweb.server import ADDRESS, SampleWeb


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m recrawl.sampleweb", description=__doc__)
    parser.add_argument("--address", default=ADDRESS, help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 for any that is free")
    parser.add_argument("--write-hosts", type=Path, help="a file for the host names, in the form of /etc/hosts")
    parser.add_argument("--write-seeds", type=Path, help="a file for the seeds, a URL a line")
    parser.add_argument("--count-file", type=Path, help="a file that counts the starts; pages change with each start")
    arguments = parser.parse_args()
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    # Blocked before any thread starts, so that no signal is lost and none ends the process.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    try:
        web = SampleWeb(arguments.port, address=arguments.address)
    except RecrawlError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    with web:
        if arguments.count_file:
            web.edition += _count_start(arguments.count_file)
        if arguments.write_hosts:
            web.write_hosts(arguments.write_hosts)
        if arguments.write_seeds:
            web.write_seeds(arguments.write_seeds)
        print(
            f"The sample web listens on {web.address}:{web.port}:",
            *(f"http://{host}:{web.port}/" for host in web.hosts()),
            sep="\n",
            flush=True,
        )
        signal.sigwait(stop_signals)
    return 0


def _count_start(path: Path) -> int:
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    starts = int(text) + 1 if text.isdecimal() else 1
    path.write_text(f"{starts}\n", encoding="utf-8")
    return starts


if __name__ == "__main__":
    sys.exit(main())
