"""What equal contents under several URLs say of a site: how much of it is enough, and who is the main host.

A survey compares pages in pairs or groups; a rule is worth proposing when enough of them agree, and
not all of them show one page (an error page under every name proves nothing).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

#: Groups with equal content, of as many different contents, that a rule needs.
LEAST_AGREEING = 5

#: Of hosts more is asked, because a wrong alias gives up a whole host.
LEAST_AGREEING_PAGES_OF_HOSTS = 10

#: Share of the compared that agree; of parameters all must, since one exception is a page lost.
LEAST_SHARE = 0.95

_PORT = re.compile(r":\d+$")


def enough_sql(compared: str, agreeing: str, contents: str, least: int, share: float = LEAST_SHARE) -> str:
    """SQL predicate: the evidence is enough.

    Args:
        compared, agreeing: groups compared, and those of equal content. contents: different contents among these.
        least: agreeing groups and contents needed. share: least share of the compared that agree.
    """
    return f"{agreeing} >= {least} AND {contents} >= {least} AND {agreeing} >= {share!r}D * {compared}"


def main_hosts(pairs: Iterable[tuple[str, str]], url_counts: Mapping[str, int]) -> dict[str, str]:
    """alias → main host, of hosts found equal in pairs.

    Hosts that hang together have one main host: a name rather than an address, then one with the
    scheme's own port, then the one with the most known URLs, then the shortest, then the first by name.
    """
    parents: dict[str, str] = {}

    def root(host: str) -> str:
        while (parent := parents.setdefault(host, host)) != host:
            host = parent
        return host

    def place(host: str) -> tuple[bool, bool, int, int, str]:
        return (
            _is_address(host), _PORT.search(host) is not None, -url_counts.get(host, 0), len(host), host,
        )  # fmt: skip

    for one, other in pairs:
        first, second = root(one), root(other)
        if first != second:
            better, worse = sorted((first, second), key=place)
            parents[worse] = better
    return {host: main for host in sorted(parents) if (main := root(host)) != host}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(_PORT.sub("", host).strip("[]"))
    except ValueError:
        return False
    return True
