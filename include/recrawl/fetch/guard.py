"""Which addresses may be contacted: decided on the resolved address, at connect time.

A name can resolve to anything, also to something else than a moment ago (DNS rebinding), so
names prove nothing; the engines ask here with the very address that they are about to connect
to, for every hop, robots.txt and FTP data connections too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from recrawl.config.model import Configuration

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Where clouds serve credentials to whoever asks from the machine: refused whatever is allowed.
METADATA_NETWORKS: tuple[IPNetwork, ...] = (
    ipaddress.ip_network("169.254.169.254/32"),  # AWS, Azure, Google, DigitalOcean, OpenStack
    ipaddress.ip_network("169.254.170.2/32"),  # AWS, task credentials
    ipaddress.ip_network("169.254.170.23/32"),  # AWS, pod identity
    ipaddress.ip_network("100.100.100.200/32"),  # Alibaba
    ipaddress.ip_network("192.0.0.192/32"),  # Oracle
    ipaddress.ip_network("168.63.129.16/32"),  # Azure, host agent
    ipaddress.ip_network("fd00:ec2::/32"),  # AWS over IPv6
    ipaddress.ip_network("fd20:ce::254/128"),  # Google over IPv6
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")
#: Answers kept, so that a crawl of millions of addresses stays bounded.
_MAX_REMEMBERED = 65_536

CONTACT_HINT = 'Set agent.contact = "you@example.org" (a mail address or page of the operator) to crawl public hosts.'


class AddressPolicy:
    """The address guard.

    Args:
        allowed_ranges: CIDR ranges of private or loopback addresses that may be contacted.
        has_contact: whether the user agent names a contact; without one only allowed ranges are.
        proxied: whether a proxy makes all connections; then the addresses seen are the proxy's
            and exempt, and only hosts that are literal addresses can be judged.
    """

    def __init__(self, allowed_ranges: Sequence[str], has_contact: bool, proxied: bool = False) -> None:
        self._allowed = tuple(ipaddress.ip_network(text) for text in allowed_ranges)
        self._has_contact = has_contact
        self.is_proxied = proxied
        self._remembered: dict[str, str | None] = {}
        self._remembered_private: dict[str, bool] = {}

    @classmethod
    def of(cls, configuration: Configuration) -> AddressPolicy:
        """The policy that a configuration asks for."""
        fetch = configuration.fetch
        return cls(fetch.allowed_private_ranges, bool(configuration.agent.contact), bool(fetch.proxy))

    def connect_refusal(self, address: str) -> str | None:
        """Why a connection to `address` must not be opened; None when it may be."""
        return None if self.is_proxied else self.refusal(address)

    def host_refusal(self, host: str) -> str | None:
        """Why `host` (an authority) must not be asked for by name; only literal addresses are judged."""
        if host.startswith("["):
            return self.refusal(host[1 : host.index("]")])
        name = host.partition(":")[0]
        return self.refusal(name) if name.rpartition(".")[2].isdigit() else None

    def refusal(self, address: str) -> str | None:
        """Why `address`, a literal, is refused; None when it is accepted."""
        try:
            return self._remembered[address]
        except KeyError:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            answer = self._remembered[address] = self._judge(address)
            return answer

    def is_allowed_private(self, address: str | None) -> bool:
        """Whether `address` lies in a range that configuration allows by name."""
        if not address:
            return False
        try:
            return self._remembered_private[address]
        except KeyError:
            if len(self._remembered_private) >= _MAX_REMEMBERED:
                self._remembered_private.clear()
            parsed = _parsed(address)
            answer = self._remembered_private[address] = parsed is not None and self._is_allowed(parsed)
            return answer

    def _is_allowed(self, address: IPAddress) -> bool:
        return any(address.version == network.version and address in network for network in self._allowed)

    def _judge(self, text: str) -> str | None:
        address = _parsed(text)
        if address is None:
            return f"{text!r} is no IP address."
        if any(address.version == network.version and address in network for network in METADATA_NETWORKS):
            return f"{text} is a metadata address of cloud machines; it is never contacted."
        if self._is_allowed(address):
            return None
        if kind := _special_kind(address):
            return f"{text} is {kind}; fetch.allowed_private_ranges does not name it."
        if not self._has_contact:
            return f"{text} is public and agent.contact is empty. {CONTACT_HINT}"
        return None


def _parsed(text: str) -> IPAddress | None:
    """The address; what an IPv6 address embeds (mapped, NAT64, 6to4) is judged in its place."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and (address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 0xFFFF)):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return embedded or address
    return address


def _special_kind(address: IPAddress) -> str:
    """What a non-public address is, in words; empty for a public one."""
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_private or not address.is_global:
        return "a private or shared address"
    return "a reserved address" if address.is_reserved else ""
