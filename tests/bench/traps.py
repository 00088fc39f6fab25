"""How much of a crawl its traps take: three rounds of simweb, judged by simweb's own log and truth.

    python -m tests.bench.traps --simweb FOLDER --profile hostile clean --hosts 300

Each profile is crawled from the home pages of all hosts, three rounds, politeness off. It prints

- trap pages: pages of simweb's traps among all pages that it served (hostile: the aim is below 2 %);
- good pages rejected: known pages of its hosts that a filter turned away, of all that links led to
  (clean: below 0.1 %);
- suspects: hosts with a trap score, and how many of them simweb knows for a trap, a mirror or a
  host under two names (the aim is a precision of 0.98).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.bootstrap.places import PROJECT_FOLDER
from recrawl.config.model import Storage, Urls
from recrawl.storage import Store
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.canonical import Canonicalizer
from tests.bench.politeness import audited_web
from tests.bench.web import described, machine, simweb_program

#: Filters that can't be wrong about a page: what the crawl was told to leave, or no page at all.
_ASKED_FOR = (RejectFilter.SCOPE, RejectFilter.DUPLICATE_SEED, RejectFilter.LINK_CAP, RejectFilter.ID_COLLISION)


@dataclass(frozen=True)
class Judged:
    """One profile.

    Attributes:
        pages: answers with status 200, robots.txt aside.
        trap_pages: those that belong to a trap.
        good_known, good_rejected: pages of simweb's truth that links led to, and those turned away.
        suspects, right_suspects: hosts with a trap score; those that simweb's truth bears out.
        abnormal_hosts: hosts that simweb made with a trap, of which a page was fetched.
    """

    profile: str
    pages: int
    trap_pages: int
    session_pages: int
    good_known: int
    good_rejected: int
    suspects: int
    right_suspects: int
    abnormal_hosts: int

    @property
    def trap_share(self) -> float:
        """Of the pages, those of traps."""
        return self.trap_pages / max(1, self.pages)

    @property
    def rejected_share(self) -> float:
        """Of good pages that links led to, those turned away."""
        return self.good_rejected / max(1, self.good_known)


def crawl(folder: Path, hosts_file: Path, port: int, rounds: int, max_urls: int) -> Path:
    """Crawl from all home pages; the storage root."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/__seeds", timeout=60) as answer:
        (folder / "seeds.txt").write_bytes(answer.read())
    root = folder / "root"
    (folder / "recrawl.toml").write_text(
        f'[storage]\nroot = "{root}"\n\n[dns]\nhosts_file = "{hosts_file}"\n\n[parse]\ntext_extractor = "none"\n\n'
        f"[frontier]\nmax_urls = {max_urls}\n\n"
        '[fetch]\nallowed_private_ranges = ["127.0.0.0/8"]\nmin_delay_seconds = 0\nlatency_factor = 0\n'
        "ip_gap_seconds = 0\nmax_delay_seconds = 0\nmax_backoff_seconds = 2\nconnect_timeout_seconds = 3\n"
        "read_timeout_seconds = 3\ntotal_timeout_seconds = 5\nrobots_tries = 1\ntime_budget_seconds = 45\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "RECRAWL_CONFIG": str(folder / "recrawl.toml"),
        "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)]),
    }
    for number in range(rounds):
        command = [sys.executable, "-m", "recrawl.cli.main", "round"]
        command += ["--seeds", str(folder / "seeds.txt")] if number == 0 else []
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}\nround {number + 1} failed.")
        for line in done.stdout.splitlines():
            if "finished in" in line:
                print(f"  round {number + 1}: {line[:160]}", file=sys.stderr, flush=True)
    return root


def judge(profile: str, root: Path, log: Path, port: int) -> Judged:
    """Hold a crawl against what simweb served and knows."""
    urllib.request.urlopen(f"http://127.0.0.1:{port}/__flush", timeout=60).close()
    served = _served(log)
    canonicalizer = Canonicalizer.from_settings(Urls())
    reader = Reader(Store(Storage(root=str(root))), canonicalizer)
    truth = {
        canonical
        for row in _truth(port, "pages")
        if row.get("kind") in ("normal", "dup", "neardup") and (canonical := canonicalizer.canonical(row["url"]))
    }
    known = {row["url"] for row in reader.query("SELECT url FROM urls").to_pylist()}
    asked_for = ", ".join(f"'{name}'" for name in _ASKED_FOR)
    rejects = reader.query(
        f"SELECT DISTINCT dst_url, filter FROM rejects WHERE filter NOT IN ({asked_for})"
    ).to_pylist()
    rejected = {row["dst_url"]: row["filter"] for row in rejects}
    wrong = (truth & rejected.keys()) - known
    print(f"  rejects: {dict(Counter(rejected.values()))}", file=sys.stderr)
    print(f"  good pages rejected: {[(rejected[url], url) for url in sorted(wrong)][:5]}", file=sys.stderr)
    facts = {}
    for row in _truth(port, "hosts"):
        for name in filter(None, (row["host"], row["alias"])):
            facts[f"{name}:{port}"] = row
    mirrored = {row["mirror_of"] for row in facts.values()}
    scored = reader.query("SELECT host, trap_score, page_count FROM hosts WHERE page_count > 0").to_pylist()
    suspects = [row["host"] for row in scored if row["trap_score"] > 0]
    wrongly = [host for host in suspects if not _abnormal(facts.get(host), mirrored)]
    print(f"  wrong suspects: {wrongly[:10]}", file=sys.stderr)
    trapped = [row["host"] for row in scored if facts.get(row["host"], {}).get("traps")]
    return Judged(
        profile, served["pages"], served["T"], served["s"], len(truth & (known | rejected.keys())), len(wrong),
        len(suspects), len(suspects) - len(wrongly), len(trapped),
    )  # fmt: skip


def _abnormal(facts: dict[str, Any] | None, mirrored: set[int]) -> bool:
    if facts is None:
        return False
    twice = facts["mirror_of"] >= 0 or facts["id"] in mirrored or facts["alias_mode"] == "duplicate"
    return bool(facts["traps"] or twice or facts["soft404"])


def _served(log: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split("\t")
        if fields[0] == "R" and fields[4] == "200" and not fields[9].startswith("/robots"):
            counts["pages"] += 1
            counts.update(fields[7])
    return counts


def _truth(port: int, what: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/__truth/{what}", timeout=120) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]


def main() -> None:
    """Crawl and judge each profile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--simweb", type=Path, required=True, help="simweb's program, or the folder of its source")
    add("--profile", nargs="+", default=["hostile", "clean"])
    add("--hosts", type=int, default=300)
    add("--seed", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--max-urls", type=int, default=20_000, help="frontier.max_urls")
    add("--keep", type=Path, metavar="FOLDER", help="keep the crawls there")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    arguments = parser.parse_args()
    before, found = machine(), []
    for profile in arguments.profile:
        folder = Path(tempfile.mkdtemp(dir=arguments.keep, prefix=f"traps-{profile}-"))
        program = simweb_program(arguments.simweb, folder)
        with audited_web(program, folder, profile, arguments.seed, arguments.hosts) as (port, hosts_file, log):
            root = crawl(folder, hosts_file, port, arguments.rounds, arguments.max_urls)
            found.append(judge(profile, root, log, port))
        if arguments.keep is None:
            shutil.rmtree(folder)
    print(f"{described(before)}. {arguments.hosts} hosts, seed {arguments.seed}, {arguments.rounds} rounds.\n")
    print(
        "| profile | pages | trap pages | share | good pages rejected | share | suspects | right | hosts with traps |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for one in found:
        print(
            f"| {one.profile} | {one.pages:,} | {one.trap_pages:,} | {one.trap_share:.2%} | "
            f"{one.good_rejected:,} of {one.good_known:,} | {one.rejected_share:.3%} | {one.suspects} | "
            f"{one.right_suspects} | {one.abnormal_hosts} |"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
