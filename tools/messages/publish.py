"""Send messages to a channel and stream.

The messages are the arguments, or without any are read from standard input: a line is a message,
sent as soon as it is read. The command waits for a subscriber, and fails after --timeout without
one.

    aerotape publish aeron:ipc 1001 'one message' 'another message'
    tail -f app.log | aerotape publish 'aeron:udp?endpoint=HOST:4000' 1001
    aerotape publish aeron:ipc 1001 tick --count 600 --rate 10/s

With --no-wait, messages are dropped while no subscriber is connected, and the exit code is 3.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, BinaryIO, Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli.arguments import add_stream, count, duration_ns
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import emit

if TYPE_CHECKING:
    from aerotape.aeron import ExclusivePublication, Publication

_SHOWN: Final = 100
_LENGTH_BYTES: Final = 4
# Delays up to this are made up for, because short waits take longer than they should.
_CATCH_UP_NS: Final = 10_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_stream(parser)
    parser.add_argument("messages", metavar="MESSAGE", nargs="*", help="a message to send")
    parser.add_argument(
        "--format",
        choices=("text", "json", "hex", "length"),
        default="text",
        help="text (the default): lines as they are; json: lines that are checked to be JSON and "
        "sent as they are, without empty ones; hex: lines in hexadecimal; length: each message "
        "after its length, 4 bytes little-endian",
    )
    parser.add_argument(
        "--count", metavar="N", type=count, default=1, help="send the arguments N times"
    )
    parser.add_argument(
        "--rate",
        metavar="N/s",
        type=rate,
        help="send N messages per second, without making up for pauses",
    )
    parser.add_argument(
        "--exclusive", action="store_true", help="use a publication with a dedicated session"
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration_ns,
        default=10_000_000_000,
        help="limit for the wait for a subscriber, and of a message for room: 5, 5s, 500ms "
        "(default: 10s)",
    )
    parser.add_argument(
        "--no-wait",
        dest="wait",
        action="store_false",
        help="do not wait for a subscriber: drop messages while no subscriber is connected",
    )
    add_driver_option(parser)


def rate(text: str) -> float:
    """Parse messages per second: ``100``, ``100/s``, ``0.5``."""
    try:
        value = float(text.removesuffix("/s"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive rate like 100/s or 0.5")
    return value


def run(args: argparse.Namespace) -> int:
    """Send the messages and print their number."""
    given = _given(args)
    from aerotape.aeron import Aeron

    with Aeron(driver_directory(args), client_name="aerotape-cli", start_timeout_ns=0) as aeron:
        add = aeron.add_exclusive_publication if args.exclusive else aeron.add_publication
        with add(args.channel, args.stream_id) as publication:
            return _publish(publication, given, args)


def _publish(
    publication: Publication | ExclusivePublication,
    given: Iterator[bytes] | None,
    args: argparse.Namespace,
) -> int:
    if args.wait:
        publication.wait_connected(args.timeout)
    if given is None:
        given = _read(sys.stdin.buffer, args.format, publication.max_message_length)
    sent, sent_bytes, dropped = 0, 0, 0
    for payload in given if args.rate is None else paced(given, args.rate):
        if _send(publication, payload, args):
            sent += 1
            sent_bytes += len(payload)
        else:
            dropped += 1
    row = {
        "channel": args.channel,
        "stream_id": args.stream_id,
        "session_id": publication.session_id,
        "messages": sent,
        "bytes": sent_bytes,
        "dropped": dropped,
        "position": publication.position,
    }
    emit(row, args)
    return EXIT_DATA_SUSPECT if dropped else EXIT_OK


def _send(
    publication: Publication | ExclusivePublication, payload: bytes, args: argparse.Namespace
) -> bool:
    """Send a message; return whether it was, which it always is unless with --no-wait."""
    from aerotape.aeron import NOT_CONNECTED

    if not args.wait:
        result = publication.offer(payload)
        if result > 0 or result == NOT_CONNECTED:
            return result > 0
    publication.send(payload, args.timeout)
    return True


def paced(messages: Iterator[bytes], per_s: float) -> Iterator[bytes]:
    """Iterate messages at a rate, which pauses do not raise afterwards."""
    interval_ns = 1e9 / per_s
    next_ns = float(time.monotonic_ns())
    for message in messages:
        if (wait_ns := next_ns - time.monotonic_ns()) > 0:
            time.sleep(wait_ns / 1e9)
        next_ns = max(next_ns, time.monotonic_ns() - _CATCH_UP_NS) + interval_ns
        yield message


def _given(args: argparse.Namespace) -> Iterator[bytes] | None:
    """Return the messages that are arguments, None if they come from standard input."""
    if not args.messages:
        if args.count != 1:
            raise ConfigurationError("--count repeats arguments: give MESSAGE", "--count")
        return None
    if args.format == "length":
        raise ConfigurationError(
            "--format length is of standard input: leave out MESSAGE", "--format"
        )
    try:
        messages = [
            _parsed(text.encode(errors="surrogateescape"), args.format) for text in args.messages
        ]
    except ValueError as error:
        raise ConfigurationError(f"MESSAGE {error}", "MESSAGE") from None
    return chain.from_iterable(repeat(messages, args.count))


def _read(stream: BinaryIO, format: str, longest: int) -> Iterator[bytes]:
    """Read messages of at most `longest` bytes from standard input."""
    if format == "length":
        yield from _framed(stream, longest)
        return
    for number, line in enumerate(stream, 1):
        line = line.removesuffix(b"\n")
        if format == "json" and not line.strip():
            continue
        try:
            yield _parsed(line, format)
        except ValueError as error:
            raise AerotapeError(
                f"line {number}: {error}; only the preceding lines were sent"
            ) from None


def _framed(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    number = 0
    while head := stream.read(_LENGTH_BYTES):
        number += 1
        length = int.from_bytes(head, "little")
        if len(head) == _LENGTH_BYTES and length > longest:
            raise AerotapeError(
                f"message {number}: its length is {length}, but a message of this publication has "
                f"at most {longest} bytes; only the preceding ones were sent"
            )
        payload = stream.read(length) if len(head) == _LENGTH_BYTES else b""
        if len(head) < _LENGTH_BYTES or len(payload) < length:
            raise AerotapeError(
                f"message {number}: standard input ends within it; only the preceding ones were "
                "sent"
            )
        yield payload


def _parsed(text: bytes, format: str) -> bytes:
    """Return the message that a text stands for (ValueError)."""
    if format == "json":
        from aerotape import _native

        try:
            _native.check_json(text)
        except ValueError as error:
            raise ValueError(f"{_shown(text)} is not JSON: {error}") from None
    elif format == "hex":
        try:
            return bytes.fromhex(text.decode())
        except ValueError:
            raise ValueError(f"{_shown(text)} is not hexadecimal") from None
    return text


def _shown(text: bytes) -> str:
    shown = text[:_SHOWN].decode(errors="replace")
    return repr(shown if len(text) <= _SHOWN else f"{shown}…")
