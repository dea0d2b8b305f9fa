"""The mirrors of the ledgers that this archive leads.

The leader records its writer's stream, and each mirror replicates that recording. What is confirmed
and acknowledged follows from the positions of all of them by the quorum rule. A mirror that fails
ends the writer's recording, except for PD_JOURNAL: there it may return, and catches up first.

The leader's own storage is always part of the ack quorum: no entry is confirmed that it does not
have, so a leader that comes back after a crash needs no mirror to have what it confirmed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from aerotape.archive.ledger.mirrors.mirrored_ledger import MirroredLedger
from aerotape.archive.waiting import Pause
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest
from aerotape.errors import ConfigurationError, LedgerClosedError, LedgerError
from aerotape.protocol import NULL_POSITION, NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.client.session.client_session import ClientSession
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.ledger.mirrors.link import MirrorLink
    from aerotape.archive.ledger.status import LedgerStatus
    from aerotape.archive.ledger.writer_recording import WriterRecording
    from aerotape.archive.waiting import Task
    from aerotape.qualified_id import QualifiedId

Opening = Callable[[str], "Task[ClientSession]"]
"""Returns the steps that open a session with the archive of a control channel."""


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
        opening: Opening,
        config: ArchiveConfig,
        errors: ErrorLog,
    ) -> None:
        """Create the service, without any ledger.

        Args:
            opening: returns the task that connects to a mirror.
            errors: receives what goes wrong with mirrors.
        """
        self._recordings = recordings
        self._worker = worker
        self._opening = opening
        # By which mirrors connect to this archive; None: they cannot.
        self._control_channel = config.control_channel if config.control_channel_enabled else None
        self._control_stream_id = config.control_stream_id
        # Less than clients wait for a response.
        self._timeout_ns = config.connect_timeout_ns * 4 // 5
        self._lookup_timeout_ns = config.connect_timeout_ns // 4
        self._errors = errors
        self._ledgers: dict[QualifiedId, MirroredLedger] = {}

    @property
    def is_active(self) -> bool:
        """Whether there is work to do."""
        return any(found.is_active for found in self._ledgers.values())

    def do_work(self) -> None:
        """Advance each link by one step; stop the writers whose mirrors have failed."""
        for found in self._ledgers.values():
            for link in found.links:
                before = link.failure
                link.do_work()
                if link.failure not in (before, None):
                    self._errors.record("mirror of a ledger failed", link.failure)
            writer = found.writer
            if writer is None:
                continue
            if writer.stop_position is not None:
                found.end(writer.stop_position)
            elif found.failure is not None and not writer.failure:
                self._recordings.fail_writer(writer, found.failure)

    def close(self) -> None:
        """Disconnect from all mirrors."""
        for ledger in list(self._ledgers):
            self._disconnect(ledger)

    # ---- positions ----------------------------------------------------------------------------

    def confirmed(self, ledger: QualifiedId, own: int) -> int:
        """Return up to where a quorum has synced a ledger; `own`: this archive has. Both bytes."""
        found = self._ledgers.get(ledger)
        return own if found is None else max(0, found.confirmed(own))

    def recorded(self, ledger: QualifiedId, own: int) -> int:
        """Return up to where a quorum has recorded a ledger; `own`: this archive has."""
        found = self._ledgers.get(ledger)
        return own if found is None else max(0, found.recorded(own))

    def with_quorum(self, ledger: QualifiedId, status: LedgerStatus) -> LedgerStatus:
        """Return a status of this archive's recording with what a quorum has confirmed."""
        if ledger not in self._ledgers:
            return status
        # A counter of this archive alone would confirm too much.
        return replace(
            status,
            confirmed_position=self.confirmed(ledger, status.confirmed_position),
            confirmed_counter_id=NULL_VALUE,
        )

    # ---- steps of requests --------------------------------------------------------------------

    def start(self, writer: WriterRecording) -> Task[None]:
        """Connect to the mirrors of a ledger for a writer; wait for those that are necessary.

        Without them the writer is stopped.

        Raises:
            LedgerError: not enough mirrors have responded in time.
            ConfigurationError: mirrors cannot reach this archive.
        """
        if not writer.metadata.mirrors:
            return
        try:
            found = self._connect(writer.metadata, NULL_POSITION, writer)
            yield from self._await_quorum(found, lambda: found.has_quorum)
        except Exception:
            # The links would connect again until the mirrors respond.
            self._disconnect(writer.metadata.ledger)
            yield from self._recordings.stop_writer(writer)
            raise

    def find_confirmed(self, metadata: LedgerMetadata) -> Task[None]:
        """Ask the mirrors of a ledger without a writer what is confirmed, once after the start.

        Until they respond that is what the entries carry.
        """
        if not metadata.mirrors or metadata.ledger in self._ledgers:
            return
        yield from self._recordings.await_known(metadata)
        if self._recordings.session(metadata.recording_id) is not None:
            return
        recording = self._recordings.recording(metadata)
        limit = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.carried_end(limit))
        found = self._ledgers.get(metadata.ledger)
        if found is None:
            found = self._connect(metadata, carried)
            found.end(limit)
        yield from _wait(lambda: found.confirmed(limit) >= limit, self._lookup_timeout_ns)

    def sync(self, ledger: QualifiedId, position: int) -> Task[int]:
        """Have the mirrors sync up to a position, too; return what is confirmed of it."""
        found = self._ledgers.get(ledger)
        if found is not None:
            found.sync(position)
            yield from _wait(lambda: found.confirmed(position) >= position, self._timeout_ns)
        return self.confirmed(ledger, position)

    def replace(self, metadata: LedgerMetadata, mirror: str, replacement: str) -> Task[None]:
        """Store that another archive mirrors a ledger, and connect to it if it is in use.

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
        if mirror not in mirrors or replacement in mirrors:
            raise ConfigurationError(
                f"{mirror!r} cannot be replaced by {replacement!r}: the mirrors of ledger"
                f" {ledger} are {', '.join(mirrors) or 'none'}",
                "mirror",
            )
        changed = tuple(replacement if each == mirror else each for each in mirrors)
        yield from self._worker.change(lambda store: store.set_mirrors(ledger, changed))
        writer = self._recordings.writer(ledger)
        if writer is not None:
            writer.metadata = replace(writer.metadata, mirrors=changed)
        found = self._ledgers.get(ledger)
        if found is None:
            return
        for index, link in enumerate(found.links):
            if link.channel == mirror:
                link.close()
                found.links[index] = self._link(replacement, found.metadata)
                found.links[index].end_position = link.end_position

    def hold(self, ledger: QualifiedId) -> None:
        """Stay connected to the mirrors of a ledger that ends, until it is closed in them."""
        found = self._ledgers.get(ledger)
        if found is not None:
            found.hold()

    def await_end(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Wait until a quorum has all of a ledger that ends at a position (LedgerError)."""
        if not metadata.mirrors:
            return
        found = self._ledgers.get(metadata.ledger)
        if found is None or not found.is_active:
            found = self._connect(metadata, NULL_POSITION)
        found.end(position)
        found.hold()
        yield from self._await_quorum(found, lambda: found.confirmed(position) >= position)

    def close_mirrors(self, ledger: QualifiedId) -> None:
        """Close a ledger in the mirrors that are connected."""
        found = self._ledgers.get(ledger)
        if found is not None:
            found.close()

    def _await_quorum(self, found: MirroredLedger, is_enough: Callable[[], bool]) -> Task[None]:
        if not (yield from _wait(is_enough, self._timeout_ns)):
            ledger = found.metadata.ledger
            raise LedgerError(
                f"ledger {ledger} has no ack quorum of {found.metadata.ack_quorum} archives:"
                f" {found.problem()}",
                ledger,
            )

    # ---- connections --------------------------------------------------------------------------

    def _connect(
        self, metadata: LedgerMetadata, confirmed: int, writer: WriterRecording | None = None
    ) -> MirroredLedger:
        """Connect to the mirrors of a ledger, which has a recording; again if they are connected.

        Args:
            confirmed: a position that is known to be confirmed, bytes.
        """
        if self._control_channel is None:
            raise ConfigurationError(
                f"ledger {metadata.ledger} has mirrors, which cannot reach this archive: set"
                " aeron.archive.control.channel to a channel with an endpoint",
                "aeron.archive.control.channel",
            )
        before = self._disconnect(metadata.ledger)
        if before is not None:
            confirmed = max(confirmed, before.last_confirmed)
        links = [self._link(channel, metadata) for channel in metadata.mirrors]
        found = MirroredLedger(metadata, links, confirmed, writer)
        self._ledgers[metadata.ledger] = found
        return found

    def _disconnect(self, ledger: QualifiedId) -> MirroredLedger | None:
        """Disconnect from the mirrors of a ledger, which is returned, if they are connected."""
        found = self._ledgers.pop(ledger, None)
        if found is not None:
            found.disconnect()
        return found

    def _link(self, channel: str, metadata: LedgerMetadata) -> MirrorLink:
        # An archive without mirrors starts without the client, which this imports.
        from aerotape.archive.ledger.mirrors.link import MirrorLink

        return MirrorLink(
            channel,
            metadata.ledger,
            metadata.type,
            opening=lambda: self._opening(channel),
            request=lambda: self._request(self._ledgers[metadata.ledger]),
            may_return=metadata.type is LedgerType.PD_JOURNAL,
        )

    def _request(self, mirrored: MirroredLedger) -> MirrorLedgerRequest:
        assert self._control_channel is not None, "checked when connecting"
        metadata = mirrored.metadata
        scope_id, ledger_id = metadata.ledger.signed
        return MirrorLedgerRequest(
            scope_id=scope_id,
            ledger_id=ledger_id,
            created_ms=metadata.created_ms,
            source_recording_id=metadata.recording_id,
            source_stream_id=self._control_stream_id,
            ledger_type=metadata.type,
            digest_type=metadata.digest_type,
            confirmed_position=mirrored.last_confirmed,
            recorded_position=self._recordings.positions(metadata).recorded_position,
            password_hash=metadata.password_hash,
            source_channel=self._control_channel,
        )


def _wait(is_enough: Callable[[], bool], timeout_ns: int) -> Task[bool]:
    """Return whether something was true in time."""
    deadline_ns = time.monotonic_ns() + timeout_ns
    while not is_enough():
        if time.monotonic_ns() >= deadline_ns:
            return False
        yield Pause()
    return True
