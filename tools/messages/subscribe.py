"""Print the messages of a channel and stream.

Messages are printed as they are received, until Ctrl-C, --count messages or the end of --time.
For what is recorded see `aerotape cat`, which reads files, and `aerotape replay`.

    aerotape subscribe aeron:ipc 1001
    aerotape subscribe 'aeron:udp?endpoint=HOST:4000' 1001 --count 10 --time 30s --json

With --from-start, the recording of the stream is printed from its start, and then the live stream
as it continues, each message once and in order. The archive must have recorded the same channel
and stream, without the parameters of publishers; else name the recording with --recording.
Otherwise no archive is needed, only the media driver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from aerotape.errors import AeronTimeoutError, AerotapeError, ClosedError, ConfigurationError
from aerotape.tools._cli.arguments import add_stream, count, duration_ns, identity
from aerotape.tools._cli.connection import add_connection_options, connect, driver_directory
from aerotape.tools._cli.output import note
from aerotape.tools._cli.selecting import OF_SCHEMAS, selected
from aerotape.tools.messages._printing import Printer, ReceivedMessage, add_printing_options, flush

if TYPE_CHECKING:
    from aerotape.aeron import Subscription
    from aerotape.client.live.persistent_subscription import PersistentSubscription
    from aerotape.client.live.persistent_types import PersistentEvent
    from aerotape.clients import ArchiveClient

_FRAGMENTS: Final = 256
_SLICE_NS: Final = 100_000_000


JSON_ROWS: Final = {"": ReceivedMessage}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_stream(parser)
    add_printing_options(parser)
    parser.add_argument(
        "--count", metavar="N", type=count, help="end after this number of printed messages"
    )
    parser.add_argument(
        "--time",
        metavar="TIME",
        type=duration_ns,
        help="end after this time: 5, 5s, 500ms; a failure if there were fewer than --count "
        "messages",
    )
    parser.add_argument(
        "--from-start",
        action="store_true",
        help="print the recording of the stream first, the last one if there are several",
    )
    parser.add_argument(
        "--recording", metavar="ID", type=identity, help="for --from-start, this recording"
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print messages until interrupted."""
    if args.recording is not None and not args.from_start:
        raise ConfigurationError("--recording requires --from-start", "--recording")
    printer = Printer(args, selected(args, OF_SCHEMAS))
    with _opened(args) as subscription:
        try:
            _print(subscription, printer, args)
        finally:
            printer.report()
    return printer.exit_code


def _print(
    subscription: Subscription | PersistentSubscription, printer: Printer, args: argparse.Namespace
) -> None:
    end_ns = None if args.time is None else time.monotonic_ns() + args.time
    printed, wait_ns = 0, _SLICE_NS
    while args.count is None or printed < args.count:
        if subscription.is_closed:
            raise ClosedError(
                f"the subscription to {args.channel} stream {args.stream_id} is closed: the media "
                "driver has ended"
            )
        if end_ns is not None:
            wait_ns = min(end_ns - time.monotonic_ns(), _SLICE_NS)
            if wait_ns <= 0:
                break
        messages = subscription.poll(_FRAGMENTS, wait_ns)
        now_ms = time.time_ns() // 1_000_000
        for message in messages:
            if printed == args.count:
                break
            printed += printer.print(message, now_ms)
        flush()
    if args.count is not None and printed < args.count:
        raise AeronTimeoutError(
            f"{printed} of {args.count} messages on {args.channel} stream {args.stream_id} within "
            f"{args.time / 1e9:g} s"
        )


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[Subscription | PersistentSubscription]:
    what = f"subscribed to {args.channel} stream {args.stream_id}"
    if not args.from_start:
        from aerotape.aeron import Aeron

        directory = driver_directory(args)
        with (
            Aeron(directory, client_name="aerotape-cli", start_timeout_ns=args.wait) as aeron,
            aeron.add_subscription(args.channel, args.stream_id) as subscription,
        ):
            note(what)
            yield subscription
        return

    def show(event: PersistentEvent) -> None:
        # An error that ends it is raised, too.
        if event.kind == "error" and persistent.failure is None:
            note(f"warning: {event.error}")

    with connect(args) as client:
        recording_id = _last_recording(client, args) if args.recording is None else args.recording
        with client.persistent_subscription(
            recording_id, args.channel, args.stream_id, start="start", on_event=show
        ) as persistent:
            note(f"{what}, from the start of recording {recording_id}")
            yield persistent


def _last_recording(client: ArchiveClient, args: argparse.Namespace) -> int:
    from aerotape.channel_uri import stripped_channel

    channel = stripped_channel(args.channel)
    found = [
        each.recording_id
        for each in client.list_recordings_for_uri("", args.stream_id)
        if each.stripped_channel == channel
    ]
    if not found:
        raise AerotapeError(
            f"no recording of {channel} stream {args.stream_id}: record it with `aerotape record`, "
            "or give the id of a recording of another channel with --recording"
        )
    return max(found)
