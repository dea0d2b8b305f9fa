"""The ledgers that this archive leads, each with its mirrors.

The leader records its writer's stream, and each mirror replicates that recording. What is confirmed
and acknowledged follows from the positions of all of them by the quorum rule. A mirror that fails
ends the writer's recording, except for PD_JOURNAL: there it may return, and catches up first.

A leader is elected first (`election.py`): it has all that an earlier leader has acknowledged, and
serves once that is confirmed in its own epoch. A mirror that has promised a higher epoch ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.metadata import fenced
from aerotape.archive.features.ledger.mirrors.creation import Creation
from aerotape.archive.features.ledger.mirrors.election import Elections
from aerotape.archive.features.ledger.mirrors.led_ledger import LedLedger
from aerotape.archive.features.ledger.mirrors.members import mirror_request
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest
from aerotape.errors import (
    AerotapeError,
    ArchiveError,
    ConfigurationError,
    LedgerClosedError,
    LedgerError,
    LedgerFencedError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import BackgroundTasks, Pause

if TYPE_CHECKING:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.follower import Followers
    from aerotape.archive.features.ledger.mirrors.link import MirrorLink
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.archive.features.ledger.protocol.replica import Epoch, Group, MirrorStep
    from aerotape.archive.features.ledger.status import LedgerStatus
    from aerotape.archive.features.ledger.writer_recording import WriterRecording
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task


# After an election without a quorum, wait this long before the next one.
_RETRY_NS: Final = 5_000_000_000


class Leader:
    """The ledgers of this archive that have mirrors and are in use. For the conductor's thread.

    For a ledger without mirrors, positions are those of this archive, and there is nothing to wait
    for.
    """

    def __init__(
        self,
        *,
        recordings: LedgerRecordings,
        worker: LedgerWorker,
        followers: Followers,
        opening: Opening,
        config: ArchiveConfig,
        archive_id: int,
        errors: ErrorLog,
    ) -> None:
        """Create the service, without any ledger.

        Args:
            opening: returns the task that connects to a mirror.
            errors: receives what goes wrong with mirrors.
        """
        self._recordings = recordings
        self._control_stream_id = config.control_stream_id
        self._elections = Elections(
            recordings=recordings,
            worker=worker,
            followers=followers,
            opening=opening,
            own_channel=config.control_channel if config.control_channel_enabled else None,
            own_stream_id=config.control_stream_id,
            archive_id=archive_id,
        )
        self._creation = Creation(opening, archive_id)
        self._archive_id = archive_id
        self._tasks = BackgroundTasks()
        self._opening = opening
        # So that our error arrives before the request of a client times out.
        self._timeout_ns = config.connect_timeout_ns * 4 // 5
        self._lookup_timeout_ns = config.connect_timeout_ns // 4
        self._errors = errors
        # When to try again to lead a ledger without a writer.
        self._retry_ns: dict[QualifiedId, int] = {}
        # The epochs in which ledgers were led, and up to where their logs show that they are
        # confirmed; an epoch begins anew after a restart.
        self._prepared: dict[QualifiedId, tuple[Epoch, int]] = {}
        self._ledgers: dict[QualifiedId, LedLedger] = {}

    @property
    def is_active(self) -> bool:
        """Whether there is work to do."""
        return bool(self._tasks) or any(found.is_active for found in self._ledgers.values())

    def do_work(self) -> None:
        """Advance each link by one step; stop the writers whose mirrors have failed."""
        self._tasks.do_work()
        for ledger, found in list(self._ledgers.items()):
            for link in found.links:
                before = link.failure
                link.do_work()
                if link.failure not in (before, None):
                    self._errors.record("mirror of a ledger failed", link.failure)
            writer = found.writer
            if any(link.is_fenced for link in found.links):
                self.depose(ledger)
            elif writer is None:
                continue
            elif writer.stop_position is not None:
                found.end(writer.stop_position)
            elif found.failure is not None and not writer.failure:
                self._recordings.fail_writer(writer, found.failure)

    def depose(self, ledger: QualifiedId) -> None:
        """Stop leading a ledger: another archive has a higher epoch. Idempotent."""
        self._prepared.pop(ledger, None)
        self._elections.depose(ledger)
        self._disconnect(ledger)
        writer = self._recordings.writer(ledger)
        if writer is not None and not writer.failure:
            self._recordings.fail_writer(
                writer,
                f"ledger {ledger} is closed for this writer: another archive leads it, or has"
                " closed it",
                LedgerFencedError.code,
            )

    def close(self) -> None:
        """Disconnect from all mirrors."""
        self._tasks.close()
        for ledger in list(self._ledgers):
            self._disconnect(ledger)

    # ---- positions ----------------------------------------------------------------------------

    def confirmed(self, ledger: QualifiedId, own: int) -> int:
        """Return up to where a quorum has synced a ledger; `own`: this archive has. Both bytes."""
        found = self._ledgers.get(ledger)
        return own if found is None else max(0, found.leadership.confirmed(own))

    def recorded(self, ledger: QualifiedId, own: int) -> int:
        """Return the position up to which a quorum has recorded a ledger; `own`: this archive."""
        found = self._ledgers.get(ledger)
        return own if found is None else max(0, found.leadership.recorded(own))

    def with_quorum(self, ledger: QualifiedId, status: LedgerStatus) -> LedgerStatus:
        """Return a status of this archive's recording with what a quorum has confirmed."""
        found = self._ledgers.get(ledger)
        if found is None:
            return status
        # The counter shows what this archive has synced, not the quorum: clients send requests.
        return replace(
            status,
            confirmed_position=self.confirmed(ledger, status.confirmed_position),
            confirmed_counter_id=NULL_VALUE,
            members=tuple(link.status for link in found.links),
        )

    # ---- steps of requests --------------------------------------------------------------------

    def own_channel(self, ledger: QualifiedId) -> str:
        """Return the channel by which mirrors reach this archive (ConfigurationError: none)."""
        return self._elections.own_channel(ledger)

    def create(self, metadata: LedgerMetadata) -> Task[LedgerMetadata]:
        """Create a ledger in its mirrors, as `Creation.create`; return what to store here."""
        return self._creation.create(metadata, self._timeout_ns)

    def discard(self, metadata: LedgerMetadata) -> Task[None]:
        """Remove a ledger from its mirrors that was not created here."""
        return self._creation.discard(metadata, metadata.mirrors)

    def lead(
        self, metadata: LedgerMetadata, *, serves: bool = True, may_fence: bool = True
    ) -> Task[LedgerMetadata]:
        """Take over the log of a ledger without a writer here; raises as `Elections.lead`.

        Nothing is done for a ledger without mirrors.

        Args:
            serves: whether to serve a writer. Else this connects to the mirrors, maybe with fewer
                members than that needs.
            may_fence: whether to take it over from a leader that is active.
        """
        if not metadata.mirrors:
            return metadata
        self._disconnect(metadata.ledger)
        timeout_ns = self._timeout_ns // 2 if not serves else self._timeout_ns
        metadata, members = yield from self._elections.lead(
            metadata, timeout_ns, may_fence=may_fence, serves=serves
        )
        yield from self._prepare(metadata)
        if not serves:
            self._connect(metadata).electors = members
        return metadata

    def _prepare(self, metadata: LedgerMetadata) -> Task[None]:
        """Note that this archive is elected, and what it knows to be confirmed then."""
        carried = yield from self._recordings.confirmed_end(metadata)
        self._prepared[metadata.ledger] = metadata.replica.adopted, carried

    def is_prepared(self, metadata: LedgerMetadata) -> bool:
        """Whether nothing is in the log yet of the epoch in which this archive leads a ledger."""
        epoch, replica = self._epoch(metadata.ledger), metadata.replica
        end = self._recordings.end(metadata)
        return replica.promised == epoch and replica.history[-1:] == ((epoch, end),)

    def _epoch(self, ledger: QualifiedId) -> Epoch | None:
        """Return the epoch in which this archive leads a ledger; None: it does not."""
        return self._prepared[ledger][0] if ledger in self._prepared else None

    def start(self, writer: WriterRecording) -> Task[None]:
        """Connect to the mirrors of a ledger for a writer; wait for those that are necessary.

        Without them the writer is stopped.

        Raises:
            LedgerError: not enough mirrors have responded in time.
        """
        metadata = writer.metadata
        if not metadata.mirrors:
            return
        try:
            if self._epoch(metadata.ledger) != metadata.replica.adopted:
                raise fenced(metadata.ledger, metadata.replica.promised)
            found = self._connect(metadata, writer)
            begin = metadata.replica.history[-1][1]
            found.sync(begin)

            def serves() -> bool:
                own = self._recordings.positions(metadata).confirmed_position
                return found.has_quorum and found.leadership.confirmed(own) >= begin

            yield from self._await_quorum(found, serves)
        except Exception:
            # The links would connect again until the mirrors respond.
            self._disconnect(metadata.ledger)
            yield from self._recordings.stop_writer(writer)
            raise

    def finds_confirmed(self, metadata: LedgerMetadata) -> bool:
        """Whether `find_confirmed` has to be called before positions of a ledger are returned."""
        return (
            self.is_unknown(metadata)
            and not metadata.is_closed
            and metadata.recording_id != NULL_VALUE
            and metadata.replica.own == metadata.replica.promised[1]
            and time.monotonic_ns() >= self._retry_ns.get(metadata.ledger, 0)
        )

    def is_unknown(self, metadata: LedgerMetadata) -> bool:
        """Whether this archive has led a ledger, and does not know what is confirmed of it."""
        return (
            bool(metadata.mirrors)
            and metadata.replica.own == metadata.replica.adopted[1]
            and metadata.ledger not in self._ledgers
            and self._recordings.session(metadata.recording_id) is None
        )

    def find_confirmed(self, metadata: LedgerMetadata) -> Task[None]:
        """Lead a ledger without a writer again that this archive has led, after a restart.

        What was confirmed is known then. While too few members respond, or if another archive leads
        the ledger, it is what the entries carry.
        """
        try:
            metadata, _ = yield from self._elections.lead(
                metadata, self._lookup_timeout_ns, may_fence=False
            )
        except (ArchiveError, ConfigurationError):
            self._retry_ns[metadata.ledger] = time.monotonic_ns() + _RETRY_NS
            return
        yield from self._prepare(metadata)
        limit = self._recordings.end(metadata)
        found = self._connect(metadata)
        found.end(limit)
        if metadata.is_closed:
            self._tasks.start(self._decide(found))
        yield from _wait(
            lambda: found.leadership.confirmed(limit) >= limit, self._lookup_timeout_ns
        )

    def sync(self, ledger: QualifiedId, position: int) -> Task[int]:
        """Have the mirrors sync up to a position, too; return what is confirmed of it."""
        found = self._ledgers.get(ledger)
        if found is not None:
            found.sync(position)
            yield from _wait(
                lambda: found.leadership.confirmed(position) >= position, self._timeout_ns
            )
        return self.confirmed(ledger, position)

    def replace(
        self, metadata: LedgerMetadata, mirror: str, replacement: str, *, is_lost: bool
    ) -> Task[None]:
        """Have another archive mirror a ledger.

        Both are members until a quorum of the old and of the new group have the log and know the
        new group. A mirror that is lost for good is not waited for.

        Raises:
            LedgerError: mirrors of this ledger cannot be replaced.
            ConfigurationError: `mirror` is not one of its mirrors, or `replacement` is.
        """
        ledger, mirrors = metadata.ledger, metadata.mirrors
        if metadata.type is not LedgerType.PD_JOURNAL:
            raise LedgerError(
                f"mirrors of ledger {ledger} cannot be replaced: only those of a PD_JOURNAL"
                " ledger can",
                ledger,
            )
        if metadata.is_closed:
            raise LedgerClosedError(f"ledger {ledger} is closed", ledger)
        if mirror not in mirrors or replacement in metadata.replica.members:
            raise ConfigurationError(
                f"{mirror!r} cannot be replaced by {replacement!r}: the mirrors of ledger"
                f" {ledger} are {', '.join(mirrors) or 'none'}",
                "mirror",
            )
        found = self._ledgers.get(ledger)
        if found is None or found.writer is None:
            metadata = yield from self.lead(metadata, serves=not is_lost)
            found = self._ledgers.get(ledger) or self._connect(metadata)
            found.end(self._recordings.end(metadata))
        replica = found.metadata.replica
        if len(replica.groups) > 1:
            raise LedgerError(
                f"a mirror of ledger {ledger} is being replaced already: wait until it has the"
                " ledger",
                ledger,
            )
        (old,) = replica.groups
        new = _replaced(old, mirror, replacement)
        yield from self._set_groups(found, (new,) if is_lost else (old, new))

    def _set_groups(self, found: LedLedger, groups: tuple[tuple[str, ...], ...]) -> Task[None]:
        """Store the groups of a ledger, and connect to their members."""
        metadata = found.metadata
        epoch, number = metadata.replica.adopted, metadata.replica.version[1]
        replica = replace(metadata.replica, groups=groups, version=(epoch, number + 1))
        yield from self._recordings.store_replica(metadata, replica, is_closed=False)
        found.metadata = metadata = replace(metadata, replica=replica)
        if found.writer is not None:
            found.writer.metadata = metadata
        for link in list(found.links):
            if link.channel not in replica.members:
                found.remove(link)
        known = {link.channel for link in found.links}
        for channel in replica.members:
            if channel != replica.own and channel not in known:
                found.add(self._link(channel, metadata))
        if len(groups) > 1:
            self._tasks.start(self._agree(found))

    def _agree(self, found: LedLedger) -> Task[None]:
        """End the replacement of a mirror once a quorum of both groups has agreed."""
        while not found.leadership.has_agreed(
            self._recordings.positions(found.metadata).confirmed_position
        ):
            if self._ledgers.get(found.metadata.ledger) is not found or found.is_closing:
                return
            yield Pause()
        try:
            yield from self._set_groups(found, found.metadata.replica.groups[1:])
        except AerotapeError as error:
            self._errors.record("mirror of a ledger not replaced", error)

    def hold(self, ledger: QualifiedId) -> None:
        """Stay connected to the mirrors of a ledger that ends, until it is closed in them."""
        found = self._ledgers.get(ledger)
        if found is not None:
            found.hold()

    def leads(self, ledger: QualifiedId) -> bool:
        """Whether this archive leads a ledger, and is connected to its mirrors."""
        found = self._ledgers.get(ledger)
        return found is not None and found.is_active

    def await_end(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Wait until a quorum has all of a ledger that this archive leads (LedgerError).

        Args:
            position: where its recording has ended, bytes.
        """
        if not metadata.mirrors:
            return
        found = self._ledgers.get(metadata.ledger)
        if found is None or not found.is_active:
            found = self._connect(metadata)
        found.end(position)
        found.hold()
        yield from self._await_quorum(
            found,
            lambda: (
                found.leadership.confirmed(position) >= position
                or (found.has_few and found.have_electors(lambda link: link.is_at_end))
            ),
        )

    def close_mirrors(self, metadata: LedgerMetadata) -> Task[None]:
        """Close a ledger, which is closed here, in its mirrors; wait for a quorum (LedgerError).

        If fewer members have elected this archive, these are waited for; the others close it once
        they return.
        """
        found = self._ledgers.get(metadata.ledger)
        if found is None:
            return
        found.close()
        yield from self._await_quorum(
            found,
            lambda: (
                found.leadership.is_closed
                or (found.has_few and found.have_electors(lambda link: link.report.has_closed))
            ),
        )
        if found.leadership.is_closed:
            yield from self._decide(found)
        else:
            self._tasks.start(self._decide(found))

    def _decide(self, found: LedLedger) -> Task[None]:
        """Store that a ledger is closed for good once a quorum has closed it."""
        while not found.leadership.is_closed:
            if self._ledgers.get(found.metadata.ledger) is not found:
                return
            yield Pause()
        replica = replace(found.metadata.replica, is_decided=True)
        try:
            yield from self._recordings.store_replica(found.metadata, replica, is_closed=True)
        except AerotapeError as error:
            # Another recovery finds the end, and decides it.
            self._errors.record("end of a ledger not stored as decided", error)
            return
        found.metadata = replace(found.metadata, replica=replica)

    def _await_quorum(self, found: LedLedger, is_enough: Callable[[], bool]) -> Task[None]:
        ledger = found.metadata.ledger

        def is_over() -> bool:
            return self._ledgers.get(ledger) is not found or is_enough()

        is_in_time = yield from _wait(is_over, self._timeout_ns)
        if self._ledgers.get(ledger) is not found:
            raise fenced(ledger, found.metadata.replica.promised)
        if not is_in_time:
            raise LedgerError(
                f"ledger {ledger} has no ack quorum of {found.metadata.ack_quorum} archives:"
                f" {found.problem()}",
                ledger,
            )

    # ---- connections --------------------------------------------------------------------------

    def _connect(
        self, metadata: LedgerMetadata, writer: WriterRecording | None = None
    ) -> LedLedger:
        """Connect to the mirrors of a ledger, which this archive leads; again if they are."""
        self._disconnect(metadata.ledger)
        replica = metadata.replica
        links = [self._link(each, metadata) for each in replica.members if each != replica.own]
        _, confirmed = self._prepared.get(metadata.ledger, (None, NULL_POSITION))
        found = LedLedger(metadata, links, writer, confirmed)
        self._ledgers[metadata.ledger] = found
        if metadata.is_closed:
            # Where the epoch of this archive is adopted, so is the end.
            found.end(self._recordings.end(metadata))
            found.close()
        if len(replica.groups) > 1:
            self._tasks.start(self._agree(found))
        return found

    def _disconnect(self, ledger: QualifiedId) -> LedLedger | None:
        """Disconnect from the mirrors of a ledger, which is returned, if they are connected."""
        found = self._ledgers.pop(ledger, None)
        if found is not None:
            found.disconnect()
        return found

    def _link(self, channel: str, metadata: LedgerMetadata) -> MirrorLink:
        # An archive without mirrors starts without the client, which this imports.
        from aerotape.archive.features.ledger.mirrors.link import MirrorLink

        ledger = metadata.ledger
        return MirrorLink(
            channel,
            ledger,
            metadata.type,
            opening=lambda: self._opening(channel),
            replica=lambda: self._ledgers[ledger].metadata.replica,
            archive_ids=lambda: self._archive_ids(self._ledgers[ledger]),
            request=lambda step, position: self._request(ledger, channel, step, position),
            may_return=metadata.type is LedgerType.PD_JOURNAL,
        )

    def _archive_ids(self, mirrored: LedLedger) -> dict[str, int]:
        own = mirrored.metadata.replica.own
        links = {
            link.channel: link.archive_id for link in mirrored.links if link.archive_id is not None
        }
        return {own: self._archive_id, **links}

    def _request(
        self, ledger: QualifiedId, channel: str, step: MirrorStep, position: int
    ) -> MirrorLedgerRequest:
        metadata = self._ledgers[ledger].metadata
        if position == NULL_POSITION:
            begin = metadata.replica.history[-1][1]
            position = max(self._recordings.end(metadata), begin)
        return mirror_request(
            metadata,
            step,
            replace(metadata.replica, own=channel),
            source=(metadata.replica.own, self._control_stream_id),
            recorded_position=position,
        )


def _replaced(group: Group, member: str, replacement: str) -> Group:
    """Return a group with another member in the place of one."""
    return tuple(replacement if each == member else each for each in group)


def _wait(is_enough: Callable[[], bool], timeout_ns: int) -> Task[bool]:
    """Return whether something was true in time."""
    deadline_ns = time.monotonic_ns() + timeout_ns
    while not is_enough():
        if time.monotonic_ns() >= deadline_ns:
            return False
        yield Pause()
    return True
