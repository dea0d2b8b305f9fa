"""Read repair: a damaged entry that a reader meets is fetched from another archive."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from aerotape.archive.features.ledger.mirrors.members import Members
from aerotape.archive.features.ledger.protocol.logs import common_end
from aerotape.archive.features.ledger.protocol.replica import MemberState, MirrorStep
from aerotape.codecs import entry as entries
from aerotape.errors import AerotapeError, SegmentError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.client_requests import ClientRequests
    from aerotape.archive.features.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task


@dataclass
class Damage:
    """The damage that readers of a ledger have met since the archive was started.

    Attributes:
        damaged: ids of the entries that could not be repaired.
        repaired: ids of those that were.
    """

    damaged: set[int] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)


class Repairs:
    """The repairs of this archive. For the conductor's thread."""

    def __init__(
        self,
        *,
        recordings: LedgerRecordings,
        worker: LedgerWorker,
        requests: ClientRequests,
        opening: Opening,
        replay_channel: str,
        errors: ErrorLog,
    ) -> None:
        """Create the service.

        Args:
            requests: lock a ledger while an entry is rewritten.
            opening: returns the task that connects to another archive.
            replay_channel: where that replays to.
            errors: receives what was damaged, and whether it was repaired.
        """
        self._recordings = recordings
        self._worker = worker
        self._requests = requests
        self._opening = opening
        self._members = Members(opening)
        self._replay_channel = replay_channel
        self._errors = errors
        self._damage: defaultdict[QualifiedId, Damage] = defaultdict(Damage)

    def damage(self, ledger: QualifiedId) -> Damage:
        """Return the damage that readers of a ledger have met."""
        return self._damage[ledger] if ledger in self._damage else Damage()

    def check(self, metadata: LedgerMetadata, entry_id: int, position: int) -> Task[None]:
        """Repair an entry if it is damaged and another archive has it.

        Args:
            position: where it begins, bytes.

        Raises:
            StorageError: a segment file cannot be read.
        """
        ledger, damage = metadata.ledger, self._damage
        end = yield from self._damaged_end(metadata, position)
        if end is None:
            return
        problems = []
        for name in metadata.replica.members:
            if name == metadata.replica.own:
                continue
            try:
                yield from self._repair(metadata, name, entry_id, position, end)
            except AerotapeError as error:
                problems.append(f"{name}: {error}")
                continue
            damage[ledger].damaged.discard(entry_id)
            damage[ledger].repaired.add(entry_id)
            self._errors.record(
                "entry of a ledger repaired",
                f"entry {entry_id} of ledger {ledger} was damaged, and is fetched from {name}",
            )
            return
        damage[ledger].damaged.add(entry_id)
        self._errors.record(
            "entry of a ledger damaged",
            f"entry {entry_id} of ledger {ledger} is damaged, and no other archive has it:"
            f" {'; '.join(problems) or 'none stores the ledger'}",
        )

    def _damaged_end(self, metadata: LedgerMetadata, position: int) -> Task[int | None]:
        recording, limit = self._recordings.recording(metadata), self._recordings.end(metadata)
        return (yield from self._worker.call(lambda: recording.damaged_end(position, limit)))

    def _repair(
        self, metadata: LedgerMetadata, name: str, entry_id: int, position: int, end: int
    ) -> Task[None]:
        """Fetch an entry from a member, and rewrite it, while nothing else changes the ledger."""
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
        self._check_same(metadata, state, end)
        message = yield from self._fetch(name, state.recording_id, position, end)
        digest_type = metadata.digest_type.name
        entries.decode(
            message, digest_type=cast("entries.DigestType", digest_type), entry_id=entry_id
        )
        ledger = metadata.ledger
        yield from self._requests.lock(ledger)
        try:
            # The log may have been cut meanwhile.
            metadata = yield from self._recordings.metadata(ledger)
            self._check_same(metadata, state, end)
            if (yield from self._damaged_end(metadata, position)) == end:
                recording = self._recordings.recording(metadata)
                yield from self._worker.call(lambda: recording.rewrite(position, end, message))
        finally:
            self._requests.unlock(ledger)

    def _check_same(self, metadata: LedgerMetadata, state: MemberState, end: int) -> None:
        """Refuse a member whose log is not the same up to a position, bytes (SegmentError)."""
        own = MemberState(metadata.replica, self._recordings.end(metadata))
        same = common_end(own, state)
        if same is None or same < end or state.recording_id == NULL_VALUE:
            raise SegmentError(f"its log is not the same up to position {end}", position=end)

    def _fetch(self, name: str, recording_id: int, position: int, end: int) -> Task[bytes]:
        """Return the message that a recording of another archive has at a position."""
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
                yield from stream.fetch()
                if not stream.backlog:
                    raise SegmentError("it has no entry there", position=position)
                return bytes(stream.backlog.next_message().payload)
            finally:
                stream.abandon()
        finally:
            with suppress(AerotapeError):
                session.close()
