"""Durability of a recording that differs from the archive's sync level.

Whatever starts a recording names it: a client by the parameter ``aerotape-durability=pd`` of the
channel, and a feature by an argument of `Recordings.start`. The parameter stays in the original
channel in the catalog, where an extend request finds it, also after a restart. The media driver
does not see it: the stripped channel, which the archive subscribes to, does not contain it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError

PARAMETER: Final = "aerotape-durability"
"""The parameter of a channel that names the durability of its recordings: pd, or absent."""
OnSynced = Callable[[int, "str | None"], None]
"""Called once: the durable position in bytes, and why the recording failed or None."""


@dataclass(frozen=True)
class Durability:
    """The rule by which a recording is made durable, and the key of the counter that shows it.

    The position counter of the recording is at what has been written, and a second counter, the
    confirmed position (`CounterType.CONFIRMED_POSITION`), at what is durable.

    Attributes:
        sync: "pd": all that is written, continuously; "vd": on request, and at the end.
        key: 16 bytes for the counter's key and label: the qualified id of a ledger, or the MD5 of
            the alias of the channel.
    """

    sync: Literal["pd", "vd"]
    key: bytes


def durability_of(channel: str) -> Durability | None:
    """Return the durability that a channel names, None without one.

    Raises:
        ConfigurationError: not a channel URI, or not a durability.
    """
    if PARAMETER not in channel:
        return None
    uri = ChannelUri.parse(channel)
    value = uri.get(PARAMETER)
    if value is None:
        return None
    if value != "pd":
        raise ConfigurationError(
            f"{PARAMETER}={value!r} in channel={channel} must be pd", PARAMETER
        )
    return persistent(uri.get("alias") or "")


def persistent(alias: str) -> Durability:
    """Return the durability of a recording whose channel has an alias: all that is written."""
    # Loads slowly, and most archives have no such recording.
    from hashlib import md5

    return Durability("pd", md5(alias.encode(), usedforsecurity=False).digest())
