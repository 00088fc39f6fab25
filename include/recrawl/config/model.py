"""The configuration: one model, each field a sentence and, in its name, a unit.

The defaults stand here and nowhere else; `docs/generated/configuration.md` is rendered from
this module. An unknown key is an error that names the nearest known one (`load.py`).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from recrawl.tables.vocabulary import FrontierMode, FrontQueue, Scope

DAY_SECONDS = 86_400
MIB = 1 << 20

#: `user:password@` of an address, with or without its scheme.
_USER_INFO = re.compile(r"(?<=//)[^/]*@|^[^/]*@")
#: The names of Spark settings that hold secrets, as Spark itself tells them.
_SECRET_SETTING = re.compile(r"(?i)secret|password|token|access[.]?key")

Seconds = Annotated[float, Field(ge=0)]
PositiveInt = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    """A part of the configuration: immutable, no unknown keys, defaults checked too."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Agent(Section):
    """Who we say we are."""

    name: str = Field("recrawl", pattern=r"^[A-Za-z_-]+$", description="Product token, sent in User-Agent and matched in robots.txt.")
    version: str = Field("0.1", description="Version sent after the product token.")
    contact: str = Field("", description="A mail address or page where site owners reach the operator; needed for any address that is not loopback or explicitly allowed.")

    @property
    def user_agent(self) -> str:
        """The User-Agent header."""
        contact = f" (+{self.contact})" if self.contact else ""
        return f"{self.name}/{self.version}{contact}"


class Storage(Section):
    """Where the crawl lives."""

    root: str = Field("", description="The storage root: a path or s3a:// address. Empty: `.recrawl/crawl` in the project folder.")
    undo_days: PositiveInt = Field(30, description="Days that time travel and undo reach back.")
    buckets: int = Field(16, ge=1, le=4096, description="Partitions of the state tables; fixed when a crawl is created.")
    s3_endpoint: str = Field("", description="Address of an S3-compatible store; empty: the provider's own.")
    s3_access_key: str = Field("", description="Access key of the S3-compatible store.")
    s3_secret_key: SecretStr = Field(SecretStr(""), description="Secret key of the S3-compatible store; never logged.")
    lease_seconds: Seconds = Field(120, description="Seconds after the last heartbeat when a lease may be taken over.")


class Round(Section):
    """How rounds are scheduled and treated."""

    schedule: str = Field("", description="Cron expression or Airflow preset of the crawl_round DAG; empty: only when triggered.")
    on_open_round: Literal["continue", "abandon"] = Field("continue", description="What a new run does with a round that it finds open.")
    step_timeout_seconds: Seconds = Field(43_200, description="Seconds after which Airflow ends a step that still runs; fetch has its time budget besides.")


class Seed(Section):
    """The root set."""

    files: list[str] = Field([], description="Seed files, read at every round's start.")
    default_scope: Scope = Field(Scope.DOMAIN, description="Scope of seeds that name none.")
    default_credit: float = Field(1.0, ge=0, le=1_000_000, description="AOPIC credit of seeds that name none.")


class QueueWeight(Section):
    """One front queue and its guaranteed share."""

    name: FrontQueue = Field(description="The front queue.")
    weight: float = Field(ge=0, le=1, description="Share of the round's capacity that the queue gets if it can use it.")


class Frontier(Section):
    """What a round takes."""

    max_urls: PositiveInt = Field(1_000_000, description="URLs that a round plans at most.")
    mode: FrontierMode = Field(FrontierMode.BEST_FIRST, description="The order in which due URLs are taken.")
    queues: list[QueueWeight] = Field(
        [
            QueueWeight(name=FrontQueue.MANUAL, weight=0.1),
            QueueWeight(name=FrontQueue.DISCOVERY, weight=0.3),
            QueueWeight(name=FrontQueue.REFRESH, weight=0.2),
            QueueWeight(name=FrontQueue.RETRY, weight=0.05),
        ],
        description="Front queues with weights: floors against starvation; crawl value divides the rest.",
    )
    host_quota: PositiveInt = Field(10_000, description="URLs of one host that a round plans at most.")
    domain_quota: PositiveInt = Field(100_000, description="URLs of one registered domain that a round plans at most.")
    zones: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+([.][a-z0-9-]+)*$")], Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]] = Field({}, description="Network zone by ending of the registered domain (a TLD or a domain; the longest that names it counts), e.g. jp = \"asia\"; all others are in the zone `default`. Fetch partitions never mix zones.")
    task_requests_per_second: float = Field(200.0, gt=0, description="Requests a second that one fetch task achieves, for packing and predictions.")
    task_bytes_per_second: float = Field(50.0 * MIB, gt=0, description="Bytes a second that one fetch task achieves, for packing and predictions.")
    expected_page_bytes: PositiveInt = Field(100_000, description="Bytes of a page, for packing and predictions.")


class Fetch(Section):
    """How the network is used."""

    engine: Literal["curl", "requests"] = Field("curl", description="HTTP engine: curl (libcurl's multi interface) or requests.")
    http_version: Literal["1.1", "2"] = Field("1.1", description="HTTP version: 1.1, whose exact bytes are archived, or 2 where a server agrees to it over TLS (engine curl only; archived in the form of 1.1, with the protocol named).")
    slots: int = Field(0, ge=0, description="Fetch partitions, all in one wave; 0: the cores that Spark has.")
    time_budget_seconds: Seconds = Field(10_800, description="Seconds that the fetch step may take; the rest becomes skips.")
    min_delay_seconds: Seconds = Field(2.0, description="Least gap between the end of an answer and the next request to the host; 0 only for loopback and allowed private ranges.")
    max_delay_seconds: Seconds = Field(30.0, description="Greatest gap that latency alone asks for; a longer Crawl-delay is honoured.")
    latency_factor: float = Field(5.0, ge=0, description="The gap is this many times the host's last latency, within the two limits.")
    ip_gap_seconds: Seconds = Field(0.5, description="Least gap between requests to one IP address.")
    max_backoff_seconds: Seconds = Field(DAY_SECONDS, description="Greatest gap after repeated faults of a host.")
    max_errors_in_a_row: PositiveInt = Field(5, description="Faults in a row after which a host's rest is given back.")
    max_connections: PositiveInt = Field(2_000, description="Connections that one fetch task holds open at most.")
    max_bytes_per_second: int = Field(0, ge=0, description="Bytes of bodies that one fetch task receives a second, in the mean; 0: as many as come.")
    connect_timeout_seconds: Seconds = Field(10, description="Seconds for a connection to be made.")
    read_timeout_seconds: Seconds = Field(10, description="Seconds without a byte after which a transfer is cut.")
    total_timeout_seconds: Seconds = Field(60, description="Seconds for a whole request.")
    max_redirects: int = Field(5, ge=0, description="Redirects followed for one planned URL.")
    max_body_bytes: PositiveInt = Field(5 * MIB, description="Bytes kept of a body, on the wire and decoded; more is cut and marked.")
    max_sitemap_bytes: PositiveInt = Field(50 * MIB, description="Bytes kept of a sitemap.")
    max_header_bytes: PositiveInt = Field(256 * 1024, description="Bytes of response headers after which a request is cut.")
    robots_ttl_seconds: Seconds = Field(DAY_SECONDS, description="Seconds that a robots.txt is used before it is fetched again.")
    robots_error_ttl_seconds: Seconds = Field(3_600, description="Seconds until an unreachable robots.txt is tried again.")
    robots_tries: PositiveInt = Field(3, description="Times that an unreachable robots.txt is asked for in a round, with back-off between, before its host is denied for now.")
    robots_stale_seconds: Seconds = Field(30 * DAY_SECONDS, description="Seconds that a stored robots.txt may stand in for an unreachable one.")
    verify_tls: bool = Field(True, description="Refuse invalid certificates. Where they are accepted, what is wrong with them is told in `fetches.detail` and in the WARC metadata record.")
    proxy: str = Field("", description="Proxy for all requests, e.g. http://127.0.0.1:3128; empty: none.")
    allowed_private_ranges: list[str] = Field([], description="CIDR ranges of private or loopback addresses that may be contacted; metadata addresses never.")
    control_address: str = Field("", pattern=r"^$|^\S+:\d{1,5}$", description="Address and port, e.g. that of the provider's name server, to which a connection is tried when most hosts fail: if it fails too, our own uplink is down. Empty: faults always count against hosts.")
    outage_patience_seconds: Seconds = Field(300, description="Seconds that a fetch task waits for a lost uplink before it gives back what is left.")
    host_settings: dict[str, HostSettings] = Field({}, description="Headers and credentials by host; never logged, never stored.")
    flush_seconds: Seconds = Field(30, description="Seconds between flushes of journal and WARC part.")
    publish_seconds: Seconds = Field(300, description="Seconds after which an open WARC part is published.")
    publish_bytes: PositiveInt = Field(256 * MIB, description="Bytes after which an open WARC part is published.")
    warc_file_bytes: PositiveInt = Field(1_000_000_000, description="Bytes that a WARC file does not pass, unless one capture alone does; the next capture begins a new file.")
    spool_dir: str = Field("", description="Local folder for unpublished parts; empty: under the storage root if local, else the system's temporary folder.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for text in self.allowed_private_ranges:
            try:
                ipaddress.ip_network(text)
            except ValueError as error:
                raise ValueError(f"allowed_private_ranges: {text!r} is not a CIDR range ({error})") from None
        if self.http_version == "2" and self.engine == "requests":
            raise ValueError("the engine requests speaks HTTP/1.1 only; http_version 2 needs the engine curl")
        if self.max_delay_seconds < self.min_delay_seconds:
            raise ValueError("max_delay_seconds must not be less than min_delay_seconds")
        if self.warc_file_bytes < self.publish_bytes:
            raise ValueError("warc_file_bytes must not be less than publish_bytes")
        return self


class HostSettings(Section):
    """What one host needs from us."""

    headers: dict[str, SecretStr] = Field({}, description="Request headers to add, e.g. Authorization.")
    username: str = Field("", description="User name for HTTP authentication.")
    password: SecretStr = Field(SecretStr(""), description="Password for HTTP authentication.")


class Dns(Section):
    """Where names are resolved."""

    servers: list[str] = Field([], description="Name servers as address or address:port; empty: the system's resolver.")
    hosts_file: str = Field("", description="A file in the form of /etc/hosts that is asked first, for staging and intranets.")
    ttl_seconds: Seconds = Field(3_600, description="Seconds that an answer is kept.")
    tries: PositiveInt = Field(3, description="Times that a page is tried in a round, with back-off between, while name servers fail or don't answer; a name that does not exist is asked for once.")
    negative_ttl_seconds: Seconds = Field(60, description="Seconds that a failure is kept.")


class Urls(Section):
    """URL rules and filters."""

    drop_parameters: list[str] = Field(
        ["utm_*", "gclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "phpsessid", "jsessionid", "sid", "sessionid", "aspsessionid*"],
        description="Query parameters dropped from canonical URLs; * matches any ending.",
    )
    optional_rules: list[str] = Field(
        ["trailing_dot", "drop_param", "sort_query"],
        description="Optional rules of URL identity that apply (see the table of URL rules). Another choice, here or in drop_parameters and site_rules, gives known URLs another identity: a round then refuses to open until `recrawl rekey` has moved them.",
    )
    site_rules: list[str] = Field([], description="URL rules of single sites, a line each: `alias HOST MAIN`, `ignore-case HOST`, `index-page HOST/NAME`, `drop-parameter DOMAIN?NAME`. Those found by `recrawl survey` and accepted come behind them.")
    max_url_bytes: PositiveInt = Field(2_048, description="Length after which a URL is rejected.")
    max_depth: PositiveInt = Field(20, description="Links from a seed after which a URL is rejected.")
    max_segment_repeats: PositiveInt = Field(3, description="Times that a path segment pattern may repeat.")
    max_query_parameters: PositiveInt = Field(20, description="Query parameters after which a URL is rejected.")
    max_path_segments: PositiveInt = Field(20, description="Path segments after which a URL is rejected.")
    allowed_hosts: list[str] = Field([], description="Hosts and domains taken, with all their subdomains. Where any `allowed_` list has entries, only what one of them names is taken. In every list here an entry `file:/path` stands for the lines of that file, read in each round.")
    allowed_prefixes: list[str] = Field([], description="URL prefixes taken.")
    allowed_patterns: list[str] = Field([], description="Regular expressions; URLs that match anywhere are taken.")
    blocked_hosts: list[str] = Field([], description="Hosts and domains never taken, with all their subdomains.")
    blocked_prefixes: list[str] = Field([], description="URL prefixes never taken.")
    blocked_patterns: list[str] = Field([], description="Regular expressions; URLs that match anywhere are never taken.")
    blocked_extensions: list[str] = Field(
        ["7z", "apk", "avi", "avif", "bin", "bmp", "bz2", "css", "deb", "dmg", "doc", "docx", "eot", "exe", "gif", "gz", "ico", "iso", "jar", "jpeg", "jpg", "js", "m4a", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "ogg", "otf", "png", "ppt", "pptx", "rar", "rpm", "svg", "swf", "tar", "tgz", "tif", "tiff", "ttf", "wav", "webm", "webp", "wmv", "woff", "woff2", "xls", "xlsx", "xz", "zip", "zst"],
        description="Extensions of the path that are never taken.",
    )


class Monitor(Section):
    """One web monitor: what is watched for, and where."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="Its name, in alerts.")
    terms: list[str] = Field([], description="Words or phrases; found as whole words in title or visible text, whatever the case.")
    selectors: list[str] = Field([], description="CSS selectors; found where one matches an element.")
    prefixes: list[str] = Field([], description="URL prefixes of the pages that are watched; empty: all pages.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(term.strip() for term in [*self.terms, *self.selectors]) or not all(term.strip() for term in self.terms):
            raise ValueError(f"the monitor {self.name!r} needs terms or selectors, and none of them empty")
        return self


class Parse(Section):
    """What is taken from captures."""

    text_extractor: Literal["trafilatura", "resiliparse", "none"] = Field("trafilatura", description="Main text: trafilatura (best), resiliparse (ten times faster) or none.")
    max_links_per_page: PositiveInt = Field(1_000, description="Links of a page that are kept; the rest is counted.")
    unwanted_words: list[str] = Field([], description="Words that lower a page's quality: one in ten of them makes it 0.")
    linked_data_links: bool = Field(False, description="Take the addresses in a page's linked data (JSON-LD) as links too.")
    monitors: list[Monitor] = Field([], description="Web monitors: each new content that holds a term or matches a selector of one becomes an alert.")
    timeout_seconds: Seconds = Field(30, description="Seconds that parsing one document may take.")
    max_memory_mib: PositiveInt = Field(1_024, description="MiB of memory that parsing a large document, a PDF or a type of an installed handler may take; more kills it.")
    max_parse_bytes: PositiveInt = Field(5 * MIB, description="Bytes of a document that are parsed.")


class Dedupe(Section):
    """What is known already."""

    bloom_filter: Literal["off", "on", "auto"] = Field("off", description="Bloom filters before the exact join that tells new URLs from known ones: off, on, or auto (from bloom_min_known_urls on). The answer is the same; which is faster, docs/benchmarks.md says.")
    near_duplicates: bool = Field(True, description="Find near-duplicates among contents whose text is extracted: a cluster for each, named in `contents`.")
    bloom_min_known_urls: PositiveInt = Field(20_000_000, description="Known URLs from which auto uses Bloom filters.")


class Rank(Section):
    """Importance and freshness."""

    lambda_share: float = Field(0.1, gt=0, lt=1, description="Share of a page's cash that goes to Lambda.")
    importance_window_days: float = Field(90.0, gt=0, description="Window over which history counts.")
    first_interval_days: float = Field(7.0, gt=0, description="Interval before the second visit; its inverse is the prior change rate.")
    min_interval_seconds: Seconds = Field(3_600, description="Shortest time between visits of a URL.")
    max_interval_days: float = Field(90.0, gt=0, description="Longest time between visits of a URL.")
    gone_after_failures: PositiveInt = Field(3, description="Spaced 404 or 410 answers after which a URL is gone.")


class Spark(Section):
    """Where the jobs run."""

    master: str = Field("", description="Spark master; empty: local[N,3] with N the cores of this machine.")
    driver_memory: str = Field("2g", pattern=r"^\d+[mg]$", description="Memory of the driver (and, locally, of everything in the JVM).")
    executor_memory: str = Field("2g", pattern=r"^\d+[mg]$", description="Memory of one executor on a cluster.")
    shuffle_partitions: int = Field(0, ge=0, description="Partitions of a shuffle; 0: the cores that Spark has.")
    extra: dict[str, str] = Field({}, description="Further Spark settings, key by key.")


class Configuration(Section):
    """Everything that can be set."""

    agent: Agent = Field(Agent(), description="Who we say we are.")
    storage: Storage = Field(Storage(), description="Where the crawl lives.")
    round: Round = Field(Round(), description="How rounds are scheduled and treated.")
    seed: Seed = Field(Seed(), description="The root set.")
    frontier: Frontier = Field(Frontier(), description="What a round takes.")
    fetch: Fetch = Field(Fetch(), description="How the network is used.")
    dns: Dns = Field(Dns(), description="Where names are resolved.")
    urls: Urls = Field(Urls(), description="URL rules and filters.")
    parse: Parse = Field(Parse(), description="What is taken from captures.")
    dedupe: Dedupe = Field(Dedupe(), description="What is known already.")
    rank: Rank = Field(Rank(), description="Importance and freshness.")
    spark: Spark = Field(Spark(), description="Where the jobs run.")

    def without_secrets(self) -> dict[str, object]:
        """The configuration as JSON-ready data with every secret left out."""
        data = self.model_dump(mode="json", exclude={"fetch": {"host_settings"}})
        data["storage"].pop("s3_secret_key")
        data["storage"].pop("s3_access_key")
        data["fetch"]["proxy"] = _USER_INFO.sub("", data["fetch"]["proxy"])
        extra = data["spark"]["extra"]
        data["spark"]["extra"] = {key: value for key, value in extra.items() if not _SECRET_SETTING.search(key)}
        return data


Fetch.model_rebuild()
Configuration.model_rebuild()
