"""The requests for the ledgers of a running archive.

A request is a background task of the conductor. What blocks, the database and the segment files,
is done by a dedicated thread, which the first request for a ledger starts: an archive without
ledgers has neither thread nor database. Requests that change one ledger follow each other.

Positions of a ledger, bytes of its recording:

    written     recorded so far: the recording position counter. Its last entry is LAP.
    confirmed   on storage: a counter beside it. Its last entry is LAC.

The recorder moves both while a ledger has a writer. A recording that has stopped is forced to
storage before its end counts as confirmed: once for each run of the archive.

This archive may lead a ledger that others mirror (`mirrors/leading.py`): then both are positions
that a quorum of archives has reached, each by its own recording (`log.py`). Or it mirrors a ledger
that another one leads (`mirrors/following.py`). `ledger.py` has what it knows of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.client_requests import ClientRequests
from aerotape.archive.features.ledger.ledger import Ledger
from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
from aerotape.archive.features.ledger.ledgers import Ledgers
from aerotape.archive.features.ledger.log import Purge, Storage, Truncate
from aerotape.archive.features.ledger.metadata import (
    LedgerMetadata,
    check_password,
    check_quorums,
)
from aerotape.archive.features.ledger.mirrors.follower import Followers
from aerotape.archive.features.ledger.mirrors.leader import Leader
from aerotape.archive.features.ledger.mirrors.member_requests import MemberRequests
from aerotape.archive.features.ledger.mirrors.repair import Repairs
from aerotape.archive.features.ledger.role import Idle
from aerotape.archive.features.ledger.status import LedgerStatus, descriptor_message
from aerotape.archive.features.ledger.writer_recording import WriterRecording
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.codecs.generated.ledger_control import LedgerType, Reach
from aerotape.errors import (
    ArchiveError,
    LedgerClosedError,
    LedgerError,
    LedgerFencedError,
    LedgerInUseError,
    UnconfirmedEntryError,
)
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import SOON_NS, Pause, Task

if TYPE_CHECKING:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.properties import LedgerProperties
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.replication.replications import Replications
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.client.credentials import Login
    from aerotape.qualified_id import QualifiedId


# A recovery that lost to another one is repeated after one to two times this: a random time, so
# that two do not fence each other for ever.
_RETRY_NS: Final = 1_000_000_000


class LedgerService:
    """All ledgers of an archive. For the conductor's thread.

    Attributes:
        requests: runs the tasks of requests.
        members: the requests of other archives that store a ledger.
    """

    def __init__(
        self,
        *,
        archive_dir: Path,
        catalog: Catalog,
        recordings: Recordings,
        replications: Replications,
        purge: Purge,
        truncate: Truncate,
        config: ArchiveConfig,
        properties: LedgerProperties,
        archive_id: int,
        errors: ErrorLog,
        wake: Callable[[], None],
    ) -> None:
        """Create the service; it opens the database if there is one, else the first request does.

        Args:
            purge: removes a recording.
            truncate: ends a recording at a position.
            wake: makes the conductor call `do_work` soon; called from other threads.
        """
        # How long a writer's stream may take to arrive.
        self._connect_timeout_ns = config.connect_timeout_ns
        self._worker = LedgerWorker(
            archive_dir,
            wake,
            lambda text: errors.record("metadata of ledgers", text),
            is_restored=properties.are_restored,
            naming=config.thread_naming,
        )
        self._worker.begin()
        self.requests = ClientRequests(errors)
        self._ledgers = Ledgers(
            Storage(
                archive_dir=archive_dir,
                catalog=catalog,
                recordings=recordings,
                worker=self._worker,
                purge=purge,
                truncate=truncate,
                errors=errors,
            )
        )
        login = None
        if properties.mirror_secret_file is not None:
            login = partial(_login, properties.mirror_secret_file)
        opening = partial(replications.open_session, login=login)
        followers = Followers(replications, login, self._worker, errors)
        self.members = MemberRequests(self._ledgers, self._worker, followers, archive_id)
        self._repairs = Repairs(
            worker=self._worker,
            opening=opening,
            replay_channel=config.replication_channel,
            checksum=config.record_checksum,
            errors=errors,
        )
        self._leader = Leader(
            worker=self._worker,
            followers=followers,
            opening=opening,
            config=config,
            archive_id=archive_id,
            errors=errors,
        )

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: requests and mirrors wait for positions, or the driver."""
        return SOON_NS if self.requests or self._ledgers.is_leading else None

    def do_work(self) -> None:
        """Advance each ledger and each request by one step."""
        self._ledgers.do_work()
        self._worker.do_work()
        self.requests.do_work()

    def close(self) -> None:
        """Disconnect from the mirrors, cancel requests and close the database."""
        self._ledgers.close()
        self.requests.close()
        self._worker.close()

    def of(self, ledger: QualifiedId) -> Ledger:
        """Return the ledger with an id, whether it exists or not."""
        return self._ledgers.of(ledger)

    def ledger_of(self, recording_id: int) -> QualifiedId | None:
        """Return the ledger whose recording this is, None if it is a plain one."""
        return self._ledgers.of_recording(recording_id)

    # ---- requests, as tasks of `requests` -----------------------------------------------------

    def create(self, metadata: LedgerMetadata) -> Task[int]:
        """Add a ledger; it is on storage at the end, also in its mirrors.

        The mirrors have it first: what this archive knows, they have known.
        """
        if not metadata.mirrors:
            yield from self._worker.add(metadata)
            return 0
        ledger = metadata.ledger
        own = self._leader.own_channel(ledger)
        metadata = replace(metadata, member_record=metadata.member_record.named(own))
        check_quorums(metadata)
        yield from self._worker.check_new(ledger)
        metadata = yield from self._leader.create(metadata)
        try:
            yield from self._worker.add(metadata)
        except ArchiveError:
            yield from self._leader.discard(metadata)
            raise
        return 0

    def info(
        self,
        client: ControlSession,
        correlation_id: int,
        ledger: Ledger,
        password_token: bytes,
    ) -> Task[None]:
        """Send the descriptor of a ledger, with its entry ids; check the token if there is one."""
        metadata = yield from ledger.metadata()
        if password_token:
            check_password(metadata, password_token)
        status = yield from self._leader.status(ledger, metadata)
        client.send(
            descriptor_message(
                client.session_id, correlation_id, metadata, status, damage=ledger.damage
            )
        )

    def list_scope(
        self,
        client: ControlSession,
        correlation_id: int,
        scope_id: int,
        from_ledger_id: int,
        count: int,
    ) -> Task[None]:
        """Send descriptors without looking up entries; RECORDING_UNKNOWN if fewer than `count`."""
        found = yield from self._worker.list_scope(scope_id, from_ledger_id, count)
        for metadata in found:
            status = self.of(metadata.ledger).positions(metadata)
            client.send(descriptor_message(client.session_id, correlation_id, metadata, status))
        if len(found) < count:
            client.send_recording_unknown(correlation_id, NULL_VALUE)

    def next_scope(self, after: int) -> Task[int]:
        """Return the lowest scope after one that has ledgers or imported recordings, or 0."""
        return self._worker.next_scope(after)

    def prepare(
        self,
        client: ControlSession,
        correlation_id: int,
        ledger: Ledger,
        *,
        takes_over: bool,
        password_token: bytes,
    ) -> Task[None]:
        """Lead a ledger for a writer that follows; send the descriptor, which has where it begins.

        Args:
            takes_over: whether to end another writer, here or in another archive, whose adds
                raise LedgerClosedError then.
        """
        metadata = yield from ledger.metadata()
        check_password(metadata, password_token)
        writer = ledger.log.writer
        if writer is not None and takes_over:
            ledger.log.fail_writer(
                writer,
                f"ledger {ledger} is closed for this writer: another one has taken it over",
                LedgerFencedError.code,
            )
            while writer.is_active:
                yield Pause()
            ledger.log.do_work()
        metadata = yield from self._lead(ledger, metadata, may_fence=takes_over)
        status = yield from ledger.log.status(metadata)
        client.send(descriptor_message(client.session_id, correlation_id, metadata, status))

    def attach(
        self,
        client: ControlSession,
        correlation_id: int,
        ledger: Ledger,
        *,
        stream_id: int,
        source_location: SourceLocation,
        channel: Callable[[LedgerMetadata], str],
        password_token: bytes,
    ) -> Task[None]:
        """Record a writer's stream; send the descriptor once that has begun and is on storage.

        Args:
            channel: returns what to record of a ledger.
        """
        metadata = yield from ledger.metadata()
        check_password(metadata, password_token)
        if not ledger.role.is_prepared(metadata):
            metadata = yield from self._lead(ledger, metadata, may_fence=False)
        ledger.log.check_no_writer(metadata)
        status = yield from ledger.log.status(metadata)
        stream = channel(metadata)
        ledger.log.check_continues(metadata, stream)
        writer = WriterRecording(metadata, client, correlation_id)
        yield from ledger.log.start_writer(
            writer, stream_id, stream, source_location, self._connect_timeout_ns
        )
        status = yield from self._begin(ledger, writer, metadata, status)
        client.send(descriptor_message(client.session_id, correlation_id, metadata, status))

    def sync(self, ledger: Ledger) -> Task[int]:
        """Force what is recorded to storage; return the confirmed position."""
        metadata = yield from ledger.metadata()
        if ledger.log.session(metadata.recording_id) is None:
            status = yield from self._leader.status(ledger, metadata, with_entries=False)
            return status.confirmed_position
        role = ledger.role
        position = yield from ledger.log.sync(metadata)
        return (yield from role.sync(metadata, position))

    def await_position(
        self,
        client: ControlSession,
        ledger: Ledger,
        position: int,
        reach: Reach,
        timeout_ns: int,
        attach_id: int | None,
    ) -> Task[int]:
        """Return the position reached, once it is at least `position` or the time is over.

        Args:
            attach_id: the correlation id of the request that attached the client's writer, or by
                which this archive follows the client. It fails with LedgerFencedError once that has
                ended: entries of another writer may be in the place of the client's. None: neither.
        """
        deadline_ns = time.monotonic_ns() + timeout_ns
        metadata = yield from ledger.metadata()
        is_confirmed = reach is Reach.CONFIRMED or metadata.type is LedgerType.PD_JOURNAL
        while (session := ledger.log.session(metadata.recording_id)) is not None:
            if attach_id is not None:
                ledger.check_attached(client, attach_id)
            if is_confirmed:
                reached = ledger.role.confirmed(session.confirmed_position)
            else:
                reached = ledger.role.recorded(session.position)
            if reached >= position or time.monotonic_ns() >= deadline_ns:
                return reached
            yield Pause()
        metadata = yield from ledger.metadata()
        if attach_id is not None and ledger.role.is_attached(client, attach_id):
            # The client is the leader: it needs our own synced end, not the quorum's.
            yield from ledger.log.await_live_or_durable(metadata)
            reached = ledger.log.end(metadata)
        else:
            status = yield from self._leader.status(ledger, metadata, with_entries=False)
            reached = status.confirmed_position
        if attach_id is not None:
            ledger.check_attached(client, attach_id)
        return reached

    def close_ledger(self, client: ControlSession, ledger: Ledger) -> Task[int]:
        """Sync and close a ledger that this client writes, or that has no writer.

        Returns:
            Its last entry id.
        """
        metadata = yield from ledger.metadata()
        writer = ledger.log.writer
        if writer is not None and writer.client is not client:
            raise LedgerInUseError.of_ledger(ledger.id)
        return (yield from self._leader.close(ledger, metadata))

    def recover(
        self, client: ControlSession, ledger: Ledger, password_token: bytes
    ) -> Task[int]:
        """Stop the writer of a ledger, also another client's, and close it as `close_ledger`.

        Another archive may be doing the same. The one that is fenced waits until the other one has
        closed the ledger here, too, or repeats its recovery if that does not come.
        """
        import random

        deadline_ns = time.monotonic_ns() + self._connect_timeout_ns
        while True:
            try:
                task = self._recover(ledger, password_token)
                return (yield from self.requests.run_alone(client, ledger, task))
            except LedgerFencedError:
                if time.monotonic_ns() >= deadline_ns:
                    raise
            retry_ns = time.monotonic_ns() + _RETRY_NS + random.randrange(_RETRY_NS)
            while time.monotonic_ns() < retry_ns:
                yield Pause(_RETRY_NS // 20)
                metadata = yield from ledger.metadata()
                if metadata.member_record.is_decided:
                    break

    def _recover(self, ledger: Ledger, password_token: bytes) -> Task[int]:
        metadata = yield from ledger.metadata()
        check_password(metadata, password_token)
        writer = ledger.log.writer
        if writer is not None:
            failure = f"ledger {ledger} was closed by another client"
            writer.on_failed(LedgerClosedError.code, failure)
        return (yield from self._leader.close(ledger, metadata))

    def delete(self, ledger: Ledger) -> Task[int]:
        """Purge the recording of a ledger without a writer, then remove its metadata.

        A ledger whose recording is purged is removed at the next start, or deleted again.
        """
        metadata = yield from ledger.metadata()
        ledger.log.check_no_writer(metadata)
        ledger.depose()
        ledger.become(Idle())
        yield from ledger.await_ended()
        yield from ledger.log.purge(metadata)
        yield from ledger.remove(metadata)
        return 0

    def locate(self, ledger: Ledger, entry_id: int) -> Task[int]:
        """Return the position of an entry that is recorded; repair the entry if it is damaged."""
        metadata = yield from ledger.metadata()
        status = yield from self._leader.status(ledger, metadata, with_entries=False)
        if entry_id < 0 or metadata.recording_id == NULL_VALUE:
            raise UnconfirmedEntryError(f"ledger {ledger} has no entry {entry_id}", ledger.id)
        limit = status.recorded_position
        return (yield from self._repairs.position_of(ledger, metadata, entry_id, limit))

    def replace_mirror(
        self, ledger: Ledger, mirror: str, replacement: str, is_lost: bool | None
    ) -> Task[int]:
        """Mirror a ledger on another archive; that is on storage at the end.

        Args:
            mirror: control channel of the one that is replaced.
            replacement: control channel of the other one.
            is_lost: whether the first one has lost the ledger, or will never return.
        """
        metadata = yield from ledger.metadata()
        yield from self._leader.replace(
            ledger, metadata, mirror, replacement, is_lost=bool(is_lost)
        )
        return 0

    # ---- steps of requests --------------------------------------------------------------------

    def _lead(
        self, ledger: Ledger, metadata: LedgerMetadata, *, may_fence: bool
    ) -> Task[LedgerMetadata]:
        """Lead a ledger without a writer here, so that it can have one; return its metadata then.

        Args:
            may_fence: whether to take it over from another archive that leads it.
        """
        closed = LedgerClosedError(
            f"ledger {ledger.id} is closed: create another one", ledger.id
        )
        if metadata.is_closed:
            raise closed
        yield from ledger.log.await_live_or_durable(metadata)
        if ledger.log.writer is not None or not metadata.mirrors:
            # With mirrors it may follow another leader, which it fences.
            ledger.log.check_no_writer(metadata)
        metadata = yield from self._leader.lead(ledger, metadata, may_fence=may_fence)
        if metadata.is_closed:
            raise closed
        return metadata

    def _begin(
        self,
        ledger: Ledger,
        writer: WriterRecording,
        metadata: LedgerMetadata,
        before: LedgerStatus,
    ) -> Task[LedgerStatus]:
        """Store which recording a writer has; return the status of the ledger with it.

        Args:
            metadata: of the ledger before it had this writer.
            before: the status of the ledger then.
        """
        recording_id = writer.recording_id
        if metadata.recording_id == NULL_VALUE:
            start = ledger.log.start_position(recording_id)
            before = replace(before, recorded_position=start, confirmed_position=start)
            # Before the mirrors are waited for: without them the ledger has an empty recording.
            yield from self._worker.set_recording(metadata, recording_id)
        try:
            yield from ledger.role.start(writer)
        except Exception:
            yield from ledger.log.stop_writer(writer)
            raise
        session = ledger.log.session(recording_id)
        if session is None:
            raise LedgerError(
                f"the writer of ledger {ledger.id} is gone: {writer.failure or 'it has stopped'}",
                ledger.id,
            )
        return ledger.role.status(before.with_writer(session))


def _login(secret_file: Path) -> Login:
    """Return the credentials for archives that mirror; the file is read for each connection."""
    from aerotape.client.credentials import Login, user_of_file

    return Login.of(user_of_file(secret_file))
