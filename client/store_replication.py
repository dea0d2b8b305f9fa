"""Replication of a running archive's recordings into a store, under the scope of that archive.

The client replays a recording and writes it, with the recorder of the daemon, into the directory
that an import would create (`catalog.scopes`). The stop position in that directory's catalog is
what is replicated: it is set when the bytes are on storage, and a later call continues there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape import _native, errors
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.forcing import force_segments
from aerotape.catalog.no_follow import DIRECTORY_MODE
from aerotape.catalog.scope_layout import imported_directory
from aerotape.catalog.scopes.importing import RecordingImport
from aerotape.catalog.scopes.placing import (
    check_levels,
    check_no_ledger,
    place,
    prepare_store,
    stored_descriptor,
    temporary_folder,
    write_directory,
)
from aerotape.channel_uri import ChannelUri, with_session_id
from aerotape.client import channels
from aerotape.client.replay.requests import ReplayTarget, start_replay
from aerotape.client.session.client_session import ClientSession
from aerotape.clock import epoch_ms
from aerotape.counter_keys import CounterType
from aerotape.driver_tasks import add_subscription, bind_port, wait_for
from aerotape.frame_header import to_int32
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import Task, run
from aerotape.worker_arguments import RecordArguments, WorkerOptions

if TYPE_CHECKING:
    from aerotape.client.client import Client

_WAIT_NS: Final = 100_000_000

Progress = Callable[[int, int], object]
"""Called with the position reached and the position to reach of the recording, bytes."""


def replicate_archive(
    client: Client,
    store: Path,
    scope_id: int,
    *,
    is_ledger: Callable[[QualifiedId], bool],
    replay_channel: str | None = None,
    recording_ids: Collection[int] | None = None,
    progress: Progress = lambda done, total: None,
) -> Iterator[RecordingImport]:
    """Replicate an archive's recordings into a store, in ascending order of ids.

    A recording that is live is replicated up to where it is. One that was replicated before
    continues there.

    Args:
        client: of the archive, of any that speaks Aeron's protocol.
        store: the archive directory to write; an archive may be running there.
        scope_id: the scope of the recordings in the store, unsigned. Ledgers of that archive are
            recordings here.
        is_ledger: whether the store has a ledger of an id, which no recording may have.
        replay_channel: the UDP channel to which the archive replays. Default: as the client's.
        recording_ids: only these recordings; all if None.
        progress: called while a recording is replicated.

    Yields:
        The outcome of each recording, when it is on storage. One that cannot be replayed, or is not
        the recording that the store has under its id, is left out.

    Raises:
        ConfigurationError: the scope is the store's own, or the channel cannot be used.
        UnknownRecordingError: the archive has not all recordings of `recording_ids`.
        CatalogError: the store is not an archive directory.
        StorageError: the store cannot be written, or an import is running.
    """
    prepare_store(store, scope_id)
    channel = _udp_channel(replay_channel or client._replay_channel)
    found = [
        each
        for each in client.list_recordings()
        if recording_ids is None or each.recording_id in recording_ids
    ]
    for missing in sorted(set(recording_ids or ()) - {each.recording_id for each in found}):
        raise errors.UnknownRecordingError(f"the archive has no recording {missing}", missing)
    with temporary_folder(store, False) as folder:
        for descriptor in found:
            id = QualifiedId(scope_id, descriptor.recording_id)
            directory = imported_directory(store, id)
            outcome = RecordingImport(id.ledger_id, id, "left out", 0, directory)
            try:
                check_levels(directory)
                check_no_ledger(store, id, is_ledger)
                source = _with_end(client, descriptor)
                if not directory.exists():
                    _create(directory, source, id, folder)
                stored = stored_descriptor(directory, source)
                begin, end = stored.stop_position, source.stop_position
                if not source.start_position <= begin <= end:
                    raise errors.CatalogError(
                        f"{directory} holds the recording up to position {begin}, the archive from"
                        f" {source.start_position} to {end}: remove the directory to replicate it"
                        " again",
                        directory,
                    )
                if begin < end:
                    _replicate(client, channel, directory, source, begin, progress)
                result = "replicated" if begin < end else "present"
                yield replace(outcome, result=result, length=end - stored.start_position)
            except (errors.ArchiveError, errors.CatalogError) as error:
                yield replace(outcome, error=str(error))


def _udp_channel(channel: str) -> str:
    """Return the channel for replays, which have the session ids of the recorded streams."""
    uri = ChannelUri.parse(channel)
    if uri.has_control_mode_response:
        raise errors.ConfigurationError(
            f"recordings cannot be replicated over the response channel {channel}: give a UDP"
            " channel with an endpoint",
            "replay_channel",
        )
    # Over IPC the live stream itself may have this session id.
    return "aeron:udp?endpoint=localhost:0" if uri.is_ipc else channel


def _with_end(client: Client, descriptor: RecordingDescriptor) -> RecordingDescriptor:
    """Return a descriptor with the position to replicate to as the stop position."""
    if problem := describe_problem(descriptor):
        id = descriptor.recording_id
        raise errors.CatalogError(f"recording {id} has a damaged descriptor: {problem}")
    if descriptor.is_active:
        position = client.max_recorded_position(descriptor.recording_id)
        return replace(descriptor, stop_position=position, stop_timestamp_ms=epoch_ms())
    return descriptor


def _create(directory: Path, source: RecordingDescriptor, id: QualifiedId, folder: Path) -> None:
    """Create the directory of a recording of which nothing is replicated yet."""
    aside = folder / str(id)
    try:
        aside.mkdir(DIRECTORY_MODE)
        empty = replace(source, stop_position=source.start_position)
        write_directory(aside, id, empty, "none")
        place(aside, directory)
    except OSError as error:
        raise errors.StorageError(
            f"cannot create {directory}: {error.strerror}", directory
        ) from error


def _replicate(
    client: Client,
    channel: str,
    directory: Path,
    source: RecordingDescriptor,
    begin: int,
    progress: Progress,
) -> None:
    """Replay from a position and record it; interrupted, what has arrived is replicated."""
    recording_id, end = source.recording_id, source.stop_position
    aeron = client.aeron.native
    position, message = begin, None
    mailbox = _native.Mailbox()
    with ExitStack() as exits:
        counter = aeron.add_counter(
            CounterType.STORE_REPLICATION, b"", f"store-replication: recording {recording_id}"
        )
        exits.callback(counter.close)
        subscription, image = run(_replay(client._session, source, channel, begin))
        exits.callback(subscription.close)
        worker = _native.SessionWorker(mailbox, WorkerOptions("store-replication", directory))
        exits.callback(worker.close)
        arguments = RecordArguments(recording_id, source.start_position, source.segment_file_length)
        worker.record(image, counter, arguments)
        try:
            stopped = None
            while stopped is None:
                if counter.get() >= end:
                    worker.stop_recording(recording_id)
                stopped = _stopped(mailbox.wait(timeout_ns=_WAIT_NS))
                progress(counter.get(), end)
        finally:
            worker.close()
            position, message = stopped or _stopped(mailbox.wait()) or (begin, None)
            if position > begin:
                force_segments(directory, recording_id)
                with Catalog.open(directory, sync_level=2) as catalog:
                    catalog.recording_stopped(recording_id, position, epoch_ms())
    if message is not None:
        raise errors.StorageError(
            f"recording {recording_id} is replicated up to position {position}: {message}",
            directory,
        )
    if position < end:
        reasons = "; ".join(map(str, client.poll_for_errors()))
        raise errors.ArchiveError(
            f"the replay of recording {recording_id} ended at position {position} of {end}:"
            f" {reasons or 'the archive has aborted it'}; repeat the command to continue there"
        )


def _stopped(events: list[_native.Event]) -> tuple[int, str | None] | None:
    """Return the stop position of the recording, and the reason of its failure."""
    for event in events:
        if isinstance(event, _native.RecordingStopped):
            return event.position, event.message
        if isinstance(event, _native.ClientClosed):
            raise errors.AerotapeError("the media driver is gone")
    return None


def _replay(
    session: ClientSession, source: RecordingDescriptor, channel: str, begin: int
) -> Task[tuple[_native.Subscription, _native.Image]]:
    """Request a replay whose frames are those of the recording, and wait for its stream."""
    timeout_ns = session.timeout_ns
    channel = with_session_id(channel, source.session_id)
    subscription = yield from add_subscription(session.aeron, channel, source.stream_id, timeout_ns)
    try:
        if channels.has_wildcard_port(channel):
            channel = yield from bind_port(subscription, channel, timeout_ns)
        answer = yield from start_replay(
            session,
            source.recording_id,
            ReplayTarget(channel, source.stream_id),
            position=begin,
            length=source.stop_position - begin,
        )
        session_id = to_int32(answer.relevant_id)
        late = f"no stream of the replay of recording {source.recording_id} to {channel}"
        image = yield from wait_for(
            lambda: subscription.image_by_session_id(session_id), late, timeout_ns
        )
    except BaseException:
        subscription.close()
        raise
    return subscription, image
