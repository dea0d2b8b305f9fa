"""Parsers of the arguments of commands: numbers, channels, durations.

An invalid value is an `argparse.ArgumentTypeError`; argparse shows it with the argument's name.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final, TypeVar

from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import MAX_UNSIGNED
from aerotape.units import parse_duration_ns

_T = TypeVar("_T")
FRAGMENT_HELP: Final = "channels that contain this text, for example endpoint=HOST:PORT"
_ANY_BASE: Final = 0
_LONGEST_S: Final = 1_000_000_000
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def add_recording_id(parser: argparse.ArgumentParser) -> None:
    """Add the id of the recording that a request is for."""
    parser.add_argument(
        "recording_id",
        metavar="RECORDING_ID",
        type=identity,
        help="the recording id, as shown by `aerotape list`",
    )


def add_scope_id(parser: argparse.ArgumentParser) -> None:
    """Add --ledger-scope-id, of a request for recordings that the archive has imported."""
    parser.add_argument(
        "--ledger-scope-id",
        metavar="N",
        type=uint64,
        help="recordings of this scope (default: the archive's own)",
    )


def add_stream(parser: argparse.ArgumentParser) -> None:
    """Add channel and stream id."""
    parser.add_argument("channel", metavar="CHANNEL", type=channel, help="an Aeron channel URI")
    parser.add_argument("stream_id", metavar="STREAM_ID", type=int32, help="the stream id")


def add_stream_filter(parser: argparse.ArgumentParser) -> None:
    """Add the filters --channel and --stream-id."""
    parser.add_argument("--channel", metavar="FRAGMENT", type=ascii_text, help=FRAGMENT_HELP)
    parser.add_argument("--stream-id", metavar="ID", type=int32, help="only this stream")


def int32(text: str) -> int:
    """Parse a stream id: 32 bits, decimal, or hexadecimal with 0x."""
    return integer(text, -(1 << 31), (1 << 31) - 1)


def int64(text: str) -> int:
    """Parse an id or a position: 64 bits, decimal, or hexadecimal with 0x."""
    return integer(text, -(1 << 63), (1 << 63) - 1)


def identity(text: str) -> int:
    """Parse a recording id or a position: 64 bits, not negative."""
    return integer(text, 0, (1 << 63) - 1)


def uint64(text: str) -> int:
    """Parse a half of a qualified id: 64 bits, not negative."""
    return integer(text, 0, MAX_UNSIGNED)


def byte_length(text: str) -> int:
    """Parse a length, bytes: 32 bits, positive."""
    return integer(text, 1, (1 << 31) - 1)


def count(text: str) -> int:
    """Parse a number of items, 0 or more."""
    return integer(text, 0, (1 << 31) - 1)


def ascii_text(text: str) -> str:
    """Check the text of an ASCII field of the control protocol."""
    if not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} contains characters that are not ASCII")
    return text


def channel(text: str) -> str:
    """Check a channel URI before it is sent."""
    try:
        ChannelUri.parse(ascii_text(text)).check_addresses()
    except ConfigurationError as error:
        example = "aeron:udp?endpoint=localhost:4000" if "udp" in text else "aeron:ipc"
        raise argparse.ArgumentTypeError(f"{error}; for example {example}") from None
    return text


def integer(text: str, least: int, most: int) -> int:
    """Parse an argument that is a number in a range."""
    try:
        value = int(text, _ANY_BASE)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
    return value


def duration_ns(text: str) -> int:
    """Parse a duration: ``500ms``, ``5s``, or a bare number of seconds, as ``5`` or ``0.5``."""
    # Aeron's properties count bare numbers in nanoseconds; on a command line `5` means seconds.
    if _SECONDS.fullmatch(text):
        value_ns = round(min(float(text), 2 * _LONGEST_S) * 1e9)
    else:
        value_ns = property_duration_ns(text)
    if value_ns <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be positive")
    if value_ns > _LONGEST_S * 1_000_000_000:  # beyond what clocks and waits accept
        raise argparse.ArgumentTypeError(f"{text!r} is longer than {_LONGEST_S} s")
    return value_ns


def duration_s(text: str) -> float:
    """Parse a duration as `duration_ns` does, into seconds."""
    return duration_ns(text) / 1e9


def property_duration_ns(text: str) -> int:
    """Parse a duration as Aeron's properties have it."""
    try:
        value_ns = parse_duration_ns("duration", text)
    except ConfigurationError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration like 5s or 500ms (units: ns, us, ms, s)"
        ) from None
    if value_ns <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be positive")
    return value_ns


def option(convert: Callable[[str, str], _T], name: str) -> Callable[[str], _T]:
    """Return a parser of an option, from a function of its text and its name."""

    def parse(text: str) -> _T:
        try:
            return convert(text, name)
        except ConfigurationError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name}: ")) from None

    return parse
