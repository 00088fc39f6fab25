"""The address guard: what is contacted, and what never is."""

from __future__ import annotations

import pytest

from recrawl.fetch.guard import AddressPolicy

PUBLIC = AddressPolicy([], has_contact=True)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.10", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.1.1", "fe80::1",
        "fe80::1%eth0", "100.64.0.1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255",
        "fc00::1", "192.0.2.1", "198.18.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::1", "::127.0.0.1", "169.254.169.254", "nonsense",
    ],
)  # fmt: skip
def test_special_addresses_are_refused(address: str) -> None:
    assert PUBLIC.refusal(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "64:ff9b::808:808"])
def test_public_addresses_need_a_contact(address: str) -> None:
    assert PUBLIC.refusal(address) is None
    assert 'agent.contact = "' in (AddressPolicy(["127.0.0.0/8"], has_contact=False).refusal(address) or "")


def test_allowed_ranges_need_no_contact() -> None:
    policy = AddressPolicy(["127.0.0.0/8", "fd12::/16"], has_contact=False)
    assert policy.refusal("127.0.0.1") is None
    assert policy.refusal("::ffff:127.0.0.1") is None
    assert policy.refusal("fd12::5") is None
    assert policy.refusal("10.0.0.1")
    assert policy.is_allowed_private("127.0.0.2")
    assert not policy.is_allowed_private("8.8.8.8")
    assert not policy.is_allowed_private(None)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254", "169.254.170.2"]
)
def test_metadata_addresses_are_refused_even_where_allowed(address: str) -> None:
    policy = AddressPolicy(["0.0.0.0/0", "::/0"], has_contact=True, proxied=True)
    assert "metadata" in (policy.refusal(address) or "")


def test_behind_a_proxy_only_literal_hosts_are_judged() -> None:
    policy = AddressPolicy([], has_contact=True, proxied=True)
    assert policy.connect_refusal("127.0.0.1") is None
    assert policy.host_refusal("127.0.0.1:8080")
    assert policy.host_refusal("[::1]:8080")
    assert policy.host_refusal("example.org:8080") is None
