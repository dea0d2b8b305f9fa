"""Connecting to an archive: checked options, also for later connections."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from typing import Final, ParamSpec, TypedDict, TypeVar

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron
from aerotape.client import arguments, channels
from aerotape.client.credentials import Credentials, Login, UserSecret
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.handshake import open_session
from aerotape.waiting import run

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


_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_connect_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Show the parameters of a function that takes `ConnectOptions` as its last ones.

    Its signature has each of them with its default, and the TypeError for an unknown one names the
    function and the most similar parameter.
    """
    *own, _ = inspect.signature(function).parameters.values()
    signature = inspect.signature(prepare)
    parameters = {each.name: each for each in (*own, *signature.parameters.values())}

    @wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        for name in options:
            if name not in parameters:
                similar = get_close_matches(name, parameters, n=1)
                hint = f": did you mean {similar[0]}?" if similar else ""
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
                )
        return function(*args, **options)

    returned = inspect.signature(function).return_annotation
    checked.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(parameters.values()), return_annotation=returned
    )
    return checked


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


def prepare(
    *,
    aeron: Aeron | None = None,
    aeron_dir: str | Path | None = None,
    control_request_channel: str = channels.DEFAULT_CONTROL_CHANNEL,
    control_request_stream_id: int = channels.DEFAULT_CONTROL_STREAM_ID,
    control_response_channel: str | None = None,
    control_response_stream_id: int = channels.DEFAULT_RESPONSE_STREAM_ID,
    timeout_ns: int = DEFAULT_TIMEOUT_NS,
    start_timeout_ns: int | None = None,
    keep_alive_interval_ns: int = DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    credentials: bytes | Credentials | UserSecret = b"",
    on_challenge: Callable[[bytes], bytes] | None = None,
    client_name: str = "aerotape",
) -> ConnectionSettings:
    """Check the options of `connect`, and create an Aeron client unless one is given."""
    login = Login.of(credentials, on_challenge)
    arguments.channel("control_request_channel", control_request_channel)
    arguments.any_int32("control_request_stream_id", control_request_stream_id)
    if control_response_channel is None:
        control_response_channel = channels.default_response_channel(control_request_channel)
    arguments.channel("control_response_channel", control_response_channel)
    arguments.any_int32("control_response_stream_id", control_response_stream_id)
    arguments.natural("timeout_ns", timeout_ns)
    if start_timeout_ns is None:
        start_timeout_ns = timeout_ns
    arguments.natural("start_timeout_ns", start_timeout_ns)
    arguments.natural("keep_alive_interval_ns", keep_alive_interval_ns)
    arguments.text("client_name", client_name)
    owned = None
    if aeron is None:
        driver_timeout_ns = max(_MIN_DRIVER_TIMEOUT_NS, min(timeout_ns, DEFAULT_TIMEOUT_NS))
        aeron = owned = Aeron(
            aeron_dir,
            client_name=client_name,
            driver_timeout_ns=driver_timeout_ns,
            start_timeout_ns=start_timeout_ns,
        )
    opening = partial(
        open_session,
        aeron.native,
        request_channel=control_request_channel,
        request_stream_id=control_request_stream_id,
        response_channel=control_response_channel,
        response_stream_id=control_response_stream_id,
        timeout_ns=timeout_ns,
        login=login,
        client_name=client_name,
    )
    return ConnectionSettings(
        aeron,
        owned,
        lambda: run(opening()),
        channels.default_replay_channel(control_response_channel),
        timeout_ns,
        keep_alive_interval_ns,
    )
