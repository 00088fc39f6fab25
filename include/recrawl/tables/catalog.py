"""Every table, defined once: its columns, its key, its layout and the step that owns it.

A column name that ends in `?` may be NULL; every other one has a NOT NULL constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from recrawl.tables.columns import COLUMNS, Column

#: Version of this model; stored on each table, an older program refuses a newer table.
MODEL_VERSION = 2


class TableKind(Enum):
    """How a table is written."""

    STATE = "state"  #: folded once a round, by rank; partitioned by bucket
    EVENT = "event"  #: a slice a round, replaced by its step; partitioned by round_id
    LEDGER = "ledger"  #: small and lasting, merged by key; not partitioned


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: as in `crawl.<name>`.
        sentence: what a row is.
        kind: how it is written.
        owner: the step that writes it, alone.
        key: the columns that identify a row.
        column_names: in order; a trailing `?` marks a column that may be NULL.
    """

    name: str
    sentence: str
    kind: TableKind
    owner: str
    key: tuple[str, ...]
    column_names: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in order."""
        return tuple(COLUMNS[name.rstrip("?")] for name in self.column_names)

    def nullable(self, name: str) -> bool:
        """Whether the column may be NULL."""
        return f"{name}?" in self.column_names

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The partition columns."""
        if self.kind is TableKind.EVENT:
            # Where several steps write a table, each has its own slice to replace.
            return ("round_id", "step") if "step" in self.column_names else ("round_id",)
        return ("bucket",) if self.kind is TableKind.STATE else ()


def _table(name: str, sentence: str, kind: TableKind, owner: str, key: str, columns: str) -> Table:
    return Table(name, sentence, kind, owner, tuple(key.split()), tuple(columns.split()))


_URL_COLUMNS = (
    "url_id url host state depth seed_tag discovered_round fetch_count change_count failure_streak "
    "last_fetch_at? last_success_at? last_change_at? next_fetch_at? last_status? last_outcome? "
    "change_rate_per_day change_events observed_days cash history history_at? lambda_index seed_credit inlinks "
    "content_checksum? content_round_id? etag? last_modified? last_payload_digest? last_warc_file? "
    "last_warc_record_id? last_warc_date? canonical_url_id? canonical_rules_version manual_priority last_round_id "
    "request_url? listed_lastmod_at? listed_priority? quality? text_checksum?"
)

S, E, L = TableKind.STATE, TableKind.EVENT, TableKind.LEDGER

_ALL = (
    _table("urls", "A known URL and its lasting state.", S, "rank", "bucket url_id", f"bucket {_URL_COLUMNS}"),
    _table(
        "hosts", "An authority: a host and its port where that is not the default.", S, "rank", "bucket host",
        "bucket host registered_domain ips zone robots_digest? robots_expires_at? crawl_delay_seconds? "
        "adaptive_delay_seconds? last_access_at? blocked_until? error_streak connect_ms? first_byte_ms? url_count "
        "page_count duplicate_count trap_score quota_urls_per_round? mirror_of? case_insensitive index_names "
        "last_round_id trap_link_count",
    ),
    _table(
        "contents", "A distinct content.", S, "rank", "bucket identity_checksum",
        "bucket identity_checksum content_checksum first_url_id first_round_id cluster_id? last_round_id",
    ),
    _table(
        "outlinks", "A page's latest outlinks.", S, "rank", "bucket src_url_id",
        "bucket src_url_id links_round_id dst_url_ids outlink_count last_round_id",
    ),
    _table(
        "seeds", "A seed of the lasting root set.", L, "seed", "url_id",
        "url_id url host registered_domain raw_seed credit_granted scope tags manual_priority added_at added_by "
        "request_url?",
    ),
    _table(
        "overrides", "A person's decision in force.", L, "seed", "subject override_kind",
        "subject override_kind value? reason who since until?",
    ),
    _table(
        "rounds", "A round.", L, "seed, rank", "round_id",
        "round_id round_number round_kind round_state run_id opened_at closed_at? now configuration engine_versions "
        "versions_at_open versions_at_close? generation planned? fetched? skipped_after_plan? known_before new_urls? "
        "known_after? cash_before credit_granted_in_round? cash_after? lambda_cash lambda_index_after payable_urls "
        "total_credit value_cutoff? outcomes_ok? outcomes_unchanged? outcomes_failed? warc_bytes? "
        "merged_urls?",
    ),
    _table(
        "fetch_plan", "A URL planned for a round.", E, "frontier", "round_id url_id",
        "round_id url_id url request_url host fetch_partition rank_in_host crawl_value queue depth max_bytes etag? "
        "last_modified? last_payload_digest? last_warc_file? last_warc_record_id? last_warc_date? earliest_at? "
        "predicted_seconds",
    ),
    _table(
        "skips", "A URL that was due or planned and was not fetched.", E, "frontier, fetch", "round_id url_id step",
        "round_id url_id step host skip_reason",
    ),
    _table(
        "fetches", "One try; each redirect hop is one.", E, "fetch", "round_id planned_url_id attempt hop",
        "round_id planned_url_id attempt hop url_id url host final outcome status? started_at ended_at "
        "delay_ms_required ip? bytes_wire bytes_body mime_declared? mime_sniffed? content_type? x_robots_tag? "
        "payload_digest? content_checksum? etag? last_modified? truncated? redirect_url? robots_digest? robots_rule? "
        "revisit warc_file? warc_offset? warc_length? warc_record_id? detail?",
    ),
    _table(
        "host_visits", "A host's visit in a round.", E, "fetch", "round_id host",
        "round_id host requests min_gap_ms? errors deferred retry_after_seconds? dns_ms? connect_ms? first_byte_ms? "
        "ips crawl_delay_seconds? adaptive_delay_seconds? last_access_at? blocked_until? error_streak robots_digest? "
        "robots_expires_at?",
    ),
    _table(
        "robots", "A robots.txt as fetched.", E, "fetch", "round_id scheme host",
        "round_id scheme host fetched_at status? robots_outcome body? body_digest? expires_at redirect_target? "
        "crawl_delay_seconds?",
    ),
    _table(
        "warc_files", "A published WARC file.", E, "fetch", "round_id warc_file",
        "round_id warc_file bytes records sha256 first_date? last_date? published_at",
    ),
    _table(
        "pages", "An answered fetch, parsed.", E, "parse", "round_id url_id",
        "round_id url_id planned_url_id url host seed_tag fetched_at title? author? published_at_text? text? "
        "language? charset? "
        "canonical? noindex nofollow quality? handler parse_outcome content_checksum? text_checksum? change_verdict "
        "content_round_id? previous_round_id? parser_version outlink_count kept_outlink_count depth "
        "noarchive? needs_rendering? metadata? trap_link_count? watched? registered_domain?",
    ),
    _table(
        "links", "An edge.", E, "parse", "round_id src_url_id position",
        "round_id src_url_id position src_url src_host src_domain dst_url_id dst_url dst_host dst_domain link_kind "
        "rel? followed anchor_text? request_url? listed_lastmod_text? listed_priority?",
    ),
    _table(
        "rejects", "A link or seed not taken, and why.", E, "parse, seed", "round_id src_url_id dst_url",
        "round_id src_url_id? dst_url step filter reject_reason",
    ),
    _table(
        "content_seen", "A content captured in the round.", E, "dedupe", "round_id identity_checksum",
        "round_id identity_checksum content_checksum representative_url_id captures cluster_id?",
    ),
    _table(
        "signatures", "A content's MinHash signature, taken when it was first parsed.", E, "parse", "round_id url_id",
        "round_id url_id identity_checksum bands signature",
    ),
    _table(
        "discovered", "A link target of the round.", E, "dedupe", "round_id url_id",
        "round_id url_id url request_url? host registered_domain? is_new cash_received inlinks min_depth "
        "due_at_once seed_tag listed_lastmod_at? listed_priority?",
    ),
    _table(
        "url_updates", "The round's after-image of a touched URL.", E, "rank, rekey", "round_id url_id",
        f"round_id is_new bucket {_URL_COLUMNS}",
    ),
    _table(
        "url_aliases", "An id that a URL had before the rules changed; the newest row of an id holds.", E, "rekey",
        "round_id url_id",
        "round_id url_id url host alias_of_url_id alias_of_url",
    ),
    _table(
        "proposals", "A URL rule of a site that a survey found, with its evidence.", E, "survey",
        "round_id override_kind subject",
        "round_id override_kind subject value? compared agreeing example_url other_example_url",
    ),
    _table(
        "alerts", "Something a person should know.", E, "rank", "alert_id",
        "round_id alert_id alert_kind subject severity measured_value? threshold? message",
    ),
)  # fmt: skip

TABLES: dict[str, Table] = {table.name: table for table in _ALL}

STATE_TABLES: tuple[str, ...] = tuple(table.name for table in _ALL if table.kind is S)
EVENT_TABLES: tuple[str, ...] = tuple(table.name for table in _ALL if table.kind is E)

#: The database that analysts see.
DATABASE = "crawl"

#: The folder of a crawl's tables under its storage root.
TABLES_FOLDER = "tables"
