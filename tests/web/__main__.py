"""Serves the misbehaving web by hand: `python -m tests.web --port 8099`."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from tests.web.behaviours import BEHAVIOURS
from tests.web.server import DEFAULT_HOSTS, MisbehavingWeb


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.web", description=__doc__)
    parser.add_argument("--port", type=int, default=8099, help="the port on 127.0.0.1; 0 for any")
    parser.add_argument("--pages", type=int, default=20, help="ordinary pages a host")
    parser.add_argument("--host", action="append", help="a host name; may be repeated")
    parser.add_argument("--write-hosts", type=Path, help="a file to write the names to, in the form of /etc/hosts")
    arguments = parser.parse_args()
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    with MisbehavingWeb(arguments.host or DEFAULT_HOSTS, pages=arguments.pages, port=arguments.port) as web:
        if arguments.write_hosts:
            web.hosts_file(arguments.write_hosts)
        for host in arguments.host or DEFAULT_HOSTS:
            print(f"{web.url(host)}   curl --resolve {host}:{web.port}:127.0.0.1 {web.url(host)}")
        print("Odd paths:", " ".join(sorted(BEHAVIOURS)), flush=True)
        signal.sigwait(stop_signals)


if __name__ == "__main__":
    main()
