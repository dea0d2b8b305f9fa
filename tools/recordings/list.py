"""List the recordings of a running archive.

A live recording's row shows its current position. The table is fitted to the width of a terminal:
long channels are shortened, and columns omitted. Into a pipe, and with --json, everything is shown.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.channel_uri import alias_of
from aerotape.errors import ConfigurationError, UnknownRecordingError
from aerotape.formatting import bytes_text
from aerotape.tools._cli.arguments import add_scope_id, add_stream_filter, count, identity
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit
from aerotape.tools._cli.times import time_text

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient

_OMITTED: Final = ("source", "start", "session", "position")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRecording(RecordingDescriptor):
    """A recording of a running archive.

    Attributes:
        is_active: whether it is being recorded.
        recorded_position: its stop position, or the recorded position of a live recording, bytes.
        recorded_bytes: bytes recorded.
    """

    is_active: bool = field()  # else the descriptor's property would be its default
    recorded_position: int
    recorded_bytes: int


JSON_ROWS: Final = {"": ListedRecording}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--id", metavar="ID", type=identity, help="only this recording")
    parser.add_argument(
        "--from",
        dest="from_id",
        metavar="ID",
        type=identity,
        help="the first recording id (default: 0)",
    )
    parser.add_argument(
        "--to", dest="to_id", metavar="ID", type=identity, help="the last recording id"
    )
    parser.add_argument("--count", metavar="N", type=count, help="the maximum number of recordings")
    add_stream_filter(parser)
    parser.add_argument(
        "--alias", metavar="NAME", help="only recordings whose channel has this alias"
    )
    parser.add_argument("--live", action="store_true", help="only recordings that have not stopped")
    add_scope_id(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Request the descriptors and print a row per recording."""
    filters = (
        args.from_id, args.to_id, args.count, args.channel, args.stream_id, args.alias,
        args.live or None,
    )  # fmt: skip
    if args.id is not None and any(given is not None for given in filters):
        raise ConfigurationError("--id selects one recording and excludes the other filters")
    with connect(args) as client:
        rows = (_row(client, found, args.json) for found in _select(client, args))
        some = any(given is not None for given in filters)
        none = "no recordings match" if some else "no recordings"
        emit(rows, args, none, shortened="channel", omitted=_OMITTED)


def _select(client: ArchiveClient, args: argparse.Namespace) -> Iterable[RecordingDescriptor]:
    if args.id is not None:
        found = client.list_recording(args.id, scope_id=args.ledger_scope_id)
        if found is None:
            raise UnknownRecordingError(f"there is no recording {args.id}", args.id)
        return [found]
    return islice(_in_range(client, args), args.count)


def _in_range(client: ArchiveClient, args: argparse.Namespace) -> Iterator[RecordingDescriptor]:
    first = 0 if args.from_id is None else args.from_id
    if args.ledger_scope_id:
        listed = client.list_recordings(first, scope_id=args.ledger_scope_id)
    elif args.stream_id is not None:
        # An empty fragment matches any channel.
        listed = client.list_recordings_for_uri(args.channel or "", args.stream_id, first)
    else:
        listed = client.list_recordings(first)
    for descriptor in listed:
        if args.to_id is not None and descriptor.recording_id > args.to_id:
            return
        if args.stream_id not in (None, descriptor.stream_id):
            continue
        if args.live and not descriptor.is_active:
            continue
        if args.alias is not None and args.alias != alias_of(descriptor.original_channel):
            continue
        if args.channel is None or args.channel in descriptor.stripped_channel:
            yield descriptor


def _row(
    client: ArchiveClient, found: RecordingDescriptor, for_machine: bool
) -> ListedRecording | dict[str, Any]:
    position = found.stop_position
    if found.is_active:
        position = client.max_recorded_position(found.recording_id)
    if for_machine:
        return ListedRecording(
            **dataclasses.asdict(found),
            is_active=found.is_active,
            recorded_position=position,
            recorded_bytes=position - found.start_position,
        )
    return {
        "id": found.recording_id,
        "started": time_text(found.start_timestamp_ms),
        "stopped": _stop_text(found),
        "start": found.start_position,
        "position": position,
        "bytes": bytes_text(position - found.start_position),
        "stream": found.stream_id,
        "session": found.session_id,
        "channel": found.stripped_channel,
        "source": found.source_identity,
    }


def _stop_text(found: RecordingDescriptor) -> str | None:
    """Return the stop time, without its date if that is the date of the start."""
    if found.is_active:
        return "live"
    if found.stop_timestamp_ms < 0:
        return None
    text = time_text(found.stop_timestamp_ms)
    date, _, time = text.partition(" ")
    return time if time_text(found.start_timestamp_ms).startswith(date) else text
