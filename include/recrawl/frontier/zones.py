"""Network zones: which hosts are fetched from the same place. One by default; partitions never mix them.

A zone belongs to a registered domain, because hosts of one domain never meet two tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

#: The zone of what no ending names.
DEFAULT_ZONE = "default"


def zone_of(registered_domain: str, zones: Mapping[str, str]) -> str:
    """The zone of a registered domain: that of the longest ending (a TLD or domain) that names it."""
    named = [ending for ending in zones if registered_domain == ending or registered_domain.endswith(f".{ending}")]
    return zones[max(named, key=len)] if named else DEFAULT_ZONE


def zone_sql(registered_domain: str, zones: Mapping[str, str]) -> str:
    """SQL of `zone_of`; the configuration lets neither endings nor zones hold quotes."""
    if not zones:
        return f"'{DEFAULT_ZONE}'"
    cases = " ".join(
        f"WHEN {registered_domain} = '{ending}' OR endswith({registered_domain}, '.{ending}') THEN '{zone}'"
        for ending, zone in sorted(zones.items(), key=lambda item: (-len(item[0]), item[0]))
    )
    return f"CASE {cases} ELSE '{DEFAULT_ZONE}' END"


def share_partitions(work_micros: Mapping[str, int], partitions: int) -> dict[str, range]:
    """The partitions of each zone: one at least, the others by work (highest averages, D'Hondt).

    More than `partitions` where there are more zones.
    """
    shares = dict.fromkeys(sorted(work_micros), 1)
    for _ in range(partitions - len(shares)):
        neediest = max(shares, key=lambda zone: (work_micros[zone] / (shares[zone] + 1), zone))
        shares[neediest] += 1
    found, first = {}, 0
    for zone, share in shares.items():
        found[zone] = range(first, first + share)
        first += share
    return found
