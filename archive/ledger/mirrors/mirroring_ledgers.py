"""Ledgers on several archives: this one leads some and mirrors others.

A leader records its writer's stream, and each mirror replicates that recording. What is confirmed,
and acknowledged, follows from the positions of all of them by the quorum rule. A mirror that fails
ends the writer's recording, except for PD_JOURNAL: there it may return, and catches up first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from aerotape.archive.agent import SOON_NS
from aerotape.archive.ledger.ledgers import Ledgers
from aerotape.archive.ledger.mirrors.followers import Followers, MirrorSource, Truncate
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.errors import (
    ConfigurationError,
    LedgerClosedError,
    LedgerError,
    UnknownLedgerError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.background_tasks import Task
    from aerotape.archive.ledger.attachment import Attachment, Client
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.ledger.mirrors.led_ledgers import MirroredLedger, Mirrors
    from aerotape.archive.ledger.status import LedgerStatus
    from aerotape.archive.recording.recording_session import RecordingSession
    from aerotape.archive.replication.replications import Replications
    from aerotape.qualified_id import QualifiedId


class MirroringLedgers(Ledgers):
    """All ledgers of an archive, with those on several archives. For the conductor's thread."""

    def __init__(
        self,
        *,
        replications: Replications,
        truncate: Truncate,
        control_channel: str | None,
        control_stream_id: int,
        **options: Any,
    ) -> None:
        """Create the service, not connected to any archive.

        Args:
            truncate: ends a recording at a position.
            control_channel: by which mirrors reach this archive; None: they cannot.
            options: as of `Ledgers`.
        """
        super().__init__(**options)
        self._replications = replications
        self._control_channel = control_channel
        self._control_stream_id = control_stream_id
        self._followers = Followers(replications, self._worker, truncate, self._settled)
        # Loaded with the first ledger that has mirrors, as it brings the whole client.
        self._mirrors: Mirrors | None = None
        # The writer for which the mirrors of a ledger were connected.
        self._connected_for: dict[QualifiedId, Attachment] = {}

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: also while mirrors are connected."""
        is_active = self._mirrors is not None and self._mirrors.is_active
        return SOON_NS if is_active else super().wants_within_ns

    def do_work(self) -> None:
        """Advance requests and mirrors by one step."""
        if self._mirrors is not None:
            self._mirrors.do_work()
            for ledger, writer in self._writers.items():
                mirrored = self._mirrors.get(ledger)
                if mirrored is None or self._connected_for.get(ledger) is not writer:
                    continue
                if writer.stop_position is not None:
                    mirrored.stopped(writer.stop_position)
                    del self._connected_for[ledger]
                elif mirrored.failure is not None and not writer.failure:
                    self._fail(writer, mirrored.failure)
        super().do_work()

    def close(self) -> None:
        """Disconnect from the mirrors, cancel requests and close the database."""
        if self._mirrors is not None:
            self._mirrors.close()
        super().close()

    def _fail(self, writer: Attachment, failure: str) -> None:
        """End a writer whose mirror has failed and cannot be replaced."""
        writer.on_failed(ErrorCode.GENERIC, failure)
        self._recordings.stop_identity(writer.recording_id)

    # ---- this archive mirrors -----------------------------------------------------------------

    def mirror(
        self,
        client: Client,
        correlation_id: int,
        metadata: LedgerMetadata,
        source: MirrorSource,
    ) -> None:
        """Replicate a ledger that another archive leads; OK once that has begun."""
        ledger = metadata.ledger

        def task() -> Task[None]:
            is_new = False
            try:
                known = yield from self._metadata(ledger)
            except UnknownLedgerError:
                known, is_new = metadata, True
                yield from self._worker.create()
            if known.is_closed:
                raise LedgerClosedError(f"ledger {ledger} is closed in its mirror", ledger)
            same = replace(known, recording_id=NULL_VALUE, created_ms=metadata.created_ms)
            if same != metadata:
                different = ", ".join(
                    each.name.replace("_", " ")
                    for each in fields(metadata)
                    if getattr(same, each.name) != getattr(metadata, each.name)
                )
                raise LedgerError(
                    f"the mirror has a ledger {ledger} of another kind ({different}) already:"
                    " delete it in the mirror's archive",
                    ledger,
                )
            if ledger in self._writers:
                self._check_no_writer(known)
            self._marks.pop(known.recording_id, None)
            yield from self._followers.follow(known, source, is_new=is_new)
            self._forced.discard(known.recording_id)
            client.send_ok(correlation_id, known.recording_id)

        self._requests.begin(client, correlation_id, task(), changes=ledger)

    # ---- this archive leads -------------------------------------------------------------------

    def replace_mirror(
        self,
        client: Client,
        correlation_id: int,
        ledger: QualifiedId,
        mirror: str,
        replacement: str,
    ) -> None:
        """Mirror a ledger on another archive; OK once that is on storage.

        `mirror` and `replacement` are control channels.
        """

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            if metadata.type is not LedgerType.PD_JOURNAL:
                raise LedgerError(
                    f"mirrors of ledger {ledger} cannot be replaced: only those of a PD_JOURNAL"
                    " ledger can",
                    ledger,
                )
            if metadata.is_closed:
                raise LedgerClosedError(f"ledger {ledger} is closed", ledger)
            mirrors = metadata.mirrors
            if mirror not in mirrors or replacement in mirrors:
                raise ConfigurationError(
                    f"{mirror!r} cannot be replaced by {replacement!r}: the mirrors of ledger"
                    f" {ledger} are {', '.join(mirrors) or 'none'}",
                    "mirror",
                )
            changed = tuple(replacement if each == mirror else each for each in mirrors)
            yield from self._worker.change(lambda store: store.set_mirrors(ledger, changed))
            writer = self._writers.get(ledger)
            if writer is not None:
                writer.metadata = replace(writer.metadata, mirrors=changed)
            if self._mirrors is not None:
                self._mirrors.replace(ledger, mirror, replacement)
            client.send_ok(correlation_id)

        self._requests.begin(client, correlation_id, task(), changes=ledger)

    def _connected(self, metadata: LedgerMetadata, confirmed: int) -> MirroredLedger:
        """Connect to the mirrors of a ledger, also if they are connected (see `Mirrors.begin`)."""
        if self._mirrors is None:
            from aerotape.archive.ledger.mirrors.led_ledgers import Mirrors

            if self._control_channel is None:
                raise ConfigurationError(
                    f"ledger {metadata.ledger} has mirrors, which cannot reach this archive: set"
                    " aeron.archive.control.channel to a channel with an endpoint",
                    "aeron.archive.control.channel",
                )
            self._mirrors = Mirrors(
                self._replications.open_mirror,
                self._control_channel,
                self._control_stream_id,
                self._errors,
            )
        return self._mirrors.begin(metadata, confirmed)

    def _mirrored(self, ledger: QualifiedId) -> MirroredLedger | None:
        return None if self._mirrors is None else self._mirrors.get(ledger)

    def _started(self, writer: Attachment, metadata: LedgerMetadata, *args: Any) -> Task[None]:
        """Also connect to the mirrors, and wait for those that are necessary."""
        yield from super()._started(writer, metadata, *args)
        if not metadata.mirrors:
            return
        try:
            mirrored = self._connected(writer.metadata, NULL_POSITION)
            self._connected_for[metadata.ledger] = writer
            yield from self._within_time(lambda: mirrored.has_quorum, mirrored)
        except Exception:
            # They would be connected to again until they respond.
            self._connected_for.pop(metadata.ledger, None)
            if self._mirrors is not None:
                self._mirrors.end(metadata.ledger)
            self._recordings.stop_identity(writer.recording_id)
            while writer.is_active:
                yield
            raise

    def _within_time(self, is_enough: Callable[[], bool], mirrored: MirroredLedger) -> Task[None]:
        """Wait for mirrors, less long than a client waits for the response (LedgerError)."""
        deadline_ns = time.monotonic_ns() + self._connect_timeout_ns * 4 // 5
        while not is_enough():
            if time.monotonic_ns() >= deadline_ns:
                ledger = mirrored.metadata.ledger
                raise LedgerError(
                    f"ledger {ledger} has no ack quorum of {mirrored.metadata.ack_quorum}"
                    f" archives: {mirrored.problem()}",
                    ledger,
                )
            yield

    def _reached(
        self, metadata: LedgerMetadata, session: RecordingSession, is_confirmed: bool
    ) -> int:
        mirrored = self._mirrored(metadata.ledger)
        if mirrored is None:
            return super()._reached(metadata, session, is_confirmed)
        if is_confirmed:
            return mirrored.confirmed(session.confirmed_position)
        return mirrored.acknowledged(session.position, session.confirmed_position)

    def _shown(self, metadata: LedgerMetadata, status: LedgerStatus) -> LedgerStatus:
        mirrored = self._mirrored(metadata.ledger)
        if mirrored is None:
            return status
        # A counter of this archive alone would confirm too much.
        return replace(
            status,
            confirmed_position=max(0, mirrored.confirmed(status.confirmed_position)),
            confirmed_counter_id=NULL_VALUE,
        )

    def _status(self, metadata: LedgerMetadata, *, with_entries: bool = True) -> Task[LedgerStatus]:
        is_open = metadata.recording_id != NULL_VALUE and not metadata.is_closed
        is_alone = self._session(metadata) is None and self._mirrored(metadata.ledger) is None
        if not (metadata.mirrors and is_open and is_alone):
            return (yield from super()._status(metadata, with_entries=with_entries))
        # What is confirmed is known once the mirrors have responded, before that from the entries.
        recording = yield from self._settled(metadata)
        limit = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.carried_end(limit))
        mirrored = self._connected(metadata, carried)
        mirrored.stopped(limit)
        deadline_ns = time.monotonic_ns() + self._connect_timeout_ns // 4
        while mirrored.confirmed(limit) < limit and time.monotonic_ns() < deadline_ns:
            yield
        return (yield from super()._status(metadata, with_entries=with_entries))

    def _synced(self, metadata: LedgerMetadata, position: int) -> Task[int]:
        """Have the mirrors sync up to a position, too; return what is confirmed."""
        mirrored = self._mirrored(metadata.ledger)
        if mirrored is None:
            return (yield from super()._synced(metadata, position))
        mirrored.sync(position)
        deadline_ns = time.monotonic_ns() + self._connect_timeout_ns * 4 // 5
        while mirrored.confirmed(position) < position and time.monotonic_ns() < deadline_ns:
            yield
        return max(0, mirrored.confirmed(position))

    def _closed(
        self, client: Client, correlation_id: int, ledger: QualifiedId, *, fences: bool = False
    ) -> Task[None]:
        """Also wait until an ack quorum has all, and close the ledger in the mirrors."""
        self._followers.stop(ledger)
        mirrored = self._mirrored(ledger)
        if mirrored is not None:
            mirrored.stay()
        yield from super()._closed(client, correlation_id, ledger, fences=fences)
        mirrored = self._mirrored(ledger)
        if mirrored is not None:
            mirrored.close()

    def _closing(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        yield from super()._closing(metadata, position)
        if not metadata.mirrors:
            return
        mirrored = self._mirrored(metadata.ledger)
        if mirrored is None or not mirrored.is_active:
            mirrored = self._connected(metadata, NULL_POSITION)
        mirrored.stopped(position)
        mirrored.stay()
        yield from self._within_time(lambda: mirrored.confirmed(position) >= position, mirrored)
