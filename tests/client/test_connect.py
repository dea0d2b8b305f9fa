"""Connecting to an archive, staying connected, and losing the connection."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS, Kind, ServedArchive, serve
from support.daemon.recording import start_recording, wait_until

import aerotape
from aerotape.errors import AeronTimeoutError, ClosedError, ConfigurationError


def test_connects_over_udp_and_ipc(archive: ServedArchive) -> None:
    """The UDP and the IPC control channel reach the same archive, in different sessions."""
    with (
        archive.connect() as over_udp,
        archive.connect(control_request_channel="aeron:ipc") as over_ipc,
    ):
        assert over_udp.archive_id == over_ipc.archive_id == over_udp.get_archive_id()
        assert over_udp.control_session_id != over_ipc.control_session_id
        over_ipc.keep_alive()
        assert over_ipc.poll_for_errors() == []


def test_shares_an_aeron_client(archive: ServedArchive) -> None:
    """An Aeron client passed by the caller stays open."""
    with aerotape.Aeron(archive.aeron_dir) as aeron:
        with archive.connect(aeron=aeron) as client:
            assert client.aeron is aeron
        assert not aeron.is_closed


def test_no_archive(archive: ServedArchive) -> None:
    """Without an archive, the error names the channel, the stream and the time waited."""
    with pytest.raises(AeronTimeoutError, match=r"no archive listens on aeron:ipc.* stream 4711 "):
        archive.connect(
            control_request_channel="aeron:ipc",
            control_request_stream_id=4711,
            timeout_ns=200_000_000,
        )


@pytest.mark.parametrize(
    "endpoint", ["", "?endpoint=localhost", "?endpoint=192.0.2.1", "?mtu=1408"]
)
def test_a_control_channel_needs_host_and_port(endpoint: str) -> None:
    """The error names the missing host and port, not a missing response channel."""
    with pytest.raises(ConfigurationError, match="an endpoint with host and port, like"):
        aerotape.connect(control_request_channel=f"aeron:udp{endpoint}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("control_request_channel", 5),
        ("control_request_channel", "udp"),
        ("control_request_stream_id", "10"),
        ("control_request_stream_id", 1 << 31),
        ("control_response_channel", b"aeron:ipc"),
        ("control_response_stream_id", 2.0),
        ("timeout_ns", -1),
        ("timeout_ns", 1e9),
        ("timeout_ns", "5s"),
        ("start_timeout_ns", 0.5),
        ("client_name", "\u00f6"),
        ("credentials", "alice:secret"),
    ],
)
def test_invalid_options(tmp_path: Path, name: str, value: Any) -> None:
    """Invalid options are refused by name before a media driver is used."""
    with pytest.raises(ConfigurationError, match=name):
        aerotape.connect(aeron_dir=tmp_path / "none", **{name: value})


@pytest.mark.parametrize(
    ("user", "secret"), [("", "x"), ("a:b", "x"), (b"alice", "x"), ("alice", 5), ("alice", None)]
)
def test_invalid_users(user: Any, secret: Any) -> None:
    """The errors do not show secrets."""
    with pytest.raises(ConfigurationError):
        aerotape.UserSecret(user, secret)


def test_an_archive_on_another_host_needs_a_response_channel() -> None:
    """It is refused before anything is opened: only the caller knows an address that the archive
    can reach."""
    with pytest.raises(ConfigurationError, match="control response channel"):
        aerotape.connect(control_request_channel="aeron:udp?endpoint=192.0.2.1:8010")


@pytest.mark.jvm
def test_an_idle_client_stays_connected() -> None:
    """An idle client reads the archive's pings; otherwise the archive would drop it.

    Only the Java archive can ping often enough to show this within seconds.
    """
    impatient = {
        "aeron.archive.session.liveness.check.interval": "1ms",
        "aeron.archive.connect.timeout": "2s",
    }
    with (
        serve("java", impatient) as archive,
        archive.connect(keep_alive_interval_ns=50_000_000) as idle,
        archive.connect(keep_alive_interval_ns=0) as dropped,
    ):
        wait_until(
            lambda: not dropped._session.subscription.is_connected,
            "the archive dropping the client that does not read",
            30.0,
        )
        assert idle.get_archive_id() == idle.archive_id
        with pytest.raises(ClosedError, match="went away"):
            dropped.get_archive_id()
            dropped.get_archive_id()


@pytest.mark.parametrize("kind", KINDS)
def test_the_archive_stops(kind: Kind) -> None:
    """When the archive stops, requests and replays end with ClosedError, and close still works."""
    with serve(kind) as archive:
        client = archive.connect(timeout_ns=3_000_000_000)
        made = start_recording(client, count=3)
        replay = client.replay(made.recording_id)
        assert [next(replay).payload for _ in range(3)] == [sent[0] for sent in made.sent]
    started = time.monotonic()
    with pytest.raises((ClosedError, aerotape.errors.ReplayError)):
        next(replay)
    with pytest.raises((ClosedError, AeronTimeoutError)):
        client.get_archive_id()
    assert time.monotonic() - started < 30.0
    replay.close()
    client.close()


def test_credentials_are_sent(archive: ServedArchive) -> None:
    """An archive without an authenticator accepts a client with credentials."""
    with archive.connect(credentials=b"user:secret") as client:
        assert client.get_archive_id() == client.archive_id


@pytest.mark.parametrize(
    "connect", [aerotape.connect, partial(aerotape.persistent_subscription, 0, "aeron:ipc")]
)
def test_an_unknown_option_is_refused(connect: Any) -> None:
    """A misspelt option is an error, not the default."""
    with pytest.raises(TypeError, match="timeout_s"):
        connect(timeout_s=1)
