"""The role of an archive that was elected to lead a ledger, with its connections to the mirrors.

The leader records its writer's stream, and each mirror replicates that recording. What is confirmed
and acknowledged follows from the positions of all of them by the quorum rule. A mirror that fails
ends the writer's recording, except for PD_JOURNAL: there it may return, and catches up first. It
may return to any ledger without a writer, which is being closed or looked up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.metadata import fenced
from aerotape.archive.features.ledger.mirrors.members import mirror_request
from aerotape.archive.features.ledger.protocol.leadership import Leadership
from aerotape.archive.features.ledger.role import Role
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    LedgerClosedError,
    LedgerError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import BackgroundTasks, Pause

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger import Ledger
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.link import MirrorLink
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.archive.features.ledger.protocol.member_record import Group, MirrorStep
    from aerotape.archive.features.ledger.status import LedgerStatus
    from aerotape.archive.features.ledger.writer_recording import WriterRecording
    from aerotape.waiting import Task


@dataclass(frozen=True, kw_only=True)
class Connecting:
    """The connections between this archive and its mirrors.

    Attributes:
        opening: returns the task that connects to a mirror.
        archive_id: of this archive.
        control_stream_id: of this archive.
        timeout_ns: how long mirrors may take to respond.
        errors: receives what goes wrong with mirrors.
    """

    opening: Opening
    archive_id: int
    control_stream_id: int
    timeout_ns: int
    errors: ErrorLog


@dataclass(slots=True)
class Goal:
    """The state that a leader requests from all mirrors of a ledger.

    Attributes:
        end_position: the end of its recording, bytes, once that has stopped; else NULL_POSITION.
        sync_position: mirrors have to sync up to here; NULL_POSITION: nothing.
        stays: whether to stay connected to a mirror that is at the end.
        closes: whether mirrors have to close the ledger then.
    """

    end_position: int = NULL_POSITION
    sync_position: int = NULL_POSITION
    stays: bool = False
    closes: bool = False


class Leading(Role):
    """A ledger that this archive was elected to lead.

    It connects to the mirrors once it has a writer, is looked up or is being closed. A later leader
    ends it, here or in another archive: then its links and tasks are cancelled, and requests that
    wait for a quorum raise LedgerFencedError.

    Attributes:
        metadata: of the ledger, with its recording, as this archive leads it.
        leadership: what is confirmed.
        links: the mirrors, while this archive is connected to them.
        writer: the writer for which they are connected; None once it has stopped.
    """

    is_leading = True

    def __init__(
        self,
        ledger: Ledger,
        metadata: LedgerMetadata,
        confirmed: int,
        connecting: Connecting,
    ) -> None:
        """Create it, without connections.

        Args:
            confirmed: up to where the entries show that the log is confirmed, bytes.
        """
        self._ledger = ledger
        self._log = ledger.log
        self._epoch = metadata.member_record.adopted
        self._carried = confirmed
        self._connecting = connecting
        self._tasks = BackgroundTasks()
        self._metadata = metadata
        # The members that have elected this archive to close the ledger.
        self._electors: frozenset[str] = frozenset()
        self.leadership = Leadership(metadata.member_record, metadata.quorums, confirmed)
        self.links: list[MirrorLink] = []
        self.writer: WriterRecording | None = None
        self.is_connected = False
        self._goal = Goal()

    @property
    def metadata(self) -> LedgerMetadata:
        return self._metadata

    @metadata.setter
    def metadata(self, metadata: LedgerMetadata) -> None:
        self._metadata, self.leadership.member_record = metadata, metadata.member_record

    @property
    def has_links(self) -> bool:
        """Whether the mirrors are not at the end yet."""
        return not all(link.is_done for link in self.links)

    @property
    def can_close(self) -> bool:  # type: ignore[override]
        is_in_progress = not any(link.is_done for link in self.links)
        return bool(self.links) and is_in_progress and self.leadership.has_quorum(of_all=False)

    @property
    def is_active(self) -> bool:  # type: ignore[override]
        return bool(self._tasks) or self.has_links

    def do_work(self) -> None:
        """Advance each link by one step; stop the writer whose mirrors have failed."""
        self._tasks.do_work()
        for link in self.links:
            before = link.failure
            link.do_work()
            if link.failure not in (before, None):
                self._connecting.errors.record("mirror of a ledger failed", link.failure)
        writer, failure = self.writer, self._failure
        if any(link.is_fenced for link in self.links):
            self._ledger.depose()
        elif writer is None:
            return
        elif writer.stop_position is not None:
            self.end(writer.stop_position)
        elif failure is not None and not writer.failure:
            self._log.fail_writer(writer, failure)

    # ---- connections --------------------------------------------------------------------------

    def connect(
        self,
        metadata: LedgerMetadata,
        writer: WriterRecording | None = None,
        electors: frozenset[str] = frozenset(),
    ) -> None:
        """Connect to the mirrors; again if they are.

        Args:
            writer: for which they are connected.
            electors: the members that have elected this archive to close the ledger.
        """
        self.disconnect()
        member_record = metadata.member_record
        self._metadata, self.writer, self._electors = metadata, writer, electors
        self.leadership = Leadership(member_record, metadata.quorums, self._carried)
        self._goal, self.is_connected = Goal(), True
        for channel in member_record.members:
            if channel != member_record.own:
                self._add(channel)
        if metadata.is_closed:
            # Where the epoch of this archive is adopted, so is the end.
            self.end(self._log.end(metadata))
            self._goal.closes = True
        if len(member_record.groups) > 1:
            self._tasks.start(self._agree())

    def disconnect(self) -> None:
        """Disconnect from the mirrors; their recordings end. Idempotent."""
        self.is_connected = False
        self._tasks.close()
        while self.links:
            self.links.pop().close()

    def close(self) -> None:
        """End the role. Idempotent."""
        self.is_leading = False
        self.disconnect()

    def _add(self, channel: str) -> None:
        link = self._link(channel)
        self.links.append(link)
        self.leadership.reports[channel] = link.report

    def _link(self, channel: str) -> MirrorLink:
        # An archive without mirrors starts without the client, which this imports.
        from aerotape.archive.features.ledger.mirrors.link import MirrorLink

        return MirrorLink(
            channel,
            self._ledger.id,
            self.metadata.type,
            self._goal,
            opening=lambda: self._connecting.opening(channel),
            member_record=lambda: self.metadata.member_record,
            archive_ids=self._archive_ids,
            request=lambda step, position: self._request(channel, step, position),
            may_return=lambda: self.writer is None or self.metadata.type is LedgerType.PD_JOURNAL,
        )

    def _archive_ids(self) -> dict[str, int]:
        links = {
            link.channel: link.archive_id for link in self.links if link.archive_id is not None
        }
        return {self.metadata.member_record.own: self._connecting.archive_id, **links}

    def _request(self, channel: str, step: MirrorStep, position: int) -> MirrorLedgerRequest:
        metadata = self.metadata
        if position == NULL_POSITION:
            begin = metadata.member_record.history[-1][1]
            position = max(self._log.end(metadata), begin)
        return mirror_request(
            metadata,
            step,
            replace(metadata.member_record, own=channel),
            source=(metadata.member_record.own, self._connecting.control_stream_id),
            recorded_position=position,
        )

    # ---- positions ----------------------------------------------------------------------------

    def confirmed(self, own: int) -> int:
        return max(0, self.leadership.confirmed(own)) if self.is_connected else own

    def recorded(self, own: int) -> int:
        return max(0, self.leadership.recorded(own)) if self.is_connected else own

    def status(self, own: LedgerStatus) -> LedgerStatus:
        if not self.is_connected:
            return own
        # The counter shows what this archive has synced, not the quorum: clients send requests.
        return replace(
            own,
            confirmed_position=self.confirmed(own.confirmed_position),
            confirmed_counter_id=NULL_VALUE,
            members=tuple(link.status for link in self.links),
        )

    # ---- a writer -----------------------------------------------------------------------------

    def is_prepared(self, metadata: LedgerMetadata) -> bool:
        if metadata.is_closed:
            return False  # this archive has led it to close it
        epoch, member_record = self._epoch, metadata.member_record
        end = self._log.end(metadata)
        return member_record.promised == epoch and member_record.history[-1:] == ((epoch, end),)

    def start(self, writer: WriterRecording) -> Task[None]:
        metadata = writer.metadata
        if not self.is_leading or self._epoch != metadata.member_record.adopted:
            raise fenced(metadata.ledger, metadata.member_record.promised)
        begin = metadata.member_record.history[-1][1]

        def serves() -> bool:
            own = self._log.positions(metadata).confirmed_position
            return self._has_quorum and self.leadership.confirmed(own) >= begin

        try:
            self.connect(metadata, writer)
            self._sync(begin)
            yield from self._await_quorum(serves)
        except Exception:
            # The links would connect again until the mirrors respond.
            self.disconnect()
            raise

    def sync(self, metadata: LedgerMetadata, position: int) -> Task[int]:
        self._sync(position)
        yield from self.await_confirmed(position, self._connecting.timeout_ns)
        self._check_leads()
        return max(0, self.leadership.confirmed(position))

    def await_confirmed(self, position: int, timeout_ns: int) -> Task[None]:
        """Wait until a quorum has the log up to where this archive has it, or for a time."""
        yield from self._wait(lambda: self.leadership.confirmed(position) >= position, timeout_ns)

    def _sync(self, position: int) -> None:
        self._goal.sync_position = max(self._goal.sync_position, position)

    @property
    def _has_quorum(self) -> bool:
        """Whether enough mirrors have the log: all, or for PD_JOURNAL a quorum."""
        return self.leadership.has_quorum(of_all=self.metadata.type is LedgerType.VD_JOURNAL)

    @property
    def _failure(self) -> str | None:
        """The failure of a mirror that cannot be replaced; None: none has failed."""
        return next((link.failure for link in self.links if link.has_failed), None)

    # ---- the end ------------------------------------------------------------------------------

    def end(self, position: int) -> None:
        """Take the end of this archive's recording; links end when mirrors are there."""
        self.writer = None
        self._goal.end_position = position
        self._sync(position)

    def hold(self) -> None:
        self._goal.stays = True

    def await_end(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        self._check_leads()
        if not self.has_links:
            self.connect(metadata)
        self.end(position)
        self.hold()
        yield from self._await_quorum(
            lambda: (
                self.leadership.confirmed(position) >= position
                or (self._has_few and self._have_electors(lambda link: link.is_at_end))
            ),
        )

    def close_mirrors(self, metadata: LedgerMetadata) -> Task[None]:
        self._goal.closes = True
        yield from self._await_quorum(
            lambda: (
                self.leadership.is_closed
                or (self._has_few and self._have_electors(lambda link: link.report.has_closed))
            ),
        )
        if self.leadership.is_closed:
            yield from self._decide()
        else:
            self.begin_to_decide()

    def begin_to_decide(self) -> None:
        """Store that the ledger is closed for good as soon as a quorum has closed it."""
        self._tasks.start(self._decide())

    def _decide(self) -> Task[None]:
        while not self.leadership.is_closed:
            yield Pause()
        member_record = replace(self.metadata.member_record, is_decided=True)
        try:
            yield from self._log.store_member_record(self.metadata, member_record, is_closed=True)
        except AerotapeError as error:
            # Another recovery finds the end, and decides it.
            self._connecting.errors.record("end of a ledger not stored as decided", error)
            return
        self.metadata = replace(self.metadata, member_record=member_record)

    @property
    def _has_few(self) -> bool:
        """Whether this archive was elected to close the ledger by fewer members than a quorum."""
        return bool(self._electors) and not self.leadership.is_quorum(self._electors)

    def _have_electors(self, condition: Callable[[MirrorLink], bool]) -> bool:
        """Whether a condition holds for the mirrors that have elected this archive."""
        return all(condition(link) for link in self.links if link.channel in self._electors)

    def _await_quorum(self, is_enough: Callable[[], bool]) -> Task[None]:
        is_in_time = yield from self._wait(is_enough, self._connecting.timeout_ns)
        self._check_leads()
        if not is_in_time:
            raise LedgerError(
                f"ledger {self._ledger.id} has no ack quorum of {self.metadata.ack_quorum}"
                f" archives: {self._problem()}",
                self._ledger.id,
            )

    def _wait(self, is_enough: Callable[[], bool], timeout_ns: int) -> Task[bool]:
        """Return whether something was true in time, and while this archive leads the ledger."""
        deadline_ns = time.monotonic_ns() + timeout_ns
        while self.is_leading and not is_enough():
            if time.monotonic_ns() >= deadline_ns:
                return False
            yield Pause()
        return self.is_leading

    def _check_leads(self) -> None:
        if not self.is_leading:
            raise fenced(self._ledger.id, self.metadata.member_record.promised)

    def _problem(self) -> str:
        """Return the reason why it has no quorum."""
        problems = [
            link.failure or f"mirror {link.channel} does not respond"
            for link in self.links
            if not link.report.has_adopted
        ]
        return "; ".join(problems) or "the mirrors have not confirmed"

    # ---- other mirrors ------------------------------------------------------------------------

    def replace(self, mirror: str, replacement: str, *, is_lost: bool) -> Task[None]:
        """Have another archive mirror the ledger, as `Leader.replace`; it is connected."""
        member_record = self.metadata.member_record
        if len(member_record.groups) > 1:
            raise LedgerError(
                f"a mirror of ledger {self._ledger.id} is being replaced already: wait until it has"
                " the ledger",
                self._ledger.id,
            )
        (old,) = member_record.groups
        new = _replaced(old, mirror, replacement)
        yield from self._set_groups((new,) if is_lost else (old, new))

    def _set_groups(self, groups: tuple[Group, ...]) -> Task[None]:
        """Store the groups of the ledger, and connect to their members."""
        metadata = self.metadata
        epoch, number = metadata.member_record.adopted, metadata.member_record.version[1]
        member_record = replace(metadata.member_record, groups=groups, version=(epoch, number + 1))
        yield from self._log.store_member_record(metadata, member_record, is_closed=False)
        self.metadata = metadata = replace(metadata, member_record=member_record)
        if self.writer is not None:
            self.writer.metadata = metadata
        for link in list(self.links):
            if link.channel not in member_record.members:
                link.close()
                self.links.remove(link)
                del self.leadership.reports[link.channel]
        known = {link.channel for link in self.links}
        for channel in member_record.members:
            if channel != member_record.own and channel not in known:
                self._add(channel)
        if len(groups) > 1:
            self._tasks.start(self._agree())

    def _agree(self) -> Task[None]:
        """End the replacement of a mirror once a quorum of both groups has agreed."""
        while not self.leadership.has_agreed(
            self._log.positions(self.metadata).confirmed_position
        ):
            if self._goal.closes:
                return
            yield Pause()
        try:
            yield from self._set_groups(self.metadata.member_record.groups[1:])
        except AerotapeError as error:
            self._connecting.errors.record("mirror of a ledger not replaced", error)


def check_replacement(metadata: LedgerMetadata, mirror: str, replacement: str) -> None:
    """Refuse to replace a mirror of a ledger by another archive.

    Raises:
        LedgerError: mirrors of this ledger cannot be replaced.
        ConfigurationError: `mirror` is not one of its mirrors, or `replacement` is.
    """
    ledger, mirrors = metadata.ledger, metadata.mirrors
    if metadata.type is not LedgerType.PD_JOURNAL:
        raise LedgerError(
            f"mirrors of ledger {ledger} cannot be replaced: only those of a PD_JOURNAL ledger can",
            ledger,
        )
    if metadata.is_closed:
        raise LedgerClosedError(f"ledger {ledger} is closed", ledger)
    if mirror not in mirrors or replacement in metadata.member_record.members:
        raise ConfigurationError(
            f"{mirror!r} cannot be replaced by {replacement!r}: the mirrors of ledger"
            f" {ledger} are {', '.join(mirrors) or 'none'}",
            "mirror",
        )


def _replaced(group: Group, member: str, replacement: str) -> Group:
    """Return a group with another member in the place of one."""
    return tuple(replacement if each == member else each for each in group)
