"""What the crawler knows of one URL, and why it was or was not fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.asking.verdict import verdicts
from recrawl.config.model import Configuration
from recrawl.inbox import read_events
from recrawl.robots.rules import RobotsRules
from recrawl.seed import decisions
from recrawl.seed.site_decisions import with_decisions_of_inbox
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind, RobotsOutcome, Scope
from recrawl.urls import rules as url_rules
from recrawl.urls.canonical import Canonicalizer, host_of, parse, split
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import UrlFilters, uncanonical
from recrawl.urls.keys import bucket_of, url_id
from recrawl.urls.scope import ScopeRule
from recrawl.urls.site_rules import SiteRules, parsed_line

Row = Mapping[str, Any]

#: A scheme, and not a host with its port.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)

#: Rows of each kind that an explanation shows at most.
SHOWN = 10


@dataclass(frozen=True)
class Explanation:
    """What is known of a URL.

    Attributes:
        verdicts: the answer in sentences, the most telling first.
        given, canonical, request_form: the URL as given, its identity, and what is requested.
        rules: each URL rule that changed it, with the result.
        url_id, host, domain, bucket: its keys; None where it has no canonical form.
        scope: the seeds that open it to the crawl.
        rejection: the filter that turns it away and why; None: it passes.
        robots: the stored robots.txt and what it says; None: none is stored.
        known, host_state, representative: its row of `urls`, its host's, its representative's.
        decisions: what people decided about it, in force now.
        proposals: URL rules that a survey found for its host or domain. aliases: ids that it had before.
        plans, tries, skips, rejects: of the last rounds, newest first.
        linked_from: links to it.
    """

    given: str
    canonical: str | None
    verdicts: Sequence[str] = ()
    request_form: str | None = None
    rules: Sequence[Row] = ()
    url_id: int | None = None
    host: str | None = None
    domain: str | None = None
    bucket: int | None = None
    scope: Sequence[Row] = ()
    rejection: Row | None = None
    robots: Row | None = None
    known: Row | None = None
    host_state: Row | None = None
    representative: Row | None = None
    decisions: Sequence[Row] = ()
    proposals: Sequence[Row] = ()
    aliases: Sequence[Row] = ()
    plans: Sequence[Row] = ()
    tries: Sequence[Row] = ()
    skips: Sequence[Row] = ()
    rejects: Sequence[Row] = ()
    linked_from: Sequence[Row] = ()
    last_round: Row | None = None


def explain(
    url: str, reader: Reader, store: Store, configuration: Configuration, now: datetime, rounds: int = 10
) -> Explanation:
    """Look at a URL from every side.

    Args:
        url: as a person writes it; a missing scheme means https.
        now: what "due" and "in force" mean.
        rounds: the newest rounds whose rows are looked through.
    """
    configuration = with_decisions_of_inbox(configuration, store, now)
    given = url.strip()
    if not _SCHEME.match(given):
        given = f"https://{given}"
    canonicalizer = Canonicalizer.from_settings(configuration.urls)
    canonical = canonicalizer.canonical(given)
    if canonical is None:
        rejection = uncanonical(given)
        row = {"filter": rejection.filter.value, "reason": rejection.reason}
        return Explanation(given, None, [f"It is never fetched: {rejection.reason}"], rejection=row)
    facts = _Facts(reader, store, configuration, now, canonical, rounds)
    known = facts.known()
    parts: dict[str, Any] = {
        "request_form": canonicalizer.request_form(given),
        "rules": rules_applied(given, configuration),
        "url_id": facts.url_id,
        "host": facts.host,
        "domain": facts.domain,
        "bucket": facts.bucket,
        "scope": facts.scope(),
        "rejection": facts.rejection(int(known["depth"]) if known else 0),
        "robots": facts.robots(),
        "known": known,
        "host_state": facts.host_state(),
        "representative": facts.representative(known),
        "decisions": facts.decisions(),
        "proposals": facts.proposals(),
        "aliases": facts.aliases(),
        "plans": facts.of_rounds("fetch_plan", "url_id", "round_id"),
        "tries": facts.tries(),
        "skips": facts.of_rounds("skips", "url_id", "round_id"),
        "rejects": facts.rejects(),
        "linked_from": facts.of_rounds("links", "dst_url_id", "round_id"),
        "last_round": facts.last_round,
    }
    return Explanation(given, canonical, verdicts(parts, now), **parts)


def rules_applied(url: str, configuration: Configuration) -> list[Row]:
    """The URL rules that change `url`, in order, each with what it makes of it."""
    current = parse(url)
    steps: list[Row] = []
    if current is not None and current != url:
        steps.append({"rule": "parse", "what": "Parses as browsers do (WHATWG).", "result": current})
    pattern = url_rules.parameter_pattern(configuration.urls.drop_parameters)
    for rule in url_rules.RULES:
        if current is None:
            break
        if not any(text in current for text in rule.needs):
            continue
        if rule.function is url_rules.drop_param:
            changed = current if pattern is None else url_rules.drop_param(current, pattern)
        else:
            changed = rule.function(current)
        if changed != current:
            steps.append({"rule": rule.name, "what": rule.what, "result": changed})
        current = changed
    for line in configuration.urls.site_rules:
        changed = None if current is None else SiteRules([parsed_line(line)]).applied(current, in_request=False)
        if changed != current:
            steps.append({"rule": line, "what": parsed_line(line).kind.sentence, "result": changed})
        current = changed
    return steps


class _Facts:
    """The queries behind an explanation; each reads one bucket or the slices of a few rounds."""

    def __init__(
        self, reader: Reader, store: Store, configuration: Configuration, now: datetime, canonical: str, rounds: int
    ) -> None:
        self._reader, self._store, self._configuration, self._now = reader, store, configuration, now
        self._canonical = canonical
        self.url_id = url_id(canonical)
        self.host = host_of(canonical)
        self.domain = registered_domain(self.host)
        self.bucket = bucket_of(self.host, configuration.storage.buckets)
        known_rounds = reader.rounds()
        self.last_round: Row | None = known_rounds[-1] if known_rounds else None
        ids = sorted(str(row["round_id"]) for row in known_rounds[-rounds:])
        self._since = ids[0] if ids else ""

    def _rows(self, table: str, where: str, order: str = "", limit: int = SHOWN) -> Sequence[Row]:
        if self._reader.version(table) is None:
            return []
        tail = f" ORDER BY {order}" if order else ""
        found = self._reader.query(f"SELECT * FROM {table} WHERE {where}{tail} LIMIT {limit}")
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def of_rounds(self, table: str, id_column: str, order: str) -> Sequence[Row]:
        where = f"round_id >= {_text(self._since)} AND {id_column} = {self.url_id}"
        return self._rows(table, where, f"{order} DESC")

    def known(self) -> Row | None:
        rows = self._rows("urls", f"bucket = {self.bucket} AND url_id = {self.url_id}")
        return rows[0] if rows else None

    def host_state(self) -> Row | None:
        rows = self._rows("hosts", f"bucket = {self.bucket} AND host = {_text(self.host)}")
        return rows[0] if rows else None

    def representative(self, known: Row | None) -> Row | None:
        if known is None or known["canonical_url_id"] in (None, self.url_id):
            return None
        rows = self._rows("urls", f"url_id = {known['canonical_url_id']}")
        return rows[0] if rows else {"url_id": known["canonical_url_id"]}

    def scope(self) -> Sequence[Row]:
        near = f"scope = 'anywhere' OR registered_domain = {_text(self.domain)}"
        rows = self._rows("seeds", near, "url", limit=100_000)
        return [
            {name: row[name] for name in ("url", "scope", "raw_seed", "tags", "added_by")}
            for row in rows
            if ScopeRule(Scope(row["scope"]), row["url"]).allows(self._canonical)
        ][:SHOWN]

    def rejection(self, depth: int) -> Row | None:
        traps = [row["subject"] for row in self.decisions() if row["kind"] == OverrideKind.TRAP.value]
        filters = UrlFilters.from_settings(self._configuration.urls, self._now.date(), traps)
        rejection = filters.check(self._canonical, depth)
        return None if rejection is None else {"filter": rejection.filter.value, "reason": rejection.reason}

    def robots(self) -> Row | None:
        scheme = split(self._canonical).scheme
        where = f"scheme = {_text(scheme)} AND host = {_text(self.host)}"
        rows = self._rows("robots", where, "fetched_at DESC", limit=1)
        if not rows:
            return None
        row = dict(rows[0])
        body = row.pop("body")
        agent = self._configuration.agent.name
        if row["robots_outcome"] == RobotsOutcome.RULES.value:
            decision = RobotsRules.parse(body or "", agent).decide(self._canonical)
            return {**row, "agent": agent, "allowed": decision.allowed, "rule": decision.rule}
        allowed = row["robots_outcome"] == RobotsOutcome.ALLOW_ALL.value
        return {**row, "agent": agent, "allowed": allowed, "rule": ""}

    def decisions(self) -> Sequence[Row]:
        events = read_events(self._store)
        in_force = decisions.fold_decisions(events, self._now).overrides
        return [{**vars(o), "kind": o.kind.value} for o in in_force if self._concerns(o.kind, o.subject)]

    def proposals(self) -> Sequence[Row]:
        """Of the newest survey, what it found of this host and domain."""
        newest = "round_id = (SELECT max(round_id) FROM proposals)" if self._reader.version("proposals") else "false"
        rows = self._rows("proposals", newest, "override_kind, subject", limit=100_000)
        return [row for row in rows if re.split("[/?]", row["subject"])[0] in (self.host, self.domain)][:SHOWN]

    def aliases(self) -> Sequence[Row]:
        return self._rows("url_aliases", f"alias_of_url_id = {self.url_id}", "round_id DESC, url")

    def _concerns(self, kind: OverrideKind, subject: str) -> bool:
        if "://" in subject:
            return self._canonical.startswith(subject)
        subject = re.split("[/?]", subject)[0]
        name = self.host.rpartition(":")[0] if self.host.rpartition(":")[2].isdigit() else self.host
        return subject == self.host or name == subject or name.endswith(f".{subject}")

    def tries(self) -> Sequence[Row]:
        where = f"round_id >= {_text(self._since)} AND (url_id = {self.url_id} OR planned_url_id = {self.url_id})"
        return self._rows("fetches", where, "round_id DESC, attempt DESC, hop DESC")

    def rejects(self) -> Sequence[Row]:
        where = f"round_id >= {_text(self._since)} AND dst_url = {_text(self._canonical)}"
        return self._rows("rejects", where, "round_id DESC")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
