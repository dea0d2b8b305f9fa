"""How an archive becomes the leader of a ledger: it asks the members, and takes over the best log.

    query -> promise -> choose the best log -> copy it -> adopt the epoch

Nothing changes before enough members have responded to the query. A step that fails leaves what a
crash there would leave: another election, by any member, repairs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from aerotape.archive.ledger.mirrors.replica import (
    NO_EPOCH,
    Epoch,
    MemberState,
    MirrorStep,
    Replica,
    begin_epoch,
    boot_id,
    fenced,
    may_have_forgotten,
    missing_to_elect,
)
from aerotape.archive.waiting import Pause, Running
from aerotape.codecs.generated.ledger_control import LedgerState, MirrorLedgerRequest
from aerotape.errors import (
    AeronTimeoutError,
    AerotapeError,
    CodecError,
    ConfigurationError,
    LedgerError,
    LedgerFencedError,
    LedgerInUseError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.client.session.client_session import ClientSession
    from aerotape.archive.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.ledger.mirrors.follower import Followers
    from aerotape.archive.waiting import Task
    from aerotape.codecs.generated.ledger_control import LedgerDescriptor
    from aerotape.qualified_id import QualifiedId

Opening = Callable[[str], "Task[ClientSession]"]
"""Returns the steps that open a session with the archive of a control channel."""

# How long the others are waited for once enough have responded.
_GRACE_NS: Final = 100_000_000


class Elections:
    """The elections of this archive. For the conductor's thread."""

    def __init__(
        self,
        *,
        recordings: LedgerRecordings,
        worker: LedgerWorker,
        followers: Followers,
        opening: Opening,
        own_channel: str | None,
        own_stream_id: int,
        archive_id: int,
    ) -> None:
        """Create it without an election.

        Args:
            opening: returns the task that connects to a member.
            own_channel: by which members connect to this archive; None: they cannot.
            archive_id: of this archive.
        """
        self._recordings = recordings
        self._worker = worker
        self._followers = followers
        self._opening = opening
        self._own_channel = own_channel
        self._own_stream_id = own_stream_id
        self._archive_id = archive_id
        # Those in progress: whether a higher epoch was promised meanwhile.
        self._is_deposed: dict[QualifiedId, bool] = {}

    def depose(self, ledger: QualifiedId) -> None:
        """End an election in progress: this archive has promised a higher epoch."""
        if ledger in self._is_deposed:
            self._is_deposed[ledger] = True
            self._followers.stop(ledger)

    def lead(
        self,
        metadata: LedgerMetadata,
        timeout_ns: int,
        *,
        may_fence: bool = True,
        serves: bool = True,
    ) -> Task[tuple[LedgerMetadata, frozenset[str]]]:
        """Take over the log of a ledger in a new epoch, while nothing else changes the ledger.

        Args:
            metadata: of the ledger, which has no writer here.
            timeout_ns: how long members may take to respond.
            may_fence: whether to take it over from a leader that is active.
            serves: whether to serve a writer; to close the ledger, fewer members do.

        Returns:
            The metadata afterwards, and the members that have elected this archive. The ledger is
            closed if its log was.

        Raises:
            LedgerError: too few members respond; nothing has changed.
            LedgerInUseError: another archive leads the ledger, and may not be fenced.
            LedgerClosedError: another archive leads the ledger, or tries to.
            ConfigurationError: members cannot reach this archive.
            ArchiveError: the log cannot be copied.
        """
        ledger = metadata.ledger
        # Others may reach a mirror by another channel than it has in its own configuration.
        own_channel = metadata.replica.own or self.own_channel(ledger)
        metadata = replace(metadata, replica=metadata.replica.named(own_channel))
        with self._election(ledger):
            own = self._own_state(metadata)
            is_new = metadata.recording_id == NULL_VALUE and own.replica.promised == NO_EPOCH
            if is_new and not own.replica.forgets:
                # It was created here, and no other archive knows it.
                metadata = yield from self._adopt(metadata, (1, own_channel), own, own)
                return metadata, frozenset(metadata.replica.members)
            states = yield from self._query(metadata, own, timeout_ns, serves)
            if not may_fence and any(
                # A member may still follow this archive as it was before its restart.
                state.is_recording and state.replica.promised[1] != own_channel
                for state in states.values()
            ):
                raise LedgerInUseError(
                    f"ledger {ledger} has a writer in another archive, or had one until some"
                    " seconds ago: take it over, or wait",
                    ledger,
                )
            number = max(state.replica.promised[0] for state in states.values()) + 1
            epoch = (number, own_channel)
            stored = yield from self._worker.promise(ledger, epoch, own_channel)
            if stored.promised != epoch:
                raise fenced(ledger, stored.promised)
            metadata = replace(metadata, replica=stored)
            self._followers.stop(ledger)
            if metadata.recording_id != NULL_VALUE:
                yield from self._recordings.settle(metadata)
            own = self._own_state(metadata)
            states = yield from self._promises(metadata, own, epoch, states, timeout_ns, serves)
            # Its own log, of two that are the same: the first one wins.
            best = max(states.values(), key=lambda state: state.rank)
            newest = max(states.values(), key=lambda state: state.replica.version)
            if best is not own:
                metadata = yield from self._followers.take_over(metadata, best, self._own_stream_id)
            self._check(ledger, epoch)
            metadata = yield from self._adopt(metadata, epoch, best, newest)
            return metadata, frozenset(states)

    def own_channel(self, ledger: QualifiedId) -> str:
        """Return the channel by which members reach this archive (ConfigurationError: none)."""
        if self._own_channel is None:
            raise ConfigurationError(
                f"ledger {ledger} has mirrors, which cannot reach this archive: set"
                " aeron.archive.control.channel to a channel with an endpoint",
                "aeron.archive.control.channel",
            )
        return self._own_channel

    # ---- steps --------------------------------------------------------------------------------

    @contextmanager
    def _election(self, ledger: QualifiedId) -> Iterator[None]:
        self._is_deposed[ledger] = False
        try:
            yield
        finally:
            del self._is_deposed[ledger]

    def _check(self, ledger: QualifiedId, epoch: Epoch) -> None:
        if self._is_deposed[ledger]:
            raise fenced(ledger, (epoch[0], "another one"))

    def _own_state(self, metadata: LedgerMetadata) -> MemberState:
        return MemberState(
            replace(metadata.replica, forgets=may_have_forgotten(metadata)),
            self._recordings.end(metadata),
            metadata.is_closed,
            self._recordings.session(metadata.recording_id) is not None,
            archive_id=self._archive_id,
            recording_id=metadata.recording_id,
        )

    def _query(
        self, metadata: LedgerMetadata, own: MemberState, timeout_ns: int, serves: bool
    ) -> Task[dict[str, MemberState]]:
        """Ask for the states of all members of all groups that any of them knows."""
        ledger = metadata.ledger
        states, problems = {own.replica.own: own}, dict[str, AerotapeError]()

        def is_enough(replies: Mapping[str, MemberState]) -> bool:
            return missing_to_elect(metadata, _groups(states), {**states, **replies}) is None

        while True:
            known = {each for group in _groups(states) for each in group}
            others = known - states.keys() - problems.keys()
            if not others:
                break
            found, failed = yield from self._ask(
                metadata,
                MirrorStep.QUERY,
                {each: replace(own.replica, own=each, forgets=False) for each in others},
                timeout_ns,
                is_enough,
            )
            states |= found
            problems |= failed
        by_id: dict[int, str] = {}
        for name, state in states.items():
            other = by_id.setdefault(state.archive_id, name)
            if other != name:
                raise LedgerError(
                    f"ledger {ledger} is stored twice by one archive: {other} and {name} are the"
                    " same",
                    ledger,
                )
        self._check_enough(metadata, _groups(states), states, problems, serves)
        return states

    def _promises(
        self,
        metadata: LedgerMetadata,
        own: MemberState,
        epoch: Epoch,
        asked: Mapping[str, MemberState],
        timeout_ns: int,
        serves: bool,
    ) -> Task[dict[str, MemberState]]:
        """Have the members that have responded promise the epoch; return their states."""
        ledger, groups = metadata.ledger, _groups(asked)
        others = asked.keys() - {own.replica.own}

        def is_enough(replies: Mapping[str, MemberState]) -> bool:
            return missing_to_elect(metadata, groups, {own.replica.own: own, **replies}) is None

        found, problems = yield from self._ask(
            metadata,
            MirrorStep.PROMISE,
            {each: replace(metadata.replica, own=each, forgets=False) for each in others},
            timeout_ns,
            is_enough,
        )
        self._check(ledger, epoch)
        states = {own.replica.own: own, **found}
        self._check_enough(metadata, groups, states, problems, serves)
        return states

    def _check_enough(
        self,
        metadata: LedgerMetadata,
        groups: Collection[tuple[str, ...]],
        states: Mapping[str, MemberState],
        problems: Mapping[str, AerotapeError],
        serves: bool,
    ) -> None:
        missing = missing_to_elect(metadata, groups, states, serves=serves)
        if missing is not None:
            for problem in problems.values():
                if isinstance(problem, LedgerFencedError):
                    raise problem
            reasons = "; ".join(
                f"mirror {name} of ledger {metadata.ledger}: {problem}"
                for name, problem in sorted(problems.items())
            )
            raise LedgerError(
                f"ledger {metadata.ledger} has no ack quorum of {metadata.ack_quorum} archives:"
                f" {missing}: {reasons or 'some have lost entries'}",
                metadata.ledger,
            )

    def _adopt(
        self, metadata: LedgerMetadata, epoch: Epoch, best: MemberState, newest: MemberState
    ) -> Task[LedgerMetadata]:
        """Store that this archive leads in an epoch, with a log that is on its storage."""
        ledger, groups = metadata.ledger, newest.replica.groups or metadata.replica.groups
        replica = Replica(
            own=metadata.replica.own,
            groups=groups,
            version=newest.replica.version,
            promised=epoch,
            adopted=epoch,
            history=begin_epoch(best.replica.history, epoch, best.end),
            boot=boot_id(),
            is_decided=best.is_closed and best.replica.is_decided,
        )
        yield from self._recordings.store_replica(metadata, replica, is_closed=best.is_closed)
        return (yield from self._worker.get(ledger))

    # ---- requests to members ------------------------------------------------------------------

    def _ask(
        self,
        metadata: LedgerMetadata,
        step: MirrorStep,
        replicas: Mapping[str, Replica],
        timeout_ns: int,
        is_enough: Callable[[Mapping[str, MemberState]], bool],
    ) -> Task[tuple[dict[str, MemberState], dict[str, AerotapeError]]]:
        """Ask members at the same time; return the states of those that respond, and why not."""
        asking = {
            name: Running(self._state_of(name, mirror_request(metadata, step, replica)))
            for name, replica in replicas.items()
        }
        states: dict[str, MemberState] = {}
        problems: dict[str, AerotapeError] = {}
        deadline_ns = time.monotonic_ns() + timeout_ns
        try:
            while asking:
                for name, running in list(asking.items()):
                    try:
                        running.advance()
                    except AerotapeError as error:
                        problems[name] = error
                        del asking[name]
                        continue
                    if running.is_done:
                        states[name] = running.result
                        del asking[name]
                        if is_enough(states):
                            deadline_ns = min(deadline_ns, time.monotonic_ns() + _GRACE_NS)
                if time.monotonic_ns() >= deadline_ns:
                    break
                # Its locked ledger is awaited by the member that leads now.
                self._check(metadata.ledger, metadata.replica.promised)
                yield Pause()
        finally:
            for running in asking.values():
                running.close()
        problems |= {name: AeronTimeoutError("it does not respond") for name in asking}
        return states, problems

    def _state_of(self, name: str, request: MirrorLedgerRequest) -> Task[MemberState]:
        from aerotape.archive.client.session.exchange import list_items
        from aerotape.archive.client.session.request import Listing

        session = yield from self._opening(name)
        try:
            listing = Listing(request, "get the state of a ledger", 1)
            (found,) = yield from list_items(session, listing)
        finally:
            session.close()
        return _state(cast("LedgerDescriptor", found), name)


def _groups(states: Mapping[str, MemberState]) -> set[tuple[str, ...]]:
    return {group for state in states.values() for group in state.replica.groups}


def _state(found: LedgerDescriptor, name: str) -> MemberState:
    try:
        replica = Replica.decode(found.replica)
    except CodecError as error:
        raise LedgerError(f"its state cannot be read: {error}") from error
    return MemberState(
        replace(replica, own=name),
        max(found.recorded_position, 0),
        found.state is LedgerState.CLOSED,
        found.recording_counter_id != NULL_VALUE,
        NULL_VALUE if found.archive_id is None else found.archive_id,
        found.recording_id,
    )


def mirror_request(
    metadata: LedgerMetadata,
    step: MirrorStep,
    replica: Replica,
    *,
    source: tuple[str, int] = ("", NULL_VALUE),
    recorded_position: int = NULL_POSITION,
) -> MirrorLedgerRequest:
    """Return the request of one member to another.

    Args:
        replica: what the other one has to store; `own` is its name.
        source: control channel and stream of this archive.
        recorded_position: which the step is about, bytes.
    """
    scope_id, ledger_id = metadata.ledger.signed
    return MirrorLedgerRequest(
        scope_id=scope_id,
        ledger_id=ledger_id,
        created_ms=metadata.created_ms,
        source_recording_id=metadata.recording_id,
        source_stream_id=source[1],
        ledger_type=metadata.type,
        digest_type=metadata.digest_type,
        confirmed_position=NULL_POSITION,
        recorded_position=recorded_position,
        step=step,
        write_quorum=metadata.write_quorum,
        ack_quorum=metadata.ack_quorum,
        password_hash=metadata.password_hash,
        source_channel=source[0],
        replica=replica.encode(),
    )
