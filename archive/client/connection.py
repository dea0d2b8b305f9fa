"""Connecting to an archive: checked options, also for later connections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.credentials import Credentials, Login, UserSecret
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.handshake import open_session
from aerotape.archive.waiting import run

# A driver updates its heartbeat about once a second.
_MIN_DRIVER_TIMEOUT_NS: Final = 3_000_000_000
DEFAULT_KEEP_ALIVE_INTERVAL_NS: Final = 1_000_000_000


class ConnectOptions(TypedDict, total=False):
    """The arguments of `connect`, which documents them."""

    aeron: Aeron | None
    aeron_dir: str | Path | None
    control_request_channel: str
    control_request_stream_id: int
    control_response_channel: str | None
    control_response_stream_id: int
    timeout_ns: int
    start_timeout_ns: int | None
    keep_alive_interval_ns: int
    credentials: bytes | Credentials | UserSecret
    on_challenge: Callable[[bytes], bytes] | None
    client_name: str


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Checked settings of a connection.

    Attributes:
        owned_aeron: the Aeron client if it was created for this connection, which then closes it.
        open: connects and returns the session; raises as `open_session`.
        replay_channel: where replays go by default.
        keep_alive_interval_ns: how often an idle session is read in a thread; 0: by no thread.
    """

    aeron: Aeron
    owned_aeron: Aeron | None
    open: Callable[[], ClientSession]
    replay_channel: str
    timeout_ns: int
    keep_alive_interval_ns: int


def prepare(options: ConnectOptions) -> ConnectionSettings:
    """Check the options of `connect`, and create an Aeron client unless one is given."""
    login = Login.of(options.get("credentials", b""), options.get("on_challenge"))
    request_channel = arguments.channel(
        "control_request_channel",
        options.get("control_request_channel", channels.DEFAULT_CONTROL_CHANNEL),
    )
    request_stream_id = arguments.any_int32(
        "control_request_stream_id",
        options.get("control_request_stream_id", channels.DEFAULT_CONTROL_STREAM_ID),
    )
    response_channel = options.get("control_response_channel")
    if response_channel is None:
        response_channel = channels.default_response_channel(request_channel)
    arguments.channel("control_response_channel", response_channel)
    response_stream_id = arguments.any_int32(
        "control_response_stream_id",
        options.get("control_response_stream_id", channels.DEFAULT_RESPONSE_STREAM_ID),
    )
    timeout_ns = arguments.natural("timeout_ns", options.get("timeout_ns", DEFAULT_TIMEOUT_NS))
    given_ns = options.get("start_timeout_ns")
    start_timeout_ns = arguments.natural(
        "start_timeout_ns", timeout_ns if given_ns is None else given_ns
    )
    keep_alive_interval_ns = arguments.natural(
        "keep_alive_interval_ns",
        options.get("keep_alive_interval_ns", DEFAULT_KEEP_ALIVE_INTERVAL_NS),
    )
    client_name = arguments.text("client_name", options.get("client_name", "aerotape"))
    owned = None
    aeron = options.get("aeron")
    if aeron is None:
        driver_timeout_ns = max(_MIN_DRIVER_TIMEOUT_NS, min(timeout_ns, DEFAULT_TIMEOUT_NS))
        aeron = owned = Aeron(
            options.get("aeron_dir"),
            client_name=client_name,
            driver_timeout_ns=driver_timeout_ns,
            start_timeout_ns=start_timeout_ns,
        )
    opening = partial(
        open_session,
        aeron.native,
        request_channel=request_channel,
        request_stream_id=request_stream_id,
        response_channel=response_channel,
        response_stream_id=response_stream_id,
        timeout_ns=timeout_ns,
        login=login,
        client_name=client_name,
    )
    replay_channel = channels.default_replay_channel(response_channel)
    return ConnectionSettings(
        aeron,
        owned,
        lambda: run(opening()),
        replay_channel,
        timeout_ns,
        keep_alive_interval_ns,
    )
