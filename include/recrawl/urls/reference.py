"""The table of URL rules and filters for people, made from the rules themselves."""

from __future__ import annotations

from recrawl.config.model import Urls
from recrawl.tables.dictionary import markdown_table
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.rules import RULES, RULES_VERSION
from recrawl.urls.site_rules import SiteRules, parsed_line

#: Filters in the order in which they are asked, each with the keys of the section `urls` that set it.
_FILTERS: tuple[tuple[RejectFilter, str], ...] = (
    (RejectFilter.INVALID, ""),
    (RejectFilter.SCHEME, ""),
    (RejectFilter.LENGTH, "max_url_bytes"),
    (RejectFilter.DEPTH, "max_depth"),
    (RejectFilter.ALLOW_LIST, "allowed_hosts allowed_prefixes allowed_patterns"),
    (RejectFilter.HOST, "blocked_hosts"),
    (RejectFilter.PREFIX, "blocked_prefixes"),
    (RejectFilter.REGEX, "blocked_patterns"),
    (RejectFilter.TRAP, ""),
    (RejectFilter.EXTENSION, "blocked_extensions"),
    (RejectFilter.SEGMENT_REPEAT, "max_segment_repeats"),
    (RejectFilter.EVER_DEEPER, "max_path_segments"),
    (RejectFilter.SESSION, ""),
    (RejectFilter.QUERY_EXPLOSION, "max_query_parameters"),
    (RejectFilter.CALENDAR, ""),
    (RejectFilter.SCOPE, ""),
)


#: A rule of each kind, with a URL that it changes.
_EXAMPLES: tuple[tuple[str, str], ...] = (
    ("alias www.example.org example.org", "http://www.example.org/a"),
    ("ignore-case example.org", "http://example.org/News/Today"),
    ("index-page example.org/index.html", "http://example.org/news/index.html"),
    ("drop-parameter example.org?ref", "http://shop.example.org/a?id=3&ref=mail"),
)


def _site_rules() -> list[tuple[str, str, str]]:
    rows = []
    for line, url in _EXAMPLES:
        rule = parsed_line(line)
        rows.append(
            (f"`{line}`", rule.kind.sentence, f"`{url}` → `{SiteRules([rule]).applied(url, in_request=False)}`")
        )
    return rows


def url_rules_page(note: str) -> str:
    """The page of rules and filters, as Markdown.

    Args:
        note: the sentence that says that the page is generated.
    """
    rules = [
        (
            f"`{rule.name}`",
            rule.what,
            f"`{rule.before}` → `{rule.after}`",
            rule.why,
            "on, optional" if rule.name in Urls().optional_rules else "always",
            "yes" if rule.in_request else "no",
        )
        for rule in RULES
    ]
    filters = [
        (f"`{name}`", name.sentence, ", ".join(f"`urls.{key}`" for key in keys.split())) for name, keys in _FILTERS
    ]
    return (
        "\n\n".join(
            (
                "# URL rules and filters",
                f"{note} Version {RULES_VERSION} of the rules.",
                "A URL is first parsed as browsers do (WHATWG URL standard: scheme and host in lower case, IDN as "
                "punycode, default ports and dot segments gone). The rules then give its identity, in this order; "
                "`urls.optional_rules` names the optional ones that apply. What is requested of the server takes only "
                "the rules marked so: it keeps the query in the order in which it was found.",
                markdown_table(("rule", "does", "before → after", "why", "applies", "in the request"), rules),
                "Behind them come rules of single sites, from `urls.site_rules` and from what `recrawl survey` found "
                "and was accepted; each shapes the URLs of its host or registered domain alone.",
                markdown_table(("rule", "does", "example"), _site_rules()),
                "## Filters",
                "Asked in this order; the first that has something to say is the reason in `rejects`.",
                markdown_table(("filter", "turns away", "set by"), filters),
            )
        )
        + "\n"
    )
