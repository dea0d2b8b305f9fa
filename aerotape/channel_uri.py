"""Aeron channel URIs: parsing, printing, and the stripped form that the catalog stores.

    [aeron-spy:]aeron:(udp|ipc)[?key=value|key=value...]

A recording's *stripped channel* has the parameters that identify the source of a stream, without
those of a publisher's configuration (term length, MTU, linger ...). The catalog stores its text, by
which channels are compared, so parameters, order and spelling follow Aeron's
ChannelUriStringBuilder exactly: booleans as true/false, sizes in their shortest form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from aerotape.errors import ConfigurationError
from aerotape.frame_header import FRAME_ALIGNMENT, to_int32
from aerotape.units import MAX_INT, MAX_LONG, format_duration, format_size, parse_size

SPY_PREFIX = "aeron-spy:"
MAX_URI_LENGTH = 4095

_SCHEME = "aeron:"
_ADDRESSES = ("endpoint", "control", "response-endpoint")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\[\]:\s]+):(?P<port>[0-9]{1,5})", re.ASCII)
_MAX_PORT = 65_535
_TAG_PREFIX = "tag:"

_Normalise = Callable[[str, str], str]
"""Returns the text of a parameter from its name and value."""


class ChannelUriError(ConfigurationError):
    """A channel URI, or a value in it, cannot be used."""


@dataclass(slots=True)
class ChannelUri:
    """A parsed channel URI.

    Attributes:
        media: ``udp`` or ``ipc``.
        parameters: in their order in the URI.
        is_spy: whether it has the prefix ``aeron-spy:``.
    """

    media: str
    parameters: dict[str, str] = field(default_factory=dict)
    is_spy: bool = False

    @classmethod
    def parse(cls, uri: str) -> ChannelUri:
        """Parse a URI.

        Raises:
            ChannelUriError: too long, not an Aeron URI, or malformed parameters.
        """
        if len(uri) > MAX_URI_LENGTH:
            raise ChannelUriError(
                f"URI length ({len(uri)}) exceeds max supported length ({MAX_URI_LENGTH}):"
                f" {uri[:64]}..."
            )
        is_spy = uri.startswith(SPY_PREFIX)
        rest = uri[len(SPY_PREFIX) :] if is_spy else uri
        if not rest.startswith(_SCHEME):
            raise ChannelUriError(f"Aeron URIs must start with 'aeron:', found: {uri}")
        media, question_mark, text = rest[len(_SCHEME) :].partition("?")
        if media not in ("udp", "ipc"):
            raise ChannelUriError(f"unknown media: {media} in {uri!r}; expected udp or ipc")
        parameters: dict[str, str] = {}
        if question_mark:
            for parameter in text.split("|"):
                key, equals, value = parameter.partition("=")
                if not equals or not key:
                    raise ChannelUriError(f"{parameter!r} is not a key=value parameter in {uri!r}")
                parameters[key] = value
        return cls(media, parameters, is_spy)

    @property
    def is_udp(self) -> bool:
        return self.media == "udp"

    @property
    def is_ipc(self) -> bool:
        return self.media == "ipc"

    @property
    def has_control_mode_response(self) -> bool:
        return self.parameters.get("control-mode") == "response"

    def get(self, key: str) -> str | None:
        """Return the value of a parameter, or None."""
        return self.parameters.get(key)

    def check_addresses(self) -> None:
        """Check that a UDP channel has an address, and that its addresses have a host and a port.

        A driver with a resolver of its own may accept other names.

        Raises:
            ChannelUriError: it has none, or one is not ``HOST:PORT``.
        """
        if not self.is_udp:
            return
        given = {name: self.parameters.get(name) for name in _ADDRESSES}
        if not any(given.values()) and not {"control-mode", "tags"} & self.parameters.keys():
            raise ChannelUriError(
                f"{str(self)!r} has no address: expected endpoint=HOST:PORT or control=HOST:PORT",
                "endpoint",
            )
        for name, address in given.items():
            if address is None:
                continue
            found = _ADDRESS.fullmatch(address)
            if found is None or int(found["port"]) > _MAX_PORT:
                raise ChannelUriError(
                    f"{name}={address!r} is not HOST:PORT with a port up to {_MAX_PORT}", name
                )

    def put(self, key: str, value: str) -> None:
        """Set a parameter; a new one goes to the end."""
        self.parameters[key] = value

    def resolve_wildcard_port(self, endpoint: str) -> None:
        """Replace port 0 of the endpoint by the port that the driver has bound.

        Args:
            endpoint: the bound host and port; only the port is used.
        """
        host, separator, port = self.parameters.get("endpoint", "").rpartition(":")
        if separator and port == "0":
            self.parameters["endpoint"] = f"{host}:{endpoint.rpartition(':')[2]}"

    def __str__(self) -> str:
        text = (SPY_PREFIX if self.is_spy else "") + _SCHEME + self.media
        if self.parameters:
            text += "?" + "|".join(f"{key}={value}" for key, value in self.parameters.items())
        return text


def _boolean(_name: str, value: str) -> str:
    # As Java's Boolean.valueOf: anything but "true" is false.
    return "true" if value.lower() == "true" else "false"


def _integer(low: int, high: int) -> _Normalise:
    """Return a function that checks an integer and returns its canonical decimal form."""

    def normalise(name: str, value: str) -> str:
        digits = value[1:] if value[:1] in ("+", "-") else value
        if not (digits.isascii() and digits.isdigit()) or not low <= int(value) <= high:
            raise ChannelUriError(f"{name}={value!r} is not an integer from {low} to {high}", name)
        return str(int(value))

    return normalise


_int32 = _integer(-MAX_INT - 1, MAX_INT)
_int64 = _integer(-MAX_LONG - 1, MAX_LONG)


def _session_id(name: str, value: str) -> str:
    if value.startswith(_TAG_PREFIX):
        return _TAG_PREFIX + _int64(name, value[len(_TAG_PREFIX) :])
    return _int32(name, value)


def _size(name: str, value: str) -> str:
    size = parse_size(name, value)
    if size > MAX_INT:
        raise ChannelUriError(f"{name}={value!r} is larger than {MAX_INT} bytes", name)
    return format_size(size)


def _mtu(name: str, value: str) -> str:
    size = parse_size(name, value)
    if not 32 <= size <= 65504 or size % FRAME_ALIGNMENT:
        raise ChannelUriError(
            f"{name}={value!r} is not a multiple of {FRAME_ALIGNMENT} from 32 to 65504", name
        )
    return format_size(size)


def _control_mode(name: str, value: str) -> str:
    if value not in ("manual", "dynamic", "response"):
        raise ChannelUriError(f"{name}={value!r} is not manual, dynamic or response", name)
    return value


def _timestamp_offset(name: str, value: str) -> str:
    if value != "reserved":
        _int32(name, value)
    return value


def _response_correlation_id(name: str, value: str) -> str:
    if value != "prototype":
        _integer(-1, MAX_LONG)(name, value)
    return value


def _text(_name: str, value: str) -> str:
    return value


# In the order of ChannelUriStringBuilder. True: part of a stripped channel.
_PARAMETERS: Mapping[str, tuple[_Normalise, bool]] = {
    "tags": (_text, True),
    "endpoint": (_text, True),
    "interface": (_text, True),
    "control": (_text, True),
    "control-mode": (_control_mode, True),
    "mtu": (_mtu, False),
    "term-length": (_size, False),
    "init-term-id": (_int32, False),
    "term-id": (_int32, False),
    "term-offset": (_int32, False),
    "session-id": (_session_id, True),
    "ttl": (_integer(0, 255), True),
    "linger": (_text, False),
    "alias": (_text, True),
    "cc": (_text, True),
    "fc": (_text, True),
    "gtag": (_int64, True),
    "sparse": (_boolean, False),
    "eos": (_boolean, False),
    "tether": (_boolean, True),
    "group": (_boolean, True),
    "rejoin": (_boolean, True),
    "so-sndbuf": (_size, True),
    "so-rcvbuf": (_size, True),
    "rcv-wnd": (_size, True),
    "media-rcv-ts-offset": (_timestamp_offset, True),
    "channel-rcv-ts-offset": (_timestamp_offset, True),
    "channel-snd-ts-offset": (_timestamp_offset, True),
    "response-endpoint": (_text, True),
    "response-correlation-id": (_response_correlation_id, True),
    "stream-id": (_int32, True),
}
_RETAINED = frozenset(name for name, (_, is_retained) in _PARAMETERS.items() if is_retained)
_POSITIONS = {name: position for position, name in enumerate(_PARAMETERS)}


@lru_cache(maxsize=1024)
def _parameter(name: str, text: str) -> str:
    """Return the text of a parameter. Cached, as most recordings and replays share a few."""
    return f"{name}={_PARAMETERS[name][0](name, text)}"


def stripped_channel(channel: ChannelUri | str, **additions: str | int | bool) -> str:
    """Return the channel without the parameters of a publisher's configuration.

    Args:
        channel: the client's channel; a spy prefix is dropped.
        additions: parameters to set, with ``_`` for ``-`` in their names
            (``term_length=65536``); sizes and booleans as numbers and bools, linger in ns.

    Raises:
        ChannelUriError: a retained parameter has a value that Aeron would refuse.
    """
    uri = ChannelUri.parse(channel) if isinstance(channel, str) else channel
    added = {name.replace("_", "-"): value for name, value in additions.items()}
    parts: list[str] = []
    retained = (name for name in uri.parameters if name in _RETAINED and name not in added)
    for name in sorted([*retained, *added], key=_POSITIONS.__getitem__):
        if name not in added:
            parts.append(_parameter(name, uri.parameters[name]))
        elif name == "linger":
            parts.append(f"{name}={format_duration(int(added[name]))}")
        else:
            value = added[name]
            text = str(value).lower() if isinstance(value, bool) else str(value)
            parts.append(_parameter(name, text))
    prefix = f"{_SCHEME}{uri.media}"
    return f"{prefix}?{'|'.join(parts)}" if parts else prefix


def with_session_id(channel: str, session_id: int) -> str:
    """Return `channel` restricted to one session."""
    uri = ChannelUri.parse(channel)
    uri.put("session-id", str(session_id))
    return str(uri)


def initial_position(position: int, initial_term_id: int, term_length: int) -> dict[str, int]:
    """Return the additions for `stripped_channel` that start a publication at `position`.

    Args:
        position: a multiple of the frame alignment (32).
        initial_term_id: signed 32-bit; term ids wrap around as Aeron's do.
    """
    if position < 0 or position % FRAME_ALIGNMENT:
        raise ChannelUriError(f"position={position} is not a non-negative multiple of 32")
    return {
        "init_term_id": initial_term_id,
        "term_id": to_int32(initial_term_id + position // term_length),
        "term_offset": position & (term_length - 1),
        "term_length": term_length,
    }


def recording_key(stream_id: int, uri: ChannelUri) -> str:
    """Return the identity of a stream: an archive has one recording subscription for each.

    As in the reference, it consists of stream id, media, endpoint, interface, control address,
    session id and tags.
    """
    names = ("endpoint", "interface", "control", "session-id", "tags")
    given = "|".join(f"{name}={uri.parameters[name]}" for name in names if name in uri.parameters)
    return f"{stream_id}:{uri.media}?{given}"


def alias_of(channel: str) -> str | None:
    """Return the name that a channel has by its parameter `alias`; None without one."""
    with suppress(ChannelUriError):  # a catalog may have anything
        return ChannelUri.parse(channel).get("alias") or None
    return None
