"""Addresses of control channels, to which proofs of a secret are bound.

    ipc               any request channel over IPC
    10.0.0.1:8010     the endpoint of one over UDP, numeric
    [2001:db8::1]:8010

A client signs the address that it sends its requests to, and an archive accepts the addresses that
are its own. So a proof is of no use to another archive, or to a program between the two.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Collection

from aerotape.channel_uri import ChannelUri
from aerotape.errors import AerotapeError, ConfigurationError

CONTROL_ADDRESSES = "aerotape.control.addresses"
"""The property with addresses of an archive besides that of its control channel."""

IPC = "ipc"
IPC_SOURCE = "aeron:ipc"
"""The source identity of a client over IPC."""

_ENDPOINT = re.compile(r"\[(?P<literal>[^]]+)]:(?P<port>[0-9]+)|(?P<host>[^:]+):(?P<number>[0-9]+)")
# Reserved for documentation: no machine has them.
_NO_MACHINE = {4: "192.0.2.1", 6: "2001:db8::1"}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def with_signed_address(channel: str) -> tuple[str, str]:
    """Return a request channel with a numeric endpoint, and its address; may wait for DNS.

    Raises:
        ConfigurationError: the channel does not say which archive receives the requests.
        AerotapeError: its host name cannot be resolved.
    """
    uri = ChannelUri.parse(channel)
    if uri.is_ipc:
        return channel, IPC
    endpoint = _split(uri.get("endpoint") or "")
    if endpoint is None or "control" in uri.parameters or "control-mode" in uri.parameters:
        raise ConfigurationError(
            f"cannot prove a secret over request channel {channel}: it does not say which archive"
            " receives the requests; give a channel with an endpoint, and without control and"
            " control-mode",
            "control_request_channel",
        )
    host, port = endpoint
    try:
        found = _resolved(host)
    except OSError as error:
        raise AerotapeError(
            f"cannot resolve host {host!r} of request channel {channel}: {error}"
        ) from error
    numeric = _joined(found[0], port)
    uri.put("endpoint", numeric)
    return str(uri), numeric


class OwnAddresses:
    """The addresses at which an archive is reached."""

    def __init__(self, control_channel: str, others: Collection[str] = ()) -> None:
        """Resolve the address of the control channel.

        Args:
            control_channel: over UDP; empty if the archive has none.
            others: further addresses, of which this machine knows nothing; see `numeric_address`.
        """
        self._others = frozenset(others)
        self._hosts: frozenset[_Address] = frozenset()
        self._port = ""
        if control_channel:
            endpoint = _split(ChannelUri.parse(control_channel).get("endpoint") or "")
            if endpoint is not None:
                host, self._port = endpoint
                # A name that only the media driver can resolve needs `others`.
                with contextlib.suppress(OSError):
                    self._hosts = frozenset(_resolved(host))

    def include(self, address: str, source_identity: str) -> bool:
        """Return whether a client that signed `address` has sent it here.

        Args:
            source_identity: the source of the client's requests.
        """
        if address == IPC or source_identity == IPC_SOURCE:
            return address == IPC and source_identity == IPC_SOURCE
        if address in self._others:
            return True
        endpoint = _split(address)
        if endpoint is None or endpoint[1] != self._port:
            return False
        try:
            host = ipaddress.ip_address(endpoint[0])
        except ValueError:
            return False
        # Each machine has the loopback addresses: they mean this one only to its own programs.
        if host.is_loopback and not _is_loopback(source_identity):
            return False
        return host in self._hosts or (
            any(each.is_unspecified for each in self._hosts) and _is_of_this_machine(host)
        )


def numeric_address(address: str) -> str:
    """Return an address in its one spelling.

    Raises:
        ValueError: it is not a numeric address with a port.
    """
    endpoint = _split(address)
    if endpoint is not None:
        with contextlib.suppress(ValueError):
            return _joined(ipaddress.ip_address(endpoint[0]), endpoint[1])
    raise ValueError(f"{address!r} is not a numeric address with a port, like 10.0.0.1:8010")


def _split(endpoint: str) -> tuple[str, str] | None:
    """Return host and port of an endpoint; None if it has not both."""
    found = _ENDPOINT.fullmatch(endpoint)
    if found is None:
        return None
    return found["literal"] or found["host"], found["port"] or found["number"]


def _joined(host: _Address, port: str) -> str:
    return f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}"


def _resolved(host: str) -> list[_Address]:
    """Return the addresses of a host, IPv4 first as the media driver prefers it (OSError)."""
    import socket

    found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    addresses = dict.fromkeys(ipaddress.ip_address(str(each[4][0])) for each in found)
    return sorted(addresses, key=lambda each: each.version)


def _is_loopback(source_identity: str) -> bool:
    endpoint = _split(source_identity)
    try:
        return endpoint is not None and ipaddress.ip_address(endpoint[0]).is_loopback
    except ValueError:
        return False


def _is_of_this_machine(host: _Address) -> bool:
    # Where a program may bind to any address (ip_nonlocal_bind), that shows nothing.
    return _can_bind(str(host), host.version) and not _can_bind(
        _NO_MACHINE[host.version], host.version
    )


def _can_bind(host: str, version: int) -> bool:
    import socket

    family = socket.AF_INET if version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True
