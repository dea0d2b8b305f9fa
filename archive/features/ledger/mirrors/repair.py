"""Read repair: a damaged entry that a reader meets is fetched from another archive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.frames import restore
from aerotape.archive.features.ledger.mirrors.members import Members
from aerotape.archive.features.ledger.protocol.logs import common_end
from aerotape.archive.features.ledger.protocol.member_record import MemberState, MirrorStep
from aerotape.errors import AerotapeError, DamagedEntryError, SegmentError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger import Ledger
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.frame_header import ChecksumName
    from aerotape.message import Message
    from aerotape.waiting import Task


class Repairs:
    """The repairs of this archive. For the conductor's thread."""

    def __init__(
        self,
        *,
        worker: LedgerWorker,
        opening: Opening,
        replay_channel: str,
        checksum: ChecksumName,
        errors: ErrorLog,
    ) -> None:
        """Create the service.

        Args:
            opening: returns the task that connects to another archive.
            replay_channel: where that replays to.
            checksum: that the archive records frames with.
            errors: receives what was damaged, and whether it was repaired.
        """
        self._worker = worker
        self._opening = opening
        self._members = Members(opening)
        self._replay_channel = replay_channel
        self._checksum = checksum
        self._errors = errors

    def position_of(
        self, ledger: Ledger, metadata: LedgerMetadata, entry_id: int, limit: int
    ) -> Task[int]:
        """Return the position of an entry, which is repaired if it is damaged.

        Args:
            limit: the end of the recording, bytes.

        Raises:
            StorageError: a segment file cannot be read.
            SegmentError: there is no such entry.
            DamagedEntryError: the entry is damaged, its frames are not there, and no other archive
                has them.
        """
        recording = ledger.log.recording(metadata)
        find = partial(self._worker.position_of, ledger.id, recording, entry_id, limit)
        try:
            position = yield from find()
        except DamagedEntryError as damaged:
            task = partial(self._restore, ledger, metadata, damaged.begin, damaged.end)
            yield from self._of_any(ledger, metadata, entry_id, task)
            return (yield from find())
        if metadata.mirrors:
            end = yield from self._damaged_end(ledger, metadata, position)
            if end is not None:
                task = partial(self._restore, ledger, metadata, position, end)
                yield from self._of_any(ledger, metadata, entry_id, task)
        return position

    def _of_any(
        self,
        ledger: Ledger,
        metadata: LedgerMetadata,
        entry_id: int,
        task: Callable[[str], Task[None]],
    ) -> Task[None]:
        """Try a task with one member after another; note the outcome."""
        problems = []
        for name in metadata.member_record.members:
            if name == metadata.member_record.own:
                continue
            try:
                yield from task(name)
            except AerotapeError as error:
                problems.append(f"{name}: {error}")
                continue
            ledger.damage.damaged.discard(entry_id)
            ledger.damage.repaired.add(entry_id)
            self._errors.record(
                "entry of a ledger repaired",
                f"entry {entry_id} of ledger {ledger} was damaged, and is fetched from {name}",
            )
            return
        ledger.damage.damaged.add(entry_id)
        self._errors.record(
            "entry of a ledger damaged",
            f"entry {entry_id} of ledger {ledger} is damaged, and no other archive has it:"
            f" {'; '.join(problems) or 'none stores the ledger'}",
        )

    def _damaged_end(
        self, ledger: Ledger, metadata: LedgerMetadata, position: int
    ) -> Task[int | None]:
        recording, limit = ledger.log.recording(metadata), ledger.log.end(metadata)
        return (yield from self._worker.call(lambda: recording.damaged_end(position, limit)))

    def _restore(
        self, ledger: Ledger, metadata: LedgerMetadata, begin: int, end: int, name: str
    ) -> Task[None]:
        """Fetch the messages of a damaged part from a member, and write its frames again.

        Nothing else changes the ledger meanwhile.

        Args:
            begin: where the part begins, bytes.
            end: where it ends, bytes.
            name: of the member.
        """
        state = yield from self._state(ledger, metadata, name, end)
        found = yield from self._fetch(name, state.recording_id, begin, end)
        recording = ledger.log.recording(metadata)
        if not all(recording.sound(each.payload) is not None for each in found):
            raise SegmentError("it is damaged there, too", position=begin)
        yield from ledger.lock()
        try:
            # The log may have been cut meanwhile.
            metadata = yield from ledger.metadata()
            self._check_same(ledger, metadata, state, end)
            recording = ledger.log.recording(metadata)
            yield from self._worker.call(
                lambda: restore(
                    recording.archive_dir, recording.descriptor, begin, end, found, self._checksum
                )
            )
        finally:
            ledger.unlock()

    def _state(
        self, ledger: Ledger, metadata: LedgerMetadata, name: str, end: int
    ) -> Task[MemberState]:
        """Return the state of a member whose log is the same up to a position, bytes."""
        asking = self._members.ask(metadata, MirrorStep.QUERY, [name])
        states: dict[str, MemberState] = {}
        try:
            while asking:
                states |= asking.poll()
                yield Pause()
        finally:
            asking.close()
        if name in asking.problems:
            raise asking.problems[name]
        state = states[name]
        self._check_same(ledger, metadata, state, end)
        return state

    @staticmethod
    def _check_same(
        ledger: Ledger, metadata: LedgerMetadata, state: MemberState, end: int
    ) -> None:
        """Refuse a member whose log is not the same up to a position, bytes (SegmentError)."""
        own = MemberState(metadata.member_record, ledger.log.end(metadata))
        same = common_end(own, state)
        if same is None or same < end or state.recording_id == NULL_VALUE:
            raise SegmentError(f"its log is not the same up to position {end}", position=end)

    def _fetch(
        self, name: str, recording_id: int, position: int, end: int
    ) -> Task[list[Message]]:
        """Return the messages that a recording of another archive has between two positions."""
        from aerotape.client import channels
        from aerotape.client.replay.requests import ReplayTarget
        from aerotape.client.replay.stream import open_replay

        session = yield from self._opening(name)
        try:
            stream = yield from open_replay(
                session,
                recording_id,
                ReplayTarget(self._replay_channel, channels.DEFAULT_REPLAY_STREAM_ID),
                position=position,
                length=end - position,
                # Without it the end of a live recording is asked for, which a mirror may not.
                follow=True,
                timeout_ns=session.timeout_ns,
            )
            try:
                found: list[Message] = []
                while stream.position < end or stream.backlog:
                    yield from stream.fetch()
                    if not stream.backlog:
                        break
                    while stream.backlog:
                        found.append(stream.backlog.next_message())
                if not found:
                    raise SegmentError("it has no entry there", position=position)
                return found
            finally:
                stream.abandon()
        finally:
            with suppress(AerotapeError):
                session.close()
