"""Addresses: which of them a request to the outside may reach.

Decided on the numbers a name resolved to, never on how the name was spelt.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from nightporter.errors import BadInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_REFUSED_4 = tuple(
    (ipaddress.IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's inner network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's metadata service"),
        ("169.254.0.0/16", "the local link, where metadata services live"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "a special-purpose network"),
        ("192.0.2.0/24", "a network for documentation"),
        ("192.31.196.0/24", "a special-purpose network"),
        ("192.52.193.0/24", "a special-purpose network"),
        ("192.88.99.0/24", "a relay of IPv6 addresses"),
        ("192.168.0.0/16", "a private network"),
        ("192.175.48.0/24", "a special-purpose network"),
        ("198.18.0.0/15", "a network for measurements"),
        ("198.51.100.0/24", "a network for documentation"),
        ("203.0.113.0/24", "a network for documentation"),
        ("224.0.0.0/4", "a multicast group"),
        ("240.0.0.0/4", "a reserved network"),
    )
)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_6 = tuple(
    (ipaddress.IPv6Network(network), what)
    for network, what in (
        ("2001::/23", "a special-purpose network"),
        ("2001:db8::/32", "a network for documentation"),
        ("2002::/16", "a relay to an IPv4 address"),
        ("3fff::/20", "a network for documentation"),
    )
)


def objection(address: str) -> str | None:
    """What the address belongs to that nobody may reach unasked; None where it is an ordinary public one.

    `address` is the numeric text a resolver gave, perhaps with a scope (`fe80::1%eth0`).
    """
    number = ipaddress.ip_address(address)
    if isinstance(number, ipaddress.IPv4Address):
        return next((what for network, what in _REFUSED_4 if number in network), None)
    if number.scope_id is not None:
        return "the local link"
    if number not in _PUBLIC_6:
        # Loopback, link-local, unique local, multicast, and every way to wrap an IPv4 address (mapped, translated).
        return "this machine" if number.is_loopback else "no public network"
    return next((what for network, what in _REFUSED_6 if number in network), None)


@lru_cache(maxsize=1024)
def host_key(host: str) -> str:
    """One spelling per host: lower case, encoded as in DNS, without the last dot or brackets."""
    bare = host.strip().rstrip(".").lower().removeprefix("[").removesuffix("]")
    try:
        return bare if bare.isascii() else bare.encode("idna").decode()
    except UnicodeError:
        return bare


def check_hosts(hosts: list[str], what: str) -> list[str]:
    """The `allow_hosts` of a config, each one host and nothing more. Raises BadInput."""
    for host in hosts:
        if not host or any(mark in host for mark in "/*@?# ") or (":" in host and host.count(":") < 2):
            raise BadInput(
                f"`{what}.allow_hosts` cannot be {host!r}",
                why="it takes exact hosts, without scheme, port or wildcard",
                next="write the host as it stands in the address, for example localhost",
            )
    return [host_key(host) for host in hosts]
