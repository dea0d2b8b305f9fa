"""Requests to the other archives that store a ledger, which reply with their states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from aerotape.archive.features.ledger.protocol.member_record import (
    MemberRecord,
    MemberState,
    MirrorStep,
)
from aerotape.codecs.generated.ledger_control import LedgerState, MirrorLedgerRequest
from aerotape.errors import AeronTimeoutError, AerotapeError, CodecError, LedgerError
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import Running

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.client.session.client_session import ClientSession
    from aerotape.codecs.generated.ledger_control import LedgerDescriptor
    from aerotape.waiting import Task

Opening = Callable[[str], "Task[ClientSession]"]
"""Returns the steps that open a session with the archive of a control channel."""


class Asking:
    """Members that are asked at the same time.

    Attributes:
        problems: why members have not replied; at the end those that have not.
    """

    def __init__(self, tasks: dict[str, Task[MemberState]]) -> None:
        self.problems: dict[str, AerotapeError] = {}
        self._running = {name: Running(task) for name, task in tasks.items()}

    def __bool__(self) -> bool:
        return bool(self._running)

    def poll(self) -> dict[str, MemberState]:
        """Advance each request by one step; return the states of those that have replied now."""
        states = {}
        for name, running in list(self._running.items()):
            try:
                running.advance()
            except AerotapeError as error:
                self.problems[name] = error
                del self._running[name]
                continue
            if running.is_done:
                states[name] = running.result
                del self._running[name]
        return states

    def close(self) -> None:
        """End the requests in progress."""
        for name, running in self._running.items():
            running.close()
            self.problems[name] = AeronTimeoutError("it does not respond")
        self._running.clear()


class Members:
    """The other archives that store ledgers, by their control channels."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def ask(self, metadata: LedgerMetadata, step: MirrorStep, members: Iterable[str]) -> Asking:
        """Begin to ask members at the same time."""

        def request(name: str) -> MirrorLedgerRequest:
            return mirror_request(
                metadata, step, replace(metadata.member_record, own=name, forgets=False)
            )

        return Asking({name: self._state_of(name, request(name)) for name in members})

    def _state_of(self, name: str, request: MirrorLedgerRequest) -> Task[MemberState]:
        from aerotape.client.session.exchange import list_items
        from aerotape.client.session.request import Listing

        session = yield from self._opening(name)
        try:
            listing = Listing(request, "get the state of a ledger", 1)
            (found,) = yield from list_items(session, listing)
        finally:
            session.close()
        return _state(cast("LedgerDescriptor", found), name)


def _state(found: LedgerDescriptor, name: str) -> MemberState:
    try:
        member_record = MemberRecord.decode(found.member_record)
    except CodecError as error:
        raise LedgerError(f"its state cannot be read: {error}") from error
    return MemberState(
        replace(member_record, own=name),
        max(found.recorded_position, 0),
        found.state is LedgerState.CLOSED,
        found.recording_counter_id != NULL_VALUE,
        NULL_VALUE if found.archive_id is None else found.archive_id,
        found.recording_id,
    )


def mirror_request(
    metadata: LedgerMetadata,
    step: MirrorStep,
    member_record: MemberRecord,
    *,
    source: tuple[str, int] = ("", NULL_VALUE),
    recorded_position: int = NULL_POSITION,
) -> MirrorLedgerRequest:
    """Return the request of one member to another.

    Args:
        member_record: what the other one has to store; `own` is its name.
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
        member_record=member_record.encode(),
    )
