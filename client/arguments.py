"""Checks of arguments that no archive could accept, before a request is sent."""

from __future__ import annotations

from typing import Literal

from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ConfigurationError
from aerotape.units import MAX_INT, MAX_LONG

SourceLocationName = Literal["local", "remote"]


def integer(name: str, value: int, least: int, most: int) -> int:
    """Return `value`, an integer from `least` to `most` (ConfigurationError)."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigurationError(f"{name} must be an integer, not {value!r}", name)
    if not least <= value <= most:
        raise ConfigurationError(f"{name} must be from {least} to {most}, not {value}", name)
    return value


def natural(name: str, value: int) -> int:
    """Check an id, a position in bytes, or a duration in nanoseconds: 63 bits, not negative."""
    return integer(name, value, 0, MAX_LONG)


def optional_natural(name: str, value: int | None) -> int:
    """As `natural`; -1 for None."""
    return -1 if value is None else natural(name, value)


def any_int64(name: str, value: int) -> int:
    """Check an id of any sign, 64 bits."""
    return integer(name, value, -MAX_LONG - 1, MAX_LONG)


def any_int32(name: str, value: int) -> int:
    """Check a stream or session id: 32 bits."""
    return integer(name, value, -MAX_INT - 1, MAX_INT)


def count(name: str, value: int) -> int:
    """Check a number of things: 32 bits, not negative."""
    return integer(name, value, 0, MAX_INT)


def optional_length(name: str, value: int | None) -> int:
    """Return a positive length of 32 bits; -1 for None."""
    return -1 if value is None else integer(name, value, 1, MAX_INT)


def text(name: str, value: str) -> str:
    """Check the text of an ASCII field."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be text, not {value!r}", name)
    if not value.isascii():
        raise ConfigurationError(f"{name} must be ASCII, not {value!r}", name)
    return value


def channel(name: str, value: str) -> str:
    """Check a channel URI."""
    try:
        ChannelUri.parse(text(name, value))
    except ConfigurationError as error:
        if error.name == name:
            raise
        raise ConfigurationError(f"{name}: {error}; for example aeron:ipc", name) from None
    return value


def optional_channel(name: str, value: str | None) -> str:
    """Check a channel URI; None becomes the empty text, the archive's default."""
    return "" if value is None else channel(name, value)


def source_location(value: codecs.SourceLocation | SourceLocationName) -> codecs.SourceLocation:
    """Return the enum's member for a source location or its name."""
    if isinstance(value, codecs.SourceLocation):
        return value
    member = codecs.SourceLocation.__members__.get(str(value).upper())
    if member is None:
        raise ConfigurationError(
            f'source location must be "local" or "remote", not {value!r}', "source_location"
        )
    return member
