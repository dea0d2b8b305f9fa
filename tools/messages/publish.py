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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

from aerotape.errors import AerotapeError, CodecError, ConfigurationError
from aerotape.replay.offline import option_text
from aerotape.tools._cli.arguments import add_stream, count, duration_ns, option
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import emit
from aerotape.tools._cli.selecting import add_selection_options, flag

if TYPE_CHECKING:
    from aerotape.aeron import ExclusivePublication, Publication

INTERMIXED: Final = True

Parse: TypeAlias = Callable[[bytes], bytes]
_SHOWN: Final = 100
_LENGTH_BYTES: Final = 4
_LEAST_RATE: Final = 1e-6
_OF_ENCODING: Final = ("timestamps", "text_encoding")
# Delays up to this are made up for, because short waits take longer than they should.
_CATCH_UP_NS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class PublishedMessages:
    """The messages that were published.

    Attributes:
        channel: channel.
        stream_id: stream id.
        session_id: session id of the stream.
        messages: number of messages.
        bytes: bytes of payloads.
        dropped: messages dropped because no subscriber was connected.
        position: position after the last message, bytes.
    """

    channel: str
    stream_id: int
    session_id: int
    messages: int
    bytes: int
    dropped: int
    position: int


JSON_ROWS: Final = {"": PublishedMessages}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_stream(parser)
    parser.add_argument("messages", metavar="MESSAGE", nargs="*", help="a message to send")
    parser.add_argument(
        "--format",
        choices=("text", "json", "hex", "length"),
        help="text (the default): lines as they are; json: lines that are checked to be JSON and "
        "sent as they are, without empty ones; hex: lines in hexadecimal; length: each message "
        "after its length, 4 bytes little-endian",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        help="an SBE schema, XML or .sbeir: encode JSON as `aerotape cat --schema` prints it",
    )
    parser.add_argument(
        "--template",
        metavar="TEMPLATE",
        type=option(option_text.template, "--template"),
        help="for --schema: name or id of the message to encode",
    )
    add_selection_options(parser, _OF_ENCODING)
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
        "--exclusive",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="use a publication with a dedicated session, and so a recording (the default), or "
        "share that of other clients",
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
    if not _LEAST_RATE <= value < math.inf:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a rate like 100/s or 0.5, at least {_LEAST_RATE:f}"
        )
    return value


def run(args: argparse.Namespace) -> int:
    """Send the messages and print their number."""
    parse = _parser(args)
    given = _given(args, parse)
    from aerotape.aeron import Aeron

    with Aeron(driver_directory(args), client_name="aerotape-cli", start_timeout_ns=0) as aeron:
        add = aeron.add_exclusive_publication if args.exclusive else aeron.add_publication
        with add(args.channel, args.stream_id) as publication:
            if args.wait:
                publication.wait_connected(args.timeout)
            if given is None:
                if args.format == "length":
                    given = _framed(sys.stdin.buffer, publication.max_message_length)
                else:
                    is_json = args.format == "json" or args.schema is not None
                    given = _lines(sys.stdin.buffer, parse, skip_empty=is_json)
            return _publish(publication, given, args)


def _publish(
    publication: Publication | ExclusivePublication,
    given: Iterator[bytes],
    args: argparse.Namespace,
) -> int:
    sent, sent_bytes, dropped = 0, 0, 0
    for payload in given if args.rate is None else paced(given, args.rate):
        if _send(publication, payload, args):
            sent += 1
            sent_bytes += len(payload)
        else:
            dropped += 1
    row = PublishedMessages(
        channel=args.channel,
        stream_id=args.stream_id,
        session_id=publication.session_id,
        messages=sent,
        bytes=sent_bytes,
        dropped=dropped,
        position=publication.position,
    )
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


def _given(args: argparse.Namespace, parse: Parse) -> Iterator[bytes] | None:
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
        messages = [parse(text.encode(errors="surrogateescape")) for text in args.messages]
    except (ValueError, CodecError) as error:
        raise ConfigurationError(f"MESSAGE {error}", "MESSAGE") from None
    return chain.from_iterable(repeat(messages, args.count))


def _lines(stream: BinaryIO, parse: Parse, *, skip_empty: bool) -> Iterator[bytes]:
    for number, line in enumerate(stream, 1):
        if skip_empty and not line.strip():
            continue
        try:
            message = parse(line.removesuffix(b"\n"))
        except (ValueError, CodecError) as error:
            raise AerotapeError(
                f"line {number}: {error}; only the preceding lines were sent"
            ) from None
        yield message


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


def _parser(args: argparse.Namespace) -> Parse:
    """Return the function that converts a text into a message (ValueError, CodecError)."""
    if (args.schema is None) != (args.template is None):
        raise ConfigurationError("--schema and --template are used together: give both", "--schema")
    if args.schema is None:
        for name in _OF_ENCODING:
            if getattr(args, name) is not None:
                raise ConfigurationError(f"{flag(name)} requires --schema", flag(name))
        return {"json": _json, "hex": _hexadecimal}.get(args.format, lambda text: text)
    if args.format not in (None, "json"):
        raise ConfigurationError(
            f"--schema reads JSON: leave out --format {args.format}", "--format"
        )
    from aerotape.codecs.payload_encoder import PayloadEncoder
    from aerotape.codecs.schema_files import load_schema
    from aerotape.codecs.schema_options import with_options

    schema = with_options(load_schema(args.schema), args.timestamps, args.text_encoding)
    encoder = PayloadEncoder(schema, args.template)

    def encode(text: bytes) -> bytes:
        import json

        return encoder.encode(json.loads(_json(text)))

    return encode


def _json(text: bytes) -> bytes:
    """Return a text that is JSON as it is (ValueError)."""
    from aerotape import _native

    try:
        _native.check_json(text)
    except ValueError as error:
        raise ValueError(f"{_shown(text)} is not JSON: {error}") from None
    return text


def _hexadecimal(text: bytes) -> bytes:
    """Return the bytes of a text in hexadecimal (ValueError)."""
    try:
        return bytes.fromhex(text.decode())
    except ValueError:
        raise ValueError(f"{_shown(text)} is not hexadecimal") from None


def _shown(text: bytes) -> str:
    shown = text[:_SHOWN].decode(errors="replace")
    return repr(shown if len(text) <= _SHOWN else f"{shown}…")
