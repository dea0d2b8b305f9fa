"""Addresses of control channels: of a request channel, and those that an archive accepts."""

from __future__ import annotations

import socket

import pytest

from aerotape import control_address
from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.control_address import OwnAddresses, with_signed_address
from aerotape.errors import AerotapeError, ConfigurationError

REMOTE, LOCAL = "10.9.9.9:4000", "127.0.0.1:4000"


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("aeron:ipc?term-length=64k", ("aeron:ipc?term-length=64k", "ipc")),
        (
            "aeron:udp?mtu=1408|endpoint=10.0.0.1:8010",
            ("aeron:udp?mtu=1408|endpoint=10.0.0.1:8010", "10.0.0.1:8010"),
        ),
        ("aeron:udp?endpoint=localhost:1", ("aeron:udp?endpoint=127.0.0.1:1", "127.0.0.1:1")),
        ("aeron:udp?endpoint=[0::1]:8010", ("aeron:udp?endpoint=[::1]:8010", "[::1]:8010")),
        ("aeron:udp?endpoint=127.1:8010", ("aeron:udp?endpoint=127.0.0.1:8010", "127.0.0.1:8010")),
    ],
)
def test_what_is_signed_is_what_is_sent_to(channel: str, expected: tuple[str, str]) -> None:
    """The channel has the numeric endpoint that is signed."""
    assert with_signed_address(channel) == expected


def test_an_unknown_host_is_an_error() -> None:
    """The text has the host and the channel."""
    with pytest.raises(AerotapeError, match=r"cannot resolve host 'no\.such\.invalid'"):
        with_signed_address("aeron:udp?endpoint=no.such.invalid:8010")


@pytest.mark.parametrize("channel", ["aeron:udp?control=h:1", "aeron:udp?tags=1", "aeron:udp"])
def test_a_channel_without_endpoint_is_refused(channel: str) -> None:
    """It does not say which archive receives the proof."""
    with pytest.raises(ConfigurationError, match="does not say which archive receives"):
        with_signed_address(channel)


@pytest.mark.parametrize(
    ("own", "address", "source", "is_own"),
    [
        ("10.0.0.1:8010", "10.0.0.1:8010", REMOTE, True),
        ("10.0.0.1:8010", "10.0.0.1:8011", REMOTE, False),
        ("10.0.0.1:8010", "10.0.0.2:8010", REMOTE, False),
        ("10.0.0.1:8010", "127.0.0.1:8010", LOCAL, False),
        ("10.0.0.1:8010", "nonsense", REMOTE, False),
        ("10.0.0.1:8010", "ipc", REMOTE, False),
        ("10.0.0.1:8010", "ipc", "aeron:ipc", True),
        ("10.0.0.1:8010", "10.0.0.1:8010", "aeron:ipc", False),
        ("10.0.0.1:8010", "ipc", "", False),
        ("0.0.0.0:8010", "127.0.0.1:8010", LOCAL, True),
        ("0.0.0.0:8010", "127.0.0.1:8010", REMOTE, False),
        ("0.0.0.0:8010", "198.51.100.7:8010", REMOTE, False),
        ("localhost:8010", "127.0.0.1:8010", LOCAL, True),
        ("localhost:8010", "127.0.0.1:8010", REMOTE, False),
        ("224.0.1.1:8010", "224.0.1.1:8010", REMOTE, True),
        ("no.such.invalid:8010", "10.0.0.1:8010", REMOTE, False),
        ("no.such.invalid:8010", "203.0.113.5:18010", REMOTE, True),
    ],
)
def test_own_addresses(own: str, address: str, source: str, is_own: bool) -> None:
    """Port and address have to be those of the control channel, or configured; an address of
    loopback counts for programs of this machine."""
    addresses = OwnAddresses(f"aeron:udp?endpoint={own}", ["203.0.113.5:18010"])
    assert addresses.include(address, source) is is_own


def test_an_address_of_this_machine_counts_with_a_wildcard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless a program may bind to addresses of other machines, where that cannot be known."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("no network")
        own = f"{probe.getsockname()[0]}:8010"
    addresses = OwnAddresses("aeron:udp?endpoint=0.0.0.0:8010")
    assert addresses.include(own, REMOTE)
    monkeypatch.setattr(control_address, "_can_bind", lambda *_: True)
    assert not addresses.include(own, REMOTE)


@pytest.mark.parametrize("value", ["host:8010", "10.0.0.1", "10.0.0.1:8010 [::1]"])
def test_configured_addresses_are_numeric(value: str) -> None:
    """The text names the property; spellings of one address are the same."""
    name = "aerotape.control.addresses"
    with pytest.raises(
        ConfigurationError, match=r"aerotape\.control\.addresses=.* is not a numeric"
    ):
        ArchiveConfig.from_properties({name: value})
    config = ArchiveConfig.from_properties({name: "10.0.0.1:1 [2001:DB8:0::1]:2"})
    assert config.control_addresses == ("10.0.0.1:1", "[2001:db8::1]:2")
