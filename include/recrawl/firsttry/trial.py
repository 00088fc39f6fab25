"""What a first try crawls: the sample web, served here, or the user's own seeds with small limits."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recrawl.bootstrap.places import Places
from recrawl.config import Configuration, load_configuration
from recrawl.config.load import FILE_VARIABLE
from recrawl.errors import ConfigurationError, EnvironmentFaultError, UsageError

MAX_URLS = 200
TIME_BUDGET_SECONDS = 300
_SAMPLE_START_SECONDS = 20.0

#: The sample web is this machine: no waiting between requests to speak of, loopback only.
_SAMPLE_CONFIGURATION = """\
# The configuration of the sample crawl; written anew by each `make round` without SEEDS.
[storage]
root = {root}

[seed]
files = [{seeds}]

[dns]
hosts_file = {hosts}

[fetch]
allowed_private_ranges = ["127.0.0.0/8"]
min_delay_seconds = 0.05
max_delay_seconds = 0.2
ip_gap_seconds = 0
time_budget_seconds = {budget}

[frontier]
max_urls = {max_urls}
"""

_LIMITS = (
    f"Limits of a first try: scope host, {MAX_URLS} URLs, {TIME_BUDGET_SECONDS // 60} minutes, "
    "and robots.txt and a polite gap as always.\n"
    'To lift them, write recrawl.toml ([seed] files = ["{seeds}"], default_scope = "domain") and run\n'
    "`.venv/bin/recrawl round`, or trigger crawl_round in the UI of `make up`."
)


@dataclass(frozen=True)
class Trial:
    """What is crawled.

    Attributes:
        title: for people.
        form: the trigger form.
        configuration: what the round runs with.
        environment: variables that carry the configuration to the processes of the round.
        command: how `recrawl` is called to see this crawl.
        advice: what to say at the end.
    """

    title: str
    form: dict[str, object]
    configuration: Configuration
    environment: dict[str, str]
    command: str
    advice: str


@contextmanager
def prepared(places: Places, seeds: str | None) -> Iterator[Trial]:
    """The trial of `seeds`, or of the sample web, which is served while the block runs.

    Raises:
        UsageError: there is no such seed file.
        ConfigurationError: a configuration that can't be used, or no contact for real sites.
        EnvironmentFaultError: the sample web does not start.
    """
    if seeds:
        yield _own_seeds(seeds)
        return
    folder = places.state / "sample"
    folder.mkdir(parents=True, exist_ok=True)
    with _sample_web(folder):
        yield _sample(places, folder)


def _own_seeds(seeds: str) -> Trial:
    file = Path(seeds).expanduser().absolute()
    if not file.is_file():
        raise UsageError(f"There is no seed file {file}.", "Write one: a URL a line.")
    environment = {"RECRAWL__SEED__DEFAULT_SCOPE": "host"}
    configuration = load_configuration(overrides={"seed": {"default_scope": "host"}})
    if not configuration.agent.contact and not configuration.fetch.allowed_private_ranges:
        raise ConfigurationError(
            "Site owners must be able to reach you, and no contact is set.",
            "Write two lines into recrawl.toml, then run the same command again:\n"
            '    [agent]\n    contact = "you@example.org"',
        )
    return Trial(
        title=f"your seeds in {seeds}",
        form={"seeds": [str(file)], "max_urls": MAX_URLS, "time_budget_seconds": TIME_BUDGET_SECONDS},
        configuration=configuration,
        environment=environment,
        command=".venv/bin/recrawl",
        advice=_LIMITS.format(seeds=seeds),
    )


def _sample(places: Places, folder: Path) -> Trial:
    file = folder / "recrawl.toml"
    text = _SAMPLE_CONFIGURATION.format(
        # JSON's strings are TOML's.
        root=json.dumps(str(folder / "crawl")),
        seeds=json.dumps(str(folder / "seeds.txt")),
        hosts=json.dumps(str(folder / "hosts")),
        budget=TIME_BUDGET_SECONDS,
        max_urls=1_000,
    )
    file.write_text(text, encoding="utf-8")
    again = (folder / "crawl").exists()
    return Trial(
        title="the sample web (eight small sites, served by this command on 127.0.0.1)",
        # A second try would find nothing due for a week.
        form={"force": True} if again else {},
        configuration=load_configuration(file),
        environment={FILE_VARIABLE: str(file)},
        command=f".venv/bin/recrawl --config {file.relative_to(places.project)}",
        advice="This was the sample web. For your own sites: make round SEEDS=my-seeds.txt (a URL a line).",
    )


@contextmanager
def _sample_web(folder: Path) -> Iterator[None]:
    seeds, hosts = folder / "seeds.txt", folder / "hosts"
    # The same port as last time, so that its pages keep their URLs and are visited again.
    process = None
    for port in dict.fromkeys((_last_port(seeds), 0)):
        process = _start(port, folder, seeds, hosts)
        if process is not None:
            break
    if process is None:
        raise EnvironmentFaultError("The sample web does not start.", f"Its log: {folder / 'web.log'}")
    try:
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()


def _start(port: int, folder: Path, seeds: Path, hosts: Path) -> subprocess.Popen[bytes] | None:
    stamp = time.time_ns()
    command = [sys.executable, "-m", "recrawl.sampleweb", "--port", str(port)]
    command += ["--write-hosts", str(hosts), "--write-seeds", str(seeds), "--count-file", str(folder / "starts")]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + _SAMPLE_START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        # The seed file comes last, when the sites are served.
        if seeds.is_file() and seeds.stat().st_mtime_ns >= stamp and seeds.stat().st_size:
            return process
        time.sleep(0.1)
    process.kill()
    process.wait()
    return None


def _last_port(seeds: Path) -> int:
    """The port of the first seed; 0 where there is none."""
    try:
        found = re.search(r"^http://[^/:]+:(\d+)/", seeds.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0
