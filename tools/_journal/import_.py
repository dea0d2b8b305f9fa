"""`import`: import a journal as a recording with one message for each record."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.channel_uri import ChannelUri
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    JournalError,
    StorageErrors,
)
from aerotape.tools._cli.arguments import channel, int32, option
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.tools._journal.arguments import add_journal, one_journal
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.maintenance.recording_writer import NewStream, RecordingWriter
    from aerotape.clients import ArchiveClient
    from aerotape.tools._journal.source import Copied, JournalSource

DEFAULT_STREAM_ID: Final = 1
_INCOMPLETE: Final = "-incomplete"
# Printable ASCII without separators of channel URIs.
_ALIAS: Final = re.compile(r"[^|=?\x00-\x1f\x7f-\U0010ffff]+")
_WAIT_S: Final = 60.0
_POLL_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class ImportedJournal:
    """A recording of a journal.

    Attributes:
        recording_id: recording id.
        records: number of records.
        first_index: index of the first record.
        last_index: index of the last record.
        start_position: start position, bytes.
        stop_position: stop position, bytes.
        damage: why the import ended before the end, null if it did not.
    """

    recording_id: int
    records: int
    first_index: int | None
    last_index: int | None
    start_position: int
    stop_position: int
    damage: str | None


JSON_ROWS: Final = {"import": ImportedJournal}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "import", _import_)
    add_journal(parser)
    parser.add_argument(
        "--to",
        metavar="ARCHIVE_DIR",
        type=Path,
        help="write the recording into this directory, which no archive may be using "
        "(default: publish to a running archive)",
    )
    parser.add_argument(
        "--channel", metavar="CHANNEL", type=channel, help="of the recording (default: aeron:ipc)"
    )
    parser.add_argument(
        "--stream-id",
        metavar="S",
        type=int32,
        default=DEFAULT_STREAM_ID,
        help=f"of the recording (default: {DEFAULT_STREAM_ID})",
    )
    for name, text in (
        ("term-length", "of the stream, a power of two; a record has an eighth of it at most"),
        ("mtu", "of the stream, a multiple of 32"),
        ("segment-length", "of the recording's files, with --to"),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="SIZE",
            type=option(_size, f"--{name}"),
            help=f"{text} (for example 64k)",
        )
    add_connection_options(parser)


def _size(text: str, name: str) -> int:
    return parse_size(name, text)


def _import_(args: argparse.Namespace) -> int:
    """Import a journal as a recording with one message for each record.

    With --to the recording is written into an archive directory; without, the records are published
    to a running archive, and until the end the alias of the recording's channel ends in
    -incomplete. At a damaged record the import ends; the records before it, if any, are imported,
    and the exit code is 3.
    """
    from aerotape.tools._journal.source import JournalSource

    if args.segment_length is not None and args.to is None:
        raise ConfigurationError(
            "--segment-length requires --to: a running archive has its own", "--segment-length"
        )
    source = JournalSource(one_journal(args), args.name)
    with Progress(source.length >> 20, f"importing {source.journal.name}", unit="MiB") as bar:
        make = _into_running_archive if args.to is None else _into_directory
        try:
            recording, copied = make(source, args, bar)
        except JournalError as error:
            note(f"nothing was imported: {error}")
            return EXIT_DATA_SUSPECT
    row = ImportedJournal(
        recording_id=recording.recording_id,
        records=copied.records,
        first_index=copied.first_index,
        last_index=copied.last_index,
        start_position=recording.start_position,
        stop_position=recording.stop_position,
        damage=None if copied.damage is None else str(copied.damage),
    )
    emit(row, args)
    if copied.damage is not None:
        note(f"the records before the damage were imported: {copied.damage}")
        return EXIT_DATA_SUSPECT
    return EXIT_OK


def _stream(source: JournalSource, args: argparse.Namespace) -> NewStream:
    from aerotape.catalog.maintenance.recording_writer import NewStream

    given = {
        "term_buffer_length": args.term_length,
        "segment_file_length": args.segment_length,
        "mtu_length": args.mtu,
    }
    return NewStream(
        channel=_labelled(args, source.journal.name),
        stream_id=args.stream_id,
        **{name: value for name, value in given.items() if value is not None},
    )


def _labelled(args: argparse.Namespace, name: str) -> str:
    """Return the channel with the journal's name as alias, unless it has another."""
    uri = ChannelUri.parse(args.channel or "aeron:ipc")
    if uri.get("alias") is None:
        if not _ALIAS.fullmatch(name):
            raise ConfigurationError(
                f"journal name {name!r} cannot be the alias of a channel: give one, for example "
                "--channel 'aeron:ipc?alias=journal'",
                "--channel",
            )
        uri.put("alias", name)
    return str(uri)


# ---- into a directory ----------------------------------------------------------------------------


def _into_directory(
    source: JournalSource, args: argparse.Namespace, bar: Progress
) -> tuple[RecordingDescriptor, Copied]:
    from aerotape.catalog.durability import make_directory
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.maintenance.recording_writer import write_recording
    from aerotape.catalog.mark.mark_file import DEFAULT_LIVENESS_TIMEOUT_MS
    from aerotape.catalog.mark.ownership import unused

    stream = _stream(source, args)
    stream.check()
    copies: list[Copied] = []

    def write(writer: RecordingWriter) -> None:
        copies.append(source.copy(writer.append, lambda done: bar.update(done >> 20)))

    with StorageErrors(f"cannot create {args.to}", args.to):
        make_directory(args.to)
    with (
        unused(args.to, DEFAULT_LIVENESS_TIMEOUT_MS),
        Catalog.open(args.to, create=True) as catalog,
    ):
        recording = write_recording(catalog, args.to, stream, write)
    return recording, copies[0]


# ---- into a running archive ----------------------------------------------------------------------


def _into_running_archive(
    source: JournalSource, args: argparse.Namespace, bar: Progress
) -> tuple[RecordingDescriptor, Copied]:
    """Publish the records to a recording, whose alias shows until the end that it is incomplete."""
    final = _labelled(args, source.journal.name)
    uri = ChannelUri.parse(final)
    uri.put("alias", f"{uri.get('alias')}{_INCOMPLETE}")
    for parameter, value in (("term-length", args.term_length), ("mtu", args.mtu)):
        if value is not None:
            uri.put(parameter, str(value))
    with connect(args) as client:
        publication = client.add_recorded_exclusive_publication(
            str(uri), args.stream_id, auto_stop=True
        )
        recording_id = -1
        try:
            publication.wait_connected()
            recording_id = _find(client, uri, args.stream_id, publication.session_id)

            def append(payload: memoryview, reserved_value: int) -> None:
                if len(payload) > publication.max_message_length:
                    raise ConfigurationError(
                        f"a record of {len(payload)} bytes is too long for the stream: the longest "
                        f"has {publication.max_message_length}; choose a longer --term-length",
                        "--term-length",
                    )
                publication.send(payload, reserved_value=reserved_value)

            copied = source.copy(append, lambda done: bar.update(done >> 20))
            end = publication.position
            _wait(
                lambda: client.max_recorded_position(recording_id) >= end,
                f"recording {recording_id} to be recorded up to position {end}",
            )
            publication.close()
            _wait(
                lambda: client.stop_position(recording_id) >= end,
                f"recording {recording_id} to stop",
            )
            client.update_channel(recording_id, final)
        except BaseException:
            publication.close()
            if recording_id >= 0:
                _remove(client, recording_id)
            raise
        recording = client.list_recording(recording_id)
    if recording is None:
        raise AerotapeError(f"recording {recording_id} was deleted meanwhile")
    return recording, copied


def _find(client: ArchiveClient, uri: ChannelUri, stream_id: int, session_id: int) -> int:
    """Return the id of the recording of a session once there is one."""
    found: list[int] = []

    def is_there() -> bool:
        fragment = "aeron:ipc" if not uri.is_udp else "aeron:udp"
        found.append(client.find_last_matching_recording(0, fragment, stream_id, session_id))
        return found[-1] >= 0

    _wait(is_there, "the recording to start")
    return found[-1]


def _wait(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AerotapeError(f"waited {_WAIT_S:g} s for {what}: is the archive's storage slow?")
        time.sleep(_POLL_S)


def _remove(client: ArchiveClient, recording_id: int) -> None:
    """Purge the incomplete recording; if that fails, its alias still shows what it is."""
    with suppress(AerotapeError):
        _wait(lambda: client.stop_position(recording_id) >= 0, "the recording to stop")
        client.purge_recording(recording_id)
