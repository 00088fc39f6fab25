"""Every column, defined once: Spark type, unit, sentence, closed set, bound.

Tables (`catalog.py`) name columns from here, so a name means the same in every table. Rendered
to Spark schema, constraints, DDL (`ddl.py`) and the data dictionary.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass

from recrawl.tables import vocabulary as v


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: snake_case, with its unit where it has one.
        type: a Spark SQL type.
        sentence: what a value means.
        values: the closed set of its values.
        minimum: the least value allowed.
        volatile: may differ when a step runs again (times, offsets, attempts); see rule R4.
    """

    name: str
    type: str
    sentence: str
    values: builtins.type[v.Vocabulary] | None = None
    minimum: int | None = None
    volatile: bool = False


def _text(name: str, sentence: str, values: type[v.Vocabulary] | None = None, volatile: bool = False) -> Column:
    return Column(name, "STRING", sentence, values=values, volatile=volatile)


def _long(name: str, sentence: str, minimum: int | None = 0, volatile: bool = False) -> Column:
    return Column(name, "BIGINT", sentence, minimum=minimum, volatile=volatile)


def _int(name: str, sentence: str, minimum: int | None = 0, volatile: bool = False) -> Column:
    return Column(name, "INT", sentence, minimum=minimum, volatile=volatile)


def _real(name: str, sentence: str, minimum: int | None = 0, volatile: bool = False) -> Column:
    return Column(name, "DOUBLE", sentence, minimum=minimum, volatile=volatile)


def _time(name: str, sentence: str, volatile: bool = False) -> Column:
    return Column(name, "TIMESTAMP", sentence, volatile=volatile)


def _flag(name: str, sentence: str) -> Column:
    return Column(name, "BOOLEAN", sentence)


def _id(name: str, sentence: str) -> Column:
    return Column(name, "BIGINT", sentence)


def _sum(name: str, sentence: str) -> Column:
    return Column(name, "DECIMAL(38,0)", sentence)


_IDENTITY = (
    _text("round_id", "The round: UTC time of its run, e.g. 20261130T030000.000000Z."),
    _int("bucket", "pmod(xxhash64(host), storage.buckets): the partition of a state table."),
    _id("url_id", "xxhash64 of the canonical URL, signed."),
    _text("url", "The canonical URL: what identifies it."),
    _text("request_url", "The URL as it is requested: the query in the order in which it was found."),
    _text("host", "Host name, with the port where it is not the scheme's default."),
    _text("registered_domain", "The domain under the public suffix."),
    _text("scheme", "http, https or ftp."),
    _id("alias_of_url_id", "The id that has taken its place."),
    _text("alias_of_url", "The canonical URL of that id."),
)

_URL_STATE = (
    _text("state", "Lasting state.", values=v.UrlState),
    _int("depth", "Least known number of links from a seed."),
    _text("seed_tag", "Tags of the seed from which it was first reached, comma separated."),
    _text("discovered_round", "Round in which it became known."),
    _int("fetch_count", "Answered tries: captures, revisits, redirects."),
    _int("change_count", "Captures that differed from the one before."),
    _int("failure_streak", "Failures in a row."),
    _time("last_fetch_at", "End of the last try."),
    _time("last_success_at", "End of the last answered try."),
    _time("last_change_at", "End of the last try that found new content."),
    _time("next_fetch_at", "It is not due before."),
    _int("last_status", "HTTP status of the last try."),
    _text("last_outcome", "Outcome of the last try.", values=v.Outcome),
    _real("change_rate_per_day", "Estimated changes a day."),
    _real("change_events", "Estimator state: expected changes seen, prior excluded; 0 at first."),
    _real("observed_days", "Estimator state: days observed, prior excluded; 0 at first."),
    _long("cash", "AOPIC cash at lambda_index, in 10^-12 credits."),
    _long("history", "AOPIC history within the window, in 10^-12 credits."),
    _time("history_at", "Time to which history is reduced."),
    _long("lambda_index", "Lambda's index X at which cash was last settled, in 10^-12 credits."),
    _long("seed_credit", "Credit ever granted to it as a seed, in 10^-12 credits."),
    _long("inlinks", "Pages that linked to it when they were first captured."),
    _id("content_checksum", "First 64 bits of SHA-256 of the decoded body."),
    _text("content_round_id", "Round whose rows hold its text and links."),
    _text("etag", "ETag of the last capture."),
    _text("last_modified", "Last-Modified of the last capture, as sent."),
    _text("last_payload_digest", "Payload digest of the last capture."),
    _text("last_warc_file", "WARC file of the last full capture, which revisit records refer to."),
    _text("last_warc_record_id", "WARC-Record-ID of the last full capture."),
    _time("last_warc_date", "WARC-Date of the last full capture."),
    _id("canonical_url_id", "Its representative: redirect target, duplicate's or canonical URL."),
    _int("canonical_rules_version", "Version of the URL rules that made it."),
    _real("manual_priority", "Factor on the crawl value that a person set."),
    _time("listed_lastmod_at", "Latest change that a sitemap or feed of its domain told."),
    _text("last_round_id", "Round that last touched it."),
)

_HOSTS = (
    Column("ips", "ARRAY<STRING>", "Addresses seen."),
    _text("zone", "Network zone."),
    _text("robots_digest", "SHA-256 of the robots.txt in force."),
    _time("robots_expires_at", "When robots.txt is fetched again."),
    _real("crawl_delay_seconds", "Crawl-delay of robots.txt."),
    _real("adaptive_delay_seconds", "Gap that the host's last behaviour asks for."),
    _time("last_access_at", "End of the last request."),
    _time("blocked_until", "Not contacted before."),
    _int("error_streak", "Faults in a row, over rounds."),
    _long("url_count", "Known URLs."),
    _long("page_count", "Captures ever."),
    _long("duplicate_count", "Captures whose content another URL has."),
    _long("trap_link_count", "Links of its captures to URLs of its own that a filter for traps turned away."),
    _real("trap_score", "0 to 1: how far its trap links or duplicates stand out among hosts of its size."),
    _long("quota_urls_per_round", "URLs a round that a person allows."),
    _text("mirror_of", "Main host of which it is an alias."),
    _flag("case_insensitive", "Paths differ by case only and hold the same content."),
    Column("index_names", "ARRAY<STRING>", "File names that hold the content of their folder."),
)

_ROBOTS = (
    _time("fetched_at", "End of the request.", volatile=True),
    _text("body", "The file, at most 512 KiB."),
    _text("body_digest", "SHA-256 of the file, hexadecimal."),
    _time("expires_at", "When it is fetched again.", volatile=True),
    _text("redirect_target", "Where the file was in the end."),
    _text("robots_outcome", "How fetching ended.", values=v.RobotsOutcome),
    _text("robots_rule", "The line of robots.txt that decided; empty: no line matched."),
)

_SEEDS = (
    _text("raw_seed", "The seed as written."),
    _long("credit_granted", "Credit of the seed, in 10^-12 credits."),
    _text("scope", "What it opens to the crawl.", values=v.Scope),
    Column("tags", "ARRAY<STRING>", "Free words of the operator."),
    _time("added_at", "When it was first read."),
    _text("added_by", "Who added it, or the file."),
)

_PROPOSALS = (
    _long("compared", "Pairs or groups of pages that were compared."),
    _long("agreeing", "Of these, those with equal content."),
    _text("example_url", "One of the pages compared."),
    _text("other_example_url", "The page that it was compared with."),
)

_OVERRIDES = (
    _text("subject", "Host, domain, URL prefix or URL."),
    _text("override_kind", "The decision.", values=v.OverrideKind),
    _text("value", "Number or text of the decision."),
    _text("reason", "Why, in a person's words."),
    _text("who", "Who decided."),
    _time("since", "When it was decided."),
    _time("until", "When it ends."),
)

_PLAN = (
    _int("fetch_partition", "Fetch task that owns the host."),
    _int("rank_in_host", "Order within the host, from 1."),
    _real("crawl_value", "Importance times expected gain times the factors of quality, listing, host and priority."),
    _text("queue", "Front queue it came from.", values=v.FrontQueue),
    _long("max_bytes", "Size cap of the body.", minimum=1),
    _time("earliest_at", "Not requested before."),
    _text("step", "The step that skipped it."),
    _text("skip_reason", "Why it was not fetched.", values=v.SkipReason),
    _real("predicted_seconds", "Predicted time of its fetch partition."),
)

_FETCHES = (
    _id("planned_url_id", "The planned URL that this try serves."),
    _int("attempt", "Try within the round, from 1."),
    _int("hop", "Redirect hop, from 0."),
    _flag("final", "The last row of its planned URL."),
    _text("outcome", "How the try ended.", values=v.Outcome),
    _int("status", "HTTP status; NULL without an answer."),
    _time("started_at", "Start of the request.", volatile=True),
    _time("ended_at", "End of the answer.", volatile=True),
    _long("delay_ms_required", "Gap that politeness required before it.", volatile=True),
    _text("ip", "Address that answered.", volatile=True),
    _long("bytes_wire", "Bytes of the body as sent.", volatile=True),
    _long("bytes_body", "Bytes of the body decoded."),
    _text("mime_declared", "Media type that the server declared."),
    _text("mime_sniffed", "Media type that the body shows."),
    _text("content_type", "The Content-Type header."),
    _text("x_robots_tag", "The X-Robots-Tag headers, joined by newlines."),
    _text("payload_digest", "Digest of the payload as in WARC."),
    _text("truncated", "Why the body was cut.", values=v.TruncatedReason),
    _text("redirect_url", "Target of a redirect, as canonical URL."),
    _text("warc_file", "WARC file, relative to the storage root.", volatile=True),
    _long("warc_offset", "Offset of the response or revisit record.", volatile=True),
    _long("warc_length", "Compressed length of the record.", volatile=True),
    _text("warc_record_id", "WARC-Record-ID of the response or revisit record.", volatile=True),
    _flag("revisit", "The record is a revisit: the content stands in an earlier record."),
    _text("detail", "What went wrong, for people.", volatile=True),
)

_VISITS = (
    _long("requests", "Requests made.", volatile=True),
    _long("min_gap_ms", "Least gap seen between an answer's end and the next request.", volatile=True),
    _long("errors", "Faults.", volatile=True),
    _long("deferred", "Planned URLs given back."),
    _real("retry_after_seconds", "Longest Retry-After asked for.", volatile=True),
    _real("dns_ms", "Median time of name look-ups.", volatile=True),
    _real("connect_ms", "Median time to connect.", volatile=True),
    _real("first_byte_ms", "Median time to the first byte.", volatile=True),
)

_WARC_FILES = (
    _long("bytes", "Size of the file.", volatile=True),
    _long("records", "Records in it.", volatile=True),
    _text("sha256", "SHA-256 of the file, hexadecimal.", volatile=True),
    _time("first_date", "First WARC-Date.", volatile=True),
    _time("last_date", "Last WARC-Date.", volatile=True),
    _time("published_at", "When it was published.", volatile=True),
)

_PAGES = (
    _text("title", "Title."),
    _text("author", "Author."),
    _text("published_at_text", "Publication date as found."),
    _text("text", "Main text."),
    _text("language", "Language of the text, ISO 639-1."),
    _text("charset", "Encoding, by its WHATWG name."),
    _text("canonical", "Target of the canonical link, as canonical URL."),
    _flag("noindex", "The page or its headers say noindex."),
    _flag("nofollow", "The page or its headers say nofollow."),
    _flag("noarchive", "The page or its headers say noarchive; NULL where it was not parsed."),
    _flag("needs_rendering", "The page is empty until its scripts run; NULL where that was not looked at."),
    Column("metadata", "MAP<STRING,STRING>", "What else it states, as OpenGraph, linked data or a size."),
    _real("quality", "0 to 1: how much it is worth reading."),
    _text("handler", "Content handler that parsed it."),
    _text("parse_outcome", "How parsing ended.", values=v.ParseOutcome),
    _id("text_checksum", "64 bits of the normalised text: no dates, counters, advertisements; NULL where too short."),
    _text("change_verdict", "Against the capture before it.", values=v.ChangeVerdict),
    _text("previous_round_id", "Round of the capture before it."),
    _int("parser_version", "Version of the parser."),
    _int("outlink_count", "Distinct link targets before filters."),
    _int("kept_outlink_count", "Distinct link targets kept."),
    Column("watched", "ARRAY<STRING>", "What web monitors found: monitor, a colon, what matched."),
)

_LINKS = (
    _id("src_url_id", "The page that holds the link."),
    _int("position", "Order in the page, from 0."),
    _text("src_url", "Canonical URL of the page."),
    _text("src_host", "Host of the page."),
    _text("src_domain", "Registered domain of the page."),
    _id("dst_url_id", "The target."),
    _text("dst_url", "Canonical URL of the target; as written where it was rejected as no URL."),
    _text("dst_host", "Host of the target."),
    _text("dst_domain", "Registered domain of the target."),
    _text("link_kind", "Where the link stands.", values=v.LinkKind),
    _text("rel", "The link's rel words, in lower case."),
    _flag("followed", "It counts as a link: neither the page nor its rel says nofollow."),
    _text("anchor_text", "Text of the link, at most 500 characters."),
    _text("listed_lastmod_text", "When a sitemap or feed of the target's domain says that it changed, as found."),
    _real("listed_priority", "Priority that a sitemap of the target's domain gives it, 0 to 1."),
    _text("filter", "The filter that turned it away.", values=v.RejectFilter),
    _text("reject_reason", "What the filter saw."),
)

_CONTENT = (
    _id("representative_url_id", "The URL that stands for the content."),
    _long("captures", "Captures of it in the round."),
    _id("identity_checksum", "What identifies a content: text_checksum where it has one, else content_checksum."),
    Column("bands", "ARRAY<BIGINT>", "MinHash bands of its text: near-duplicates most likely share one."),
    Column("signature", "ARRAY<BIGINT>", "MinHash signature of its text: 128 values of 4 bits, 16 a number."),
    _id("first_url_id", "The URL that stands for the content."),
    _text("first_round_id", "Round whose rows hold its text."),
    _id("cluster_id", "Cluster of near-duplicates: identity_checksum of the content that stands for it."),
    _text("links_round_id", "Round in which the links were read."),
    Column("dst_url_ids", "ARRAY<BIGINT>", "Distinct targets kept."),
    _flag("is_new", "Not known before the round."),
    _long("cash_received", "Cash that the round's pages gave it, in 10^-12 credits."),
    _int("min_depth", "Least depth of a page that links to it, plus one."),
    _flag("due_at_once", "A redirect to a host of another partition: due in the next round."),
)

_ALERTS = (
    _text("alert_id", "round_id, kind and subject."),
    _text("alert_kind", "What it is about.", values=v.AlertKind),
    _text("severity", "How much it matters.", values=v.Severity),
    _real("measured_value", "What was measured.", minimum=None),
    _real("threshold", "What it was measured against.", minimum=None),
    _text("message", "For people, with a hint at what to do."),
)

_ROUNDS = (
    _int("round_number", "1, 2, 3 … for people.", minimum=1),
    _text("round_kind", "What the round does.", values=v.RoundKind),
    _text("round_state", "Its state.", values=v.RoundState),
    _text("run_id", "Run that opened it."),
    _time("opened_at", "When it was opened."),
    _time("closed_at", "When it was closed.", volatile=True),
    _time("now", "The frozen time of the round: what due means."),
    _text("configuration", "The frozen configuration as JSON, without secrets."),
    Column("engine_versions", "MAP<STRING,STRING>", "Versions of the programs; `url_rules`: the configured URL rules."),
    Column("versions_at_open", "MAP<STRING,BIGINT>", "Delta version of each table at its start."),
    Column("versions_at_close", "MAP<STRING,BIGINT>", "Delta version of each table at its end."),
    _int("generation", "Raised by undo, so that folded rows are never silently skipped."),
    _long("planned", "URLs planned."),
    _long("fetched", "Planned URLs with a final row in fetches."),
    _long("skipped_after_plan", "Planned URLs with a skip."),
    _long("known_before", "Known URLs before."),
    _long("new_urls", "URLs that became known."),
    _long("known_after", "Known URLs after."),
    _long("merged_urls", "Known URLs that a rekey found to be one with another; NULL in other rounds."),
    _sum("cash_before", "Cash of all payable rows and Lambda before."),
    _sum("credit_granted_in_round", "Seed credit granted in the round."),
    _sum("cash_after", "Cash of all payable rows and Lambda after."),
    _sum("lambda_cash", "Lambda's cash L after."),
    _long("lambda_index_after", "Lambda's index X after."),
    _long("payable_urls", "Payable rows N after."),
    _sum("total_credit", "All credit ever granted, K, after."),
    _real("value_cutoff", "Crawl value of the last URL that fitted; NULL when all fitted."),
    _long("outcomes_ok", "Final rows with new content."),
    _long("outcomes_unchanged", "Final rows whose content was unchanged."),
    _long("outcomes_failed", "Final rows with a failure."),
    _long("warc_bytes", "Bytes of WARC published.", volatile=True),
)

COLUMNS: dict[str, Column] = {}
for _group in (
    _IDENTITY, _URL_STATE, _HOSTS, _ROBOTS, _SEEDS, _PROPOSALS, _OVERRIDES, _PLAN, _FETCHES, _VISITS, _WARC_FILES,
    _PAGES, _LINKS, _CONTENT, _ALERTS, _ROUNDS,
):  # fmt: skip
    for _column in _group:
        if _column.name in COLUMNS:
            raise ValueError(f"column {_column.name} is defined twice")
        COLUMNS[_column.name] = _column
