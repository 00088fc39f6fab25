"""The table of rules and filters says all that there is."""

from __future__ import annotations

from recrawl.config.model import Urls
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.reference import url_rules_page
from recrawl.urls.rules import OPTIONAL_RULES, RULES
from recrawl.urls.site_rules import SITE_RULE_KINDS

#: What turns links and seeds away without being a filter of URLs.
_NO_URL_FILTERS = {
    RejectFilter.ID_COLLISION,
    RejectFilter.LINK_CAP,
    RejectFilter.DUPLICATE_SEED,
    RejectFilter.BAD_SEED,
}


def test_every_rule_and_filter_has_its_line() -> None:
    page = url_rules_page("Made.")
    lines = page.splitlines()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named[: len(RULES)] == [rule.name for rule in RULES]
    sites, filters = named[len(RULES) :][: len(SITE_RULE_KINDS)], named[len(RULES) + len(SITE_RULE_KINDS) :]
    assert [line.partition(" ")[0] for line in sites] == list(SITE_RULE_KINDS)
    assert set(filters) == set(RejectFilter) - _NO_URL_FILTERS
    assert all(rule.why.endswith(".") for rule in RULES)


def test_every_limit_and_list_is_named() -> None:
    page = url_rules_page("Made.")
    assert [key for key in Urls.model_fields if f"urls.{key}`" not in page and key != "drop_parameters"] == []


def test_the_optional_rules_of_the_configuration_are_those_that_exist() -> None:
    assert ("drop_userinfo", "drop_fragment", *Urls().optional_rules) == OPTIONAL_RULES
