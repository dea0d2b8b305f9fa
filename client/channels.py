"""Default channels of a client, and the parameters that it adds to channels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aerotape.channel_uri import ChannelUri, stripped_channel
from aerotape.errors import ConfigurationError

DEFAULT_CONTROL_CHANNEL: Final = "aeron:ipc"
DEFAULT_CONTROL_STREAM_ID: Final = 10
DEFAULT_RESPONSE_STREAM_ID: Final = 20
DEFAULT_REPLAY_STREAM_ID: Final = 40

# Of AeronArchive.Context: short terms and the driver's default MTU suffice for control streams.
_CONTROL_DEFAULTS: Final = {"term-length": "65536", "mtu": "1408", "sparse": "true"}
_HOST_AND_PORT: Final = re.compile(r".+:[0-9]+")
_LOOPBACK_PREFIXES: Final = ("localhost:", "127.", "[::1]:")


def default_response_channel(request_channel: str) -> str:
    """Return the default channel for responses of the archive at `request_channel`.

    The caller must choose one for an archive on another host (ConfigurationError).
    """
    uri = ChannelUri.parse(request_channel)
    if uri.is_ipc:
        return "aeron:ipc"
    endpoint = uri.get("endpoint") or ""
    if not _HOST_AND_PORT.fullmatch(endpoint):
        raise ConfigurationError(
            f"control channel {request_channel} does not say where the archive listens: give it "
            "an endpoint with host and port, like aeron:udp?endpoint=HOST:8010",
            "aeron.archive.control.channel",
        )
    if endpoint.startswith(_LOOPBACK_PREFIXES):
        return f"aeron:udp?endpoint={_host(endpoint)}:0"
    raise ConfigurationError(
        f"the archive at {request_channel} is on another host: give a control response channel "
        "(control_response_channel) with an address of this host that it can reach, like "
        "aeron:udp?endpoint=HOST:0",
        "aeron.archive.control.response.channel",
    ).naming("control_response_channel")


def default_replay_channel(response_channel: str) -> str:
    """Return a channel for replays that reach the client as the control responses do."""
    uri = ChannelUri.parse(response_channel)
    if uri.has_control_mode_response:
        return stripped_channel(uri)
    endpoint = uri.get("endpoint")
    if uri.is_ipc or endpoint is None:
        return "aeron:ipc"
    return f"aeron:udp?endpoint={_host(endpoint)}:0"


def control_channel(channel: str, session_id: int | None = None) -> str:
    """Return `channel` with the control defaults for missing parameters, and a session id.

    On a response channel (control-mode=response) the driver chooses it.
    """
    uri = _with_defaults(channel, _CONTROL_DEFAULTS)
    if session_id is not None:
        uri.put("session-id", str(session_id))
    return str(uri)


def request_channel_for(channel: str, subscription_id: int) -> str:
    """Return a request channel whose responses are sent to the subscription with this id."""
    uri = _with_defaults(channel, _CONTROL_DEFAULTS)
    # These parameters belong to the stream of the session's own request channel.
    for name in ("session-id", "init-term-id", "term-id", "term-offset"):
        uri.parameters.pop(name, None)
    uri.put("response-correlation-id", str(subscription_id))
    return str(uri)


def is_response_channel(channel: str) -> bool:
    """Return whether messages on it are sent back to the source of a request stream."""
    return ChannelUri.parse(channel).has_control_mode_response


def with_parameters(channel: str, parameters: Mapping[str, str]) -> str:
    """Return `channel` with these parameters, except those that it has (ChannelUriError)."""
    return str(_with_defaults(channel, parameters))


def _with_defaults(channel: str, parameters: Mapping[str, str]) -> ChannelUri:
    uri = ChannelUri.parse(channel)
    for name, value in parameters.items():
        uri.parameters.setdefault(name, value)
    return uri


def has_wildcard_port(channel: str) -> bool:
    """Return whether the driver chooses the port of the endpoint (port 0)."""
    return (ChannelUri.parse(channel).get("endpoint") or "").endswith(":0")


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0]
