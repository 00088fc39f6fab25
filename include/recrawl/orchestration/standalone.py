"""`make up` and `make down`: Airflow's four parts on this machine, started and stopped cleanly.

`airflow standalone` runs scheduler, dag-processor, triggerer and api-server as its children. It is
stopped by SIGINT: SIGTERM would end it and leave the children behind.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from recrawl.bootstrap.places import Places
from recrawl.config import load_configuration
from recrawl.errors import EnvironmentFaultError, RecrawlError
from recrawl.orchestration.environment import (
    CONNECTION_VARIABLE,
    DEFAULT_PORT,
    airflow_settings,
    process_environment,
    spark_connection,
)

PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
START_SECONDS = 240.0
STOP_SECONDS = 60.0
_PORTS_TRIED = 100
_PROGRESS_SECONDS = 5.0


@dataclass(frozen=True)
class Running:
    """The Airflow that `make up` started.

    Attributes:
        pid: the process of `airflow standalone`, leader of its own process group.
        port: where UI and API listen.
    """

    pid: int
    port: int

    @property
    def address(self) -> str:
        """The address of the UI."""
        return f"http://127.0.0.1:{self.port}"


def running(places: Places) -> Running | None:
    """The Airflow that runs for this checkout; None when none does."""
    try:
        found = Running(**json.loads(_pid_file(places).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(found.pid)], capture_output=True, text=True, check=False)
    # The number may belong to another program by now.
    return found if "standalone" in shown.stdout else None


def up(places: Places) -> Running:
    """Start Airflow, or find it running; returns when all four parts are healthy.

    Raises:
        EnvironmentFaultError: no free port, or a part that does not come up.
    """
    already = running(places)
    if already is not None:
        wait_until_healthy(already, places)
        return already
    configuration = load_configuration()
    port, *log_ports = free_ports(DEFAULT_PORT, 3)
    if port != DEFAULT_PORT:
        print(f"Port {DEFAULT_PORT} is taken; Airflow takes {port}.", flush=True)
    settings = airflow_settings(places, port, (log_ports[0], log_ports[1]))
    Path(settings["AIRFLOW_HOME"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    passwords(places)
    environment = process_environment(os.environ, settings, places)
    environment.setdefault(CONNECTION_VARIABLE, spark_connection(configuration))
    # A starter that ignores SIGINT (a shell's `&`) would hand that down, and `down` needs it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with _log_file(places).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", "standalone"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=places.project,
            env=environment,
            start_new_session=True,
        )
    started = Running(process.pid, port)
    _pid_file(places).write_text(json.dumps(asdict(started)), encoding="utf-8")
    try:
        wait_until_healthy(started, places)
    except (EnvironmentFaultError, KeyboardInterrupt):
        stop(started, places)
        raise
    return started


def down(places: Places) -> bool:
    """Stop Airflow with all its parts; whether there was one to stop."""
    found = running(places)
    if found is None:
        _pid_file(places).unlink(missing_ok=True)
        return False
    stop(found, places)
    return True


def stop(found: Running, places: Places) -> None:
    """End the process group: politely, then, after a minute, by force."""
    for sent, patience_seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        try:
            if sent == signal.SIGINT:
                os.kill(found.pid, sent)
            else:
                os.killpg(found.pid, sent)
        except ProcessLookupError:
            pass
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline and _group_lives(found.pid):
            time.sleep(0.2)
        if not _group_lives(found.pid):
            break
    _pid_file(places).unlink(missing_ok=True)


def wait_until_healthy(found: Running, places: Places) -> None:
    """Wait for the four parts, with a line every few seconds.

    Raises:
        EnvironmentFaultError: Airflow ended, or a part is not healthy in time.
    """
    started = time.monotonic()
    next_line = _PROGRESS_SECONDS
    while True:
        states = health(found)
        if all(states.get(part) == "healthy" for part in PARTS):
            return
        elapsed = time.monotonic() - started
        if not _lives(found.pid):
            raise EnvironmentFaultError(
                f"Airflow ended while it started.\n{_log_tail(places)}", f"Its log: {_log_file(places)}"
            )
        if elapsed > START_SECONDS:
            waiting = ", ".join(part for part in PARTS if states.get(part) != "healthy")
            raise EnvironmentFaultError(
                f"Not healthy after {elapsed:.0f} s: {waiting}.", f"Its log: {_log_file(places)}"
            )
        if elapsed >= next_line:
            healthy = sum(states.get(part) == "healthy" for part in PARTS)
            print(f"  … {elapsed:.0f} s: {healthy} of {len(PARTS)} parts are healthy", flush=True)
            next_line += _PROGRESS_SECONDS
        time.sleep(0.5)


def health(found: Running) -> dict[str, str]:
    """The state of each part as Airflow tells it; {} while it does not answer."""
    try:
        with urllib.request.urlopen(f"{found.address}/api/v2/monitor/health", timeout=5) as answer:
            parts = json.load(answer)
    except (OSError, ValueError):
        return {}
    return {name: str(part.get("status")) for name, part in parts.items() if isinstance(part, dict)}


def free_ports(first: int, count: int) -> list[int]:
    """Free loopback ports from `first` on. Raises EnvironmentFaultError when there are too few."""
    found: list[int] = []
    for port in range(first, first + _PORTS_TRIED):
        if _port_is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise EnvironmentFaultError(
        f"Fewer than {count} ports from {first} to {first + _PORTS_TRIED - 1} are free.",
        "Stop what listens there (ss -ltnp shows it) and try again.",
    )


def passwords(places: Places) -> dict[str, str]:
    """The passwords of Airflow's users; made on first use, readable by the owner alone."""
    file = places.state / "airflow" / "passwords.json"
    try:
        known: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
        return known
    except (OSError, ValueError):
        made = {user: secrets.token_urlsafe(9) for user in ("admin", "viewer")}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump(made, stream)
    return made


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # All interfaces: the log servers bind there.
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _lives(pid: int) -> bool:
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _group_lives(group: int) -> bool:
    _lives(group)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _pid_file(places: Places) -> Path:
    return places.state / "airflow" / "standalone.json"


def _log_file(places: Places) -> Path:
    return places.state / "airflow" / "standalone.log"


def _log_tail(places: Places, lines: int = 15) -> str:
    try:
        text = _log_file(places).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def _what_is_crawled() -> str:
    """What a round triggered there works on, and what it lacks still."""
    configuration = load_configuration()
    lines = [
        f"Its rounds write to {configuration.storage.root} (the sample web of `make round` has a place of its own)."
    ]
    if not configuration.seed.files:
        lines.append("No seeds are configured (seed.files): name some in the form of the trigger button.")
    if not configuration.agent.contact:
        lines.append('No contact is set (recrawl.toml: [agent] contact = "you@example.org"): public sites are refused.')
    return "\n".join(lines)


def main() -> int:
    """`up` or `down`; the exit status."""
    places = Places()
    try:
        if sys.argv[1:] == ["up"]:
            print("Starting Airflow: about 30 seconds, 2 GB of memory.", flush=True)
            found = up(places)
            print(
                f"\nAirflow:  {found.address}\nLogin:    admin / {passwords(places)['admin']}\n"
                f"Rounds:   {found.address}/dags/crawl_round\nStop it:  make down\n\n{_what_is_crawled()}",
                flush=True,
            )
        elif sys.argv[1:] == ["down"]:
            print("Airflow has stopped." if down(places) else "Nothing runs.", flush=True)
        else:
            print("Say up or down.", file=sys.stderr)
            return 2
    except RecrawlError as error:
        print(f"\n{error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
