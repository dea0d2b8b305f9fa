"""Seeking by index or asqn in a recording of a running archive, over its protocol.

The search is that of offline readers (`aerotape.replay.offline.seek`); without the archive's
directory its records are replayed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import AerotapeError, ConfigurationError, UnknownRecordingError
from aerotape.replay.offline.selection import Selection

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.offline.seek import Messages, SeekTarget


def own_recording(client: ArchiveClient, args: argparse.Namespace) -> Recording:
    """Open the recording in --archive-dir, which must be the archive's directory.

    Raises:
        ConfigurationError: it is another directory.
        UnknownRecordingError: the archive has no such recording.
    """
    from aerotape.replay.offline.directory import open_directory

    recording_id = args.recording_id
    recording = open_directory(args.archive_dir).recording(recording_id)
    theirs, ours = _descriptor(client, recording_id), recording.descriptor
    if (theirs.start_timestamp_ms, theirs.initial_term_id, theirs.stream_id) != (
        ours.start_timestamp_ms,
        ours.initial_term_id,
        ours.stream_id,
    ):
        raise ConfigurationError(
            f"--archive-dir {args.archive_dir} is not the directory of the connected archive: "
            f"it has another recording {recording_id}",
            "--archive-dir",
        )
    return recording


def find_position(
    client: ArchiveClient, args: argparse.Namespace, target: SeekTarget
) -> int:
    """Return the position of the record to begin at.

    Raises:
        AerotapeError: no record with this index is recorded.
        CodecError: a message is not a record of a raft journal.
    """
    if args.archive_dir is not None:
        from aerotape.replay.offline.reader import recording_range

        sought = Selection(from_index=target.index, from_asqn=target.asqn)
        part = recording_range(own_recording(client, args), sought)
        found = part.from_position if part.length else None
    else:
        found = _search(client, args.recording_id, target)
    if found is None:
        wanted = f" with index {target.index} or higher" if target.index is not None else ""
        raise AerotapeError(f"recording {args.recording_id} has no record{wanted}")
    return found


def _search(client: ArchiveClient, recording_id: int, target: SeekTarget) -> int | None:
    from aerotape.replay.offline.seek import find_record

    def messages(begin: int, end: int) -> Messages:
        with client.replay(recording_id, begin, end - begin, follow=False) as replay:
            for message in replay:
                yield [(message.position, message.payload)]

    descriptor = _descriptor(client, recording_id)
    start, end = descriptor.start_position, client.max_recorded_position(recording_id)
    term_length = descriptor.term_buffer_length
    return find_record(target, messages, recording_id, start, end, term_length)


def _descriptor(client: ArchiveClient, recording_id: int) -> RecordingDescriptor:
    found = client.list_recording(recording_id)
    if found is None:
        raise UnknownRecordingError(f"unknown recording id: {recording_id}", recording_id)
    return found
