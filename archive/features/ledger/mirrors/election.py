"""The elections of this archive as a leader: it carries out the steps of `protocol/election`.

`protocol.election` has the rules; here are the requests to the other members, and the database.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import fenced
from aerotape.archive.features.ledger.mirrors.leading import Leading
from aerotape.archive.features.ledger.mirrors.members import Members
from aerotape.archive.features.ledger.protocol.election import (
    Adopt,
    Copy,
    Election,
    Promise,
    Query,
    Refusal,
    Refused,
)
from aerotape.archive.features.ledger.protocol.member_record import MemberState, MirrorStep
from aerotape.archive.features.ledger.role import Idle
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    LedgerError,
    LedgerFencedError,
    LedgerInUseError,
)
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.ledger import Ledger
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.follower import Followers
    from aerotape.archive.features.ledger.mirrors.leading import Connecting
    from aerotape.archive.features.ledger.protocol.member_record import Epoch
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task

# How long the others are waited for once enough have responded.
_GRACE_NS: Final = 100_000_000


class Elections:
    """The elections of this archive. For the conductor's thread."""

    def __init__(
        self,
        *,
        worker: LedgerWorker,
        followers: Followers,
        connecting: Connecting,
        own_channel: str | None,
    ) -> None:
        """Create it.

        Args:
            own_channel: by which members connect to this archive; None: they cannot.
        """
        self._worker = worker
        self._followers = followers
        self._members = Members(connecting.opening)
        self._connecting = connecting
        self._own_channel = own_channel

    def lead(
        self,
        ledger: Ledger,
        metadata: LedgerMetadata,
        timeout_ns: int,
        *,
        may_fence: bool = True,
        serves: bool = True,
    ) -> Task[tuple[Leading, frozenset[str]]]:
        """Take over the log of a ledger in a new epoch.

        Args:
            ledger: that no other task changes.
            metadata: of the ledger, which has no writer here.
            timeout_ns: how long members may take to respond.
            may_fence: whether to take it over from a leader that is active.
            serves: whether to serve a writer; to close the ledger, fewer members do.

        Returns:
            The role, with the metadata afterwards, and the members that have elected this archive.
            The ledger is closed if its log was.

        Raises:
            LedgerError: too few members respond; nothing has changed.
            LedgerInUseError: another archive leads the ledger, and may not be fenced.
            LedgerClosedError: another archive leads the ledger, or tries to.
            ConfigurationError: members cannot reach this archive.
            ArchiveError: the log cannot be copied.
        """
        # Others may reach a mirror by another channel than it has in its own configuration.
        own_channel = metadata.member_record.own or self.own_channel(ledger.id)
        metadata = replace(metadata, member_record=metadata.member_record.named(own_channel))
        election = Election(
            self._own_state(ledger, metadata), metadata.quorums, serves=serves, may_fence=may_fence
        )
        problems: dict[str, AerotapeError] = {}
        with self._election(ledger, election):
            while True:
                match election.step():
                    case Query(members):
                        yield from self._ask(
                            election, metadata, MirrorStep.QUERY, members, timeout_ns, problems
                        )
                    case Promise(epoch, members):
                        if metadata.member_record.promised != epoch:
                            metadata = yield from self._promise(ledger, metadata, epoch)
                            election.promise(self._own_state(ledger, metadata))
                        yield from self._ask(
                            election, metadata, MirrorStep.PROMISE, members, timeout_ns, problems
                        )
                    case Copy(source):
                        metadata = yield from self._followers.take_over(
                            ledger, metadata, source, self._connecting.control_stream_id
                        )
                        election.copied()
                    case Adopt(member_record, is_closed, electors):
                        member_record = replace(member_record, boot=boot_id())
                        yield from ledger.log.store_member_record(
                            metadata, member_record, is_closed=is_closed
                        )
                        metadata = yield from ledger.stored()
                        confirmed = yield from ledger.log.confirmed_end(metadata)
                        if election.is_fenced:
                            raise fenced(ledger.id, metadata.member_record.promised)
                        leading = Leading(ledger, metadata, confirmed, self._connecting)
                        ledger.become(leading)
                        return leading, electors
                    case Refused() as refused:
                        raise self._error(metadata, refused, problems)

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

    @staticmethod
    @contextmanager
    def _election(ledger: Ledger, election: Election) -> Iterator[None]:
        ledger.election = election
        try:
            yield
        finally:
            ledger.election = None

    def _promise(
        self, ledger: Ledger, metadata: LedgerMetadata, epoch: Epoch
    ) -> Task[LedgerMetadata]:
        """Promise an epoch here; return the metadata once the log of this archive has stopped."""
        stored = yield from self._worker.promise(ledger.id, epoch, metadata.member_record.own)
        if stored.promised != epoch:
            raise fenced(ledger.id, stored.promised)
        ledger.become(Idle())
        yield from ledger.await_ended()
        if metadata.recording_id != NULL_VALUE:
            yield from ledger.log.await_durable_end(metadata)
        return replace(metadata, member_record=stored)

    @staticmethod
    def _error(
        metadata: LedgerMetadata, refused: Refused, problems: Mapping[str, AerotapeError]
    ) -> LedgerError:
        ledger = metadata.ledger
        match refused.why:
            case Refusal.IN_USE:
                return LedgerInUseError(
                    f"ledger {ledger} has a writer in another archive, or had one until some"
                    " seconds ago: take it over, or wait",
                    ledger,
                )
            case Refusal.FENCED:
                return fenced(ledger, (metadata.member_record.promised[0], "another one"))
            case Refusal.TWICE:
                return LedgerError(
                    f"ledger {ledger} is stored twice by one archive: {refused.text}", ledger
                )
        for problem in problems.values():
            if isinstance(problem, LedgerFencedError):
                return problem
        reasons = "; ".join(
            f"mirror {name} of ledger {ledger}: {problem}"
            for name, problem in sorted(problems.items())
        )
        return LedgerError(
            f"ledger {ledger} has no ack quorum of {metadata.ack_quorum} archives:"
            f" {refused.text}: {reasons or 'some have lost entries'}",
            ledger,
        )

    def _own_state(self, ledger: Ledger, metadata: LedgerMetadata) -> MemberState:
        return MemberState(
            replace(metadata.member_record, forgets=metadata.may_have_forgotten),
            ledger.log.end(metadata),
            metadata.is_closed,
            ledger.log.session(metadata.recording_id) is not None,
            archive_id=self._connecting.archive_id,
            recording_id=metadata.recording_id,
        )

    def _ask(
        self,
        election: Election,
        metadata: LedgerMetadata,
        step: MirrorStep,
        members: frozenset[str],
        timeout_ns: int,
        problems: dict[str, AerotapeError],
    ) -> Task[None]:
        """Ask members at the same time, and report to the election who replies.

        Args:
            problems: receives why members do not.
        """
        asking = self._members.ask(metadata, step, members)
        deadline_ns = time.monotonic_ns() + timeout_ns
        try:
            # The locked ledger of a member may be awaited by the one that leads now.
            while asking and time.monotonic_ns() < deadline_ns and not election.is_fenced:
                for name, state in asking.poll().items():
                    election.reply(name, state)
                    if election.has_enough:
                        deadline_ns = min(deadline_ns, time.monotonic_ns() + _GRACE_NS)
                yield Pause()
        finally:
            asking.close()
        for name, problem in asking.problems.items():
            problems[name] = problem
            election.give_up(name)
