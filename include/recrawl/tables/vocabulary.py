"""The closed sets of values that columns take, each value with its sentence.

Expected outcomes of the world are values from here. A value that is not in its set never
reaches a table: each set becomes a CHECK constraint.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Vocabulary(StrEnum):
    """A closed set of words; each member carries the sentence that explains it."""

    sentence: str

    def __new__(cls, word: str, sentence: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence = sentence
        return member


class UrlState(Vocabulary):
    """The lasting state of a known URL."""

    NEW = "new", "Known, never answered yet."
    FETCHED = "fetched", "Answered with content; its own representative."
    FAILING = "failing", "The last tries failed; it is tried again with growing intervals."
    GONE = "gone", "Answered 404 or 410 in three spaced tries; looked at again rarely."
    DENIED = "denied", "The site refuses it to us: 401, 403, 451 or robots.txt."
    DUPLICATE = "duplicate", "Its content is that of another URL, its representative."
    REDIRECT = "redirect", "It redirects; the target is its representative."
    TRAP = "trap", "Recognised as part of a crawler trap."
    EXCLUDED = "excluded", "A person or a filter excluded it."


class Outcome(Vocabulary):
    """How one try to fetch a URL ended."""

    OK = "ok", "A 2xx answer with content."
    NOT_MODIFIED = "not_modified", "304: the content is that of the last capture."
    REDIRECT = "redirect", "A 3xx answer with a target; the target has its own row."
    TOO_MANY_REDIRECTS = "too_many_redirects", "The chain was cut at the limit or it loops."
    NOT_FOUND = "not_found", "404."
    GONE = "gone", "410."
    FORBIDDEN = "forbidden", "401, 402, 403, 407 or 451."
    CLIENT_ERROR = "client_error", "Another 4xx answer."
    RATE_LIMITED = "rate_limited", "429."
    SERVER_ERROR = "server_error", "A 5xx answer."
    ROBOTS_DENIED = "robots_denied", "robots.txt disallows the URL to our agent."
    ROBOTS_UNAVAILABLE = "robots_unavailable", "robots.txt could not be had; denied for now."
    ADDRESS_REFUSED = "address_refused", "The resolved address is one that we must not contact."
    DNS_ERROR = "dns_error", "The host name does not resolve."
    CONNECT_ERROR = "connect_error", "No connection, or it broke before an answer."
    TLS_ERROR = "tls_error", "The TLS handshake failed or the certificate is not valid."
    TIMEOUT = "timeout", "The answer did not come, or did not end, in time."
    PROTOCOL_ERROR = "protocol_error", "The answer is not HTTP, or breaks it beyond use."
    INVALID_URL = "invalid_url", "The URL (or a redirect's target) can't be requested."


#: Outcomes that count as a fault of the host for back-off and the five-in-a-row rule.
HOST_FAULTS = frozenset(
    {
        Outcome.CONNECT_ERROR,
        Outcome.TLS_ERROR,
        Outcome.TIMEOUT,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.PROTOCOL_ERROR,
        Outcome.DNS_ERROR,
    }
)


class SkipReason(Vocabulary):
    """Why a URL that was due or planned was not fetched in the round."""

    QUOTA = "quota", "Its host or registered domain had no quota left."
    CAPACITY = "capacity", "Less valuable than what filled the round."
    BLOCKED = "blocked", "Its host is blocked, by a person or until it recovers."
    EXCLUDED = "excluded", "A person excluded the URL, prefix or domain."
    ROBOTS = "robots", "The stored robots.txt already disallows it."
    DEADLINE = "deadline", "The time budget of the round ended first."
    HOST_ERRORS = "host_errors", "Its host failed five times in a row in this round."
    NETWORK_DOWN = "network_down", "Our own uplink failed; no outcome counts."
    OPERATOR = "operator", "An operator stopped or abandoned the round."
    FETCHED_AS_TARGET = "fetched_as_target", "A redirect led to it earlier in the round."


class RoundState(Vocabulary):
    """The state of a round."""

    OPEN = "open", "Its steps run; state tables are untouched."
    FOLDING = "folding", "The laws hold and the fold has begun; it is only rolled forward."
    CLOSED = "closed", "Folded; readers see its versions."
    ABANDONED = "abandoned", "Closed before its time, captures kept and folded."
    UNDOING = "undoing", "An undo has begun; it is finished before anything else."
    UNDONE = "undone", "Taken back; its rows are gone."


class RoundKind(Vocabulary):
    """What a round does."""

    CRAWL = "crawl", "Fetches from the network."
    REPARSE = "reparse", "Reads stored captures again with the rules of today."
    IMPORT = "import", "Takes captures of foreign WARC files."
    REKEY = "rekey", "Moves known URLs to the ids that the URL rules of today give them; fetches nothing."


class Scope(Vocabulary):
    """What a seed opens to the crawl."""

    PAGE = "page", "The seed's page alone."
    PREFIX = "prefix", "URLs under the seed's path, up to its last slash."
    HOST = "host", "The seed's host and port."
    DOMAIN = "domain", "The seed's registered domain with all its hosts."
    ANYWHERE = "anywhere", "Any URL reached from it."


class FrontierMode(Vocabulary):
    """The order in which due URLs are taken."""

    BEST_FIRST = "best-first", "By crawl value."
    BREADTH_FIRST = "breadth-first", "By depth, then crawl value."
    DEPTH_FIRST = "depth-first", "Within a host the deepest first."
    PATH_ASCENDING = "path-ascending", "Best first, with the ancestor paths of each link."


class FrontQueue(Vocabulary):
    """The front queues that share a round's capacity by weight."""

    MANUAL = "manual", "Asked for by a person: seeds with priority, forced URLs."
    DISCOVERY = "discovery", "Never fetched."
    REFRESH = "refresh", "Fetched before and due again."
    RETRY = "retry", "Failing; due for another try."


class LinkKind(Vocabulary):
    """Where a link stands."""

    A = "a", "An anchor."
    AREA = "area", "An area of an image map."
    LINK = "link", "A link element of the head, by its rel."
    IMG = "img", "An image, or a candidate of its srcset."
    FRAME = "frame", "A frame or iframe."
    FORM = "form", "A form sent by GET."
    META_REFRESH = "meta_refresh", "A meta refresh."
    CANONICAL = "canonical", "The canonical link."
    HREFLANG = "hreflang", "The page in another language."
    REDIRECT = "redirect", "The target of an HTTP redirect."
    SITEMAP = "sitemap", "An entry of a sitemap or a sitemap that robots.txt names."
    FEED = "feed", "An entry of a feed."
    ANCESTOR = "ancestor", "An ancestor path of a link, in path-ascending mode."
    TEXT = "text", "A URL in plain text."


class RejectFilter(Vocabulary):
    """The filter that turned a link or a seed away."""

    INVALID = "invalid", "Not a URL."
    SCHEME = "scheme", "A scheme that is not crawled."
    SCOPE = "scope", "Outside of every seed's scope."
    LENGTH = "length", "Longer than the limit."
    DEPTH = "depth", "More links away from a seed than the limit."
    HOST = "host", "Its host or domain is on a blacklist."
    PREFIX = "prefix", "It starts with a blacklisted prefix."
    REGEX = "regex", "It matches a blacklisted pattern."
    ALLOW_LIST = "allow_list", "There are allow lists, and none of them names it."
    EXTENSION = "extension", "Its path ends in an extension that is not crawled."
    SEGMENT_REPEAT = "segment_repeat", "Path segments repeat as in a loop."
    EVER_DEEPER = "ever_deeper", "More path segments than the limit, or a path that each link makes longer."
    SESSION = "session", "Its path holds a session id."
    QUERY_EXPLOSION = "query_explosion", "More query parameters than the limit, or one of them again and again."
    CALENDAR = "calendar", "A calendar page far from today, or a day of a calendar that is computed."
    TRAP = "trap", "A person accepted its prefix as a crawler trap."
    ID_COLLISION = "id_collision", "Another URL of the bucket has the same 64-bit id."
    LINK_CAP = "link_cap", "Beyond the number of links kept a page."
    DUPLICATE_SEED = "duplicate_seed", "The seed stands in the lists more than once."
    BAD_SEED = "bad_seed", "The seed line can't be understood."


#: Filters that turn away what a site can make without end; links to them count against their host.
TRAP_FILTERS = frozenset(
    {
        RejectFilter.LENGTH,
        RejectFilter.SEGMENT_REPEAT,
        RejectFilter.EVER_DEEPER,
        RejectFilter.SESSION,
        RejectFilter.QUERY_EXPLOSION,
        RejectFilter.CALENDAR,
    }
)


class ChangeVerdict(Vocabulary):
    """What a capture says against the one before it."""

    FIRST = "first", "No capture before this one."
    CHANGED = "changed", "The content differs."
    COSMETIC = "cosmetic", "The bytes differ, the normalised text does not: no change to freshness."
    UNCHANGED = "unchanged", "The content is the same, or the server said so."


class ParseOutcome(Vocabulary):
    """How parsing a capture ended."""

    OK = "ok", "Parsed."
    UNCHANGED = "unchanged", "Not parsed: the rows of content_round_id hold its content."
    PARTIAL = "partial", "Malformed; what could be had was taken."
    UNSUPPORTED = "unsupported", "No handler for its type."
    EMPTY = "empty", "No body."
    TIMEOUT = "timeout", "The handler was cut off at its time limit."
    FAILED = "failed", "The handler failed."
    UNREADABLE = "unreadable", "The WARC record can't be read back."
    REFUSED = "refused", "A page that challenges or blocks us, not content."
    SOFT_404 = "soft_404", "A page that says, with a status of success, that there is none."


class TruncatedReason(Vocabulary):
    """Why a body was cut (WARC-Truncated)."""

    LENGTH = "length", "It passed the size cap."
    TIME = "time", "It passed the time limit."
    DISCONNECT = "disconnect", "The connection broke."


class RobotsOutcome(Vocabulary):
    """How fetching robots.txt ended (RFC 9309, section 2.3.1)."""

    RULES = "rules", "Fetched; its rules apply."
    ALLOW_ALL = "allow_all", "Unavailable by 4xx: everything is allowed."
    UNREACHABLE = "unreachable", "5xx, 429 or a network failure: nothing is allowed for now."


class OverrideKind(Vocabulary):
    """A decision that a person takes about a host, domain, prefix or URL."""

    BLOCK = "block", "Never contact the host."
    QUOTA = "quota", "At most this many URLs of the host a round."
    PRIORITY = "priority", "Multiply the crawl value by this factor."
    EXCLUDE = "exclude", "Never fetch URLs with this prefix."
    TRAP = "trap", "URLs with this prefix are a crawler trap, never taken; the value is a URL to test it."
    ALIAS = "alias", "The host is another name of the host that the value names."
    IGNORE_CASE = "ignore-case", "Paths of the host that differ by case only are one."
    INDEX_PAGE = "index-page", "host/name: this file of a folder is the folder itself."
    DROP_PARAMETER = "drop-parameter", "domain?name: this query parameter names no other content."
    LIFT = "lift", "The named decision no longer holds."


class AlertKind(Vocabulary):
    """What an alert is about."""

    FAILURE_RATE = "failure_rate", "An unusual share of tries failed."
    HOST_BLOCKED = "host_blocked", "A host failed five times in a row."
    LONG_URLS = "long_urls", "A host keeps producing URLs over the length limit."
    WATCHED_PAGE = "watched_page", "A page holds what a web monitor watches for."
    SLOW_TAIL = "slow_tail", "One host's queue outlasts the rest of the round."


class Severity(Vocabulary):
    """How much an alert matters."""

    INFO = "info", "Worth knowing."
    WARNING = "warning", "Worth a look today."
    CRITICAL = "critical", "The crawl suffers now."
