"""What an episode may contact: applications of this process, and sites of the network.

What always holds: a site is a host and a port, so a host that is named without a port does not open its other ports; an
address of a private network, of this machine or of any other special range is contacted only where it is named itself.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from longstride.core.errors import TaskError
from longstride.envs.sites.browser import Application

PORTS = {"http": 80, "https": 443}
_TRANSLATED = [ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")]
"""Ranges of IPv6 whose addresses stand for one of IPv4, which may be a private one."""


@dataclass(frozen=True)
class Reach:
    """What an episode may contact."""

    apps: Mapping[str, Application] = field(default_factory=dict)
    """Application by host name; they answer at port 80 and are called in process."""
    network: frozenset[str] = frozenset()
    """Sites: `name:port`."""
    login: str = ""
    """File of cookies and storage (Playwright's storage state) that an episode begins with."""

    @property
    def sites(self) -> list[str]:
        """All of them, as `name:port`."""
        return sorted({*(f"{name}:80" for name in self.apps), *self.network})

    def allows(self, url: str) -> bool:
        """Whether a page may be opened at an address."""
        return site_of(url) in self.sites

    def allows_address(self, name: str, port: int, ip: str) -> bool:
        """Whether a site of the network may be contacted at an address that its name stands for."""
        address = ipaddress.ip_address(ip)
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        if address.is_global and not address.is_multicast and not any(address in net for net in _TRANSLATED):
            return True
        named = f"[{address}]" if address.version == 6 else str(address)
        if address.is_loopback and (name == "localhost" or name.endswith(".localhost")):
            named = name
        return f"{named}:{port}" in self.network


def site_of(url: str) -> str:
    """The site of an `http` or `https` address: its host, as browsers write it, and its port; empty if it has none."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        if not name.isascii():
            name = name.encode("idna").decode()
        if ":" in name:
            name = f"[{ipaddress.ip_address(name)}]"
    except (ValueError, KeyError):
        return ""
    return f"{name}:{port}" if name else ""


def sites_of(names: Iterable[str]) -> set[str]:
    """The sites that a person names: `name:port`, or `name` for its ports 80 and 443.

    Raises:
        TaskError: a name is no site.
    """
    sites = set()
    for name in names:
        found = site_of(f"http://{name}")
        if not found or "/" in name:
            raise TaskError(
                f"{name!r} is no site; expected a host, with or without its port, such as shop.example:7770"
            )
        sites |= {found, site_of(f"https://{name}")}
    return sites
