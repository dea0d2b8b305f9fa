"""Writing to a ledger, for either front end.

An add is acknowledged when the archive's counter of the confirmed (PD_JOURNAL) or the recorded
position (VD_JOURNAL) passes its entry. If the writer is on another media driver, or a quorum of
mirrors decides, there is no such counter: it sends requests, to which the archive responds once
the position is reached.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from aerotape import _native, errors
from aerotape.aeron import ADMIN_ACTION, BACK_PRESSURED, MAX_POSITION_EXCEEDED, NOT_CONNECTED
from aerotape.catalog.descriptor import extension_channel
from aerotape.channel_uri import ChannelUri
from aerotape.client.ledger import requests
from aerotape.client.ledger.requests import LedgerInfo
from aerotape.client.queries import list_recording, stop_recording_by_identity
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Listing
from aerotape.codecs.entry import Data
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.counter_keys import CounterType
from aerotape.driver_tasks import add_publication
from aerotape.protocol import NULL_VALUE
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import SLICE_NS, Attempt, CounterValue, Pause, Task

STREAM_ID: Final = 1_018
"""The stream on which writers publish; their sessions differ."""
_PAUSE_NS: Final = 100_000
_ROOM_WAIT_NS: Final = 20_000_000
_NOT_NOW: Final = (BACK_PRESSURED, ADMIN_ACTION, NOT_CONNECTED)


class LedgerWriting:
    """The state of a writer that the archive records. Created by `attach`.

    Attributes:
        info: the ledger when the writer was attached.
        native: adds entries to the publication.
        failure: the error after which nothing can be added.
    """

    def __init__(
        self,
        session: ClientSession,
        publication: _native.ExclusivePublication,
        found: codecs.LedgerDescriptor,
        password: bytes,
    ) -> None:
        self.info: LedgerInfo = requests.info_of(found)
        self.failure: errors.LedgerError | None = None
        self._session = session
        self._publication = publication
        self._correlation_id = found.correlation_id
        info, last, confirmed = self.info, self.info.last_add_pushed, self.info.last_add_confirmed
        self.native = _native.LedgerWriter(
            publication,
            (info.id.scope_id, info.id.ledger_id),
            info.digest_type,
            password,
            0 if last is None else last + 1,
            info.length or 0,
            NULL_VALUE if confirmed is None else confirmed,
        )
        # What is on storage, once the archive no longer records this writer.
        self._safe_position = NULL_VALUE
        self._counters = session.aeron.counters()
        self._recording_counter, self._confirmed_counter = self._own_counters()

    def _own_counters(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Return id and registration id of the two counters if they are of this media driver."""
        info, counters = self.info, self._counters
        ids = (info.recording_counter_id, info.confirmed_counter_id)
        key = struct.pack("<q", info.recording_id) + info.id.key
        with suppress(errors.AerotapeError):  # there is no such counter
            if (
                counters.type_id(ids[1]) == CounterType.CONFIRMED_POSITION
                and counters.key(ids[1])[: len(key)] == key
            ):
                recording, confirmed = ((each, counters.registration_id(each)) for each in ids)
                return recording, confirmed
        return None, None

    @property
    def is_durable(self) -> bool:
        """Whether adds are acknowledged on storage."""
        return self.info.type == "PD_JOURNAL"

    @property
    def last_add_confirmed(self) -> int:
        """The last entry that is known to be on storage, -1 for none."""
        if self._confirmed_counter is not None:
            counter_id, registration_id = self._confirmed_counter
            with suppress(errors.ClosedError):  # the client is closed
                value = self._counters.await_value(counter_id, registration_id, 0, 0)
                if value is not None:
                    return self.native.confirm(value)
        return self.native.last_add_confirmed

    # -- adding --------------------------------------------------------------------------------

    def try_push(self, payloads: Sequence[Data]) -> int | None:
        """Publish one entry and return its id, if there is room; None: use `push`."""
        if len(payloads) == 1 and self.failure is None:
            entry_id, result = self.native.add(payloads[0])
            if result >= 0:
                return entry_id
        return None

    def push(self, payloads: Sequence[Data]) -> Task[int]:
        """Publish entries, waiting for room; return the last one's id.

        After an error some of them may be added.
        """
        if not payloads:
            return self.native.last_add_pushed
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        rest = payloads
        while True:
            self.check_writable()
            before = self.native.last_add_pushed
            adding = Attempt(partial(self.native.add_many, rest), _ROOM_WAIT_NS)
            yield adding
            last, result = adding.value
            if result >= 0:
                return last
            if result not in _NOT_NOW:
                if result == MAX_POSITION_EXCEEDED:
                    raise errors.AeronError(
                        f"cannot add to ledger {self.info.id}: its stream has reached its last"
                        " position; close it and create another ledger",
                        result,
                    )
                raise errors.ClosedError(
                    f"cannot add to ledger {self.info.id}: its publication is closed"
                )
            if last > before:
                rest = rest[last - before :]
                deadline_ns = time.monotonic_ns() + self._session.timeout_ns
            elif result == NOT_CONNECTED:
                yield from self._check_attached()
            if time.monotonic_ns() >= deadline_ns:
                raise errors.AeronTimeoutError(
                    f"cannot add to ledger {self.info.id}: the archive has not taken entries for"
                    f" {self._session.timeout_ns / 1e9:g} s (back pressure)"
                )
            yield Pause(_PAUSE_NS)

    def check_writable(self) -> None:
        """Raise the error after which nothing can be added."""
        if self.failure is not None:
            raise self.failure
        if self._publication.is_closed:
            raise errors.ClosedError(f"cannot write to ledger {self.info.id}: its writer is closed")

    # -- waiting -------------------------------------------------------------------------------

    def flush(self) -> Task[int]:
        """Wait until all adds are acknowledged; return the last entry id."""
        last, position = self.native.last_add_pushed, self.native.position
        if position < 0:
            self.check_writable()
        yield from self.acknowledged(position)
        return last

    def acknowledged(self, position: int) -> Task[None]:
        """Wait until entries up to a position are acknowledged."""
        counter = self._confirmed_counter if self.is_durable else self._recording_counter
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        reached = -1
        while True:
            if self.failure is not None and position > self._safe_position:
                raise self.failure
            value: int | None
            if counter is not None:
                reaching = CounterValue(self._counters, counter, position, SLICE_NS)
                yield reaching
                value = reaching.value
            else:
                asked = requests.await_ledger(
                    self.info.id,
                    position,
                    codecs.Reach.ACKNOWLEDGED,
                    self._session.timeout_ns // 2,
                    self._correlation_id,
                )
                try:
                    value = yield from exchange(self._session, asked)
                except errors.LedgerFencedError:
                    yield from self._check_attached(position)
                    if self.failure is None:
                        raise
                    return
                if value < position:
                    yield from self._check_attached(position)
            if value is None:
                yield from self._check_attached(position)
                return
            if self.is_durable:
                self.native.confirm(value)
            if value >= position:
                return
            if value > reached:
                reached, deadline_ns = value, time.monotonic_ns() + self._session.timeout_ns
            if time.monotonic_ns() >= deadline_ns:
                raise errors.AeronTimeoutError(
                    f"adds to ledger {self.info.id} are not acknowledged: no progress for"
                    f" {self._session.timeout_ns / 1e9:g} s at position {value}, expected"
                    f" {position}"
                )

    def _check_attached(self, position: int = -1) -> Task[None]:
        """Raise the reason if the archive no longer records this writer.

        Args:
            position: what is safe up to there counts as acknowledged nevertheless.
        """
        ledger = self.info.id
        found = requests.info_of((yield from requests.describe(self._session, ledger)))
        is_same = (
            found.has_writer
            and found.confirmed_counter_id == self.info.confirmed_counter_id
            and found.recording_counter_id == self.info.recording_counter_id
        )
        if is_same:
            return
        error = self._session.take_error(self._correlation_id)
        if isinstance(error, errors.LedgerFencedError):
            # Others' entries may be in the place of those that are not acknowledged.
            self.failure = error
            raise error
        if error is not None or found.is_closed:
            self._safe_position = found.confirmed_position
            self.native.confirm(found.confirmed_position)
        is_fenced = isinstance(error, errors.LedgerClosedError)
        if error is not None and not is_fenced:
            self.failure = errors.LedgerError(f"ledger {ledger} has failed: {error}", ledger)
        elif found.is_closed:
            self.failure = errors.LedgerClosedError(
                f"ledger {ledger} was closed by another client: its last entry is"
                f" {found.last_add_confirmed}",
                ledger,
            )
        elif is_fenced:
            self.failure = errors.LedgerClosedError(str(error), ledger)
        else:
            self.failure = errors.LedgerError(
                f"the archive no longer records this writer of ledger {ledger}: open it again",
                ledger,
            )
        if position < 0 or position > self._safe_position:
            raise self.failure

    def sync(self) -> Task[int]:
        """Force what was added to storage; return the last entry that is."""
        if self.failure is not None:
            raise self.failure
        yield from self.flush()
        # Also of what is on storage already: the archive notes up to where.
        try:
            position = yield from exchange(self._session, requests.sync_ledger(self.info.id))
        except errors.LedgerError:
            yield from self._check_attached()
            raise
        self.native.confirm(position)
        return self.native.last_add_confirmed

    # -- the end -------------------------------------------------------------------------------

    def close(self) -> Task[None]:
        """Wait for acknowledgements, then sync and close the ledger. Idempotent."""
        if self._publication.is_closed:
            return
        try:
            if self.failure is None:
                yield from self.flush()
                yield from exchange(self._session, requests.close_ledger(self.info.id))
                self.native.confirm(self.native.position)
        finally:
            self.release()

    def detach(self) -> Task[None]:
        """Wait for acknowledgements, and leave the ledger open without a writer. Idempotent."""
        if self._publication.is_closed:
            return
        try:
            if self.failure is None:
                yield from self.flush()
                stopping = stop_recording_by_identity(self.info.recording_id)
                yield from exchange(self._session, stopping)
        finally:
            self.release()

    def release(self) -> None:
        """Close the publication: the ledger stays open until it is recovered. Idempotent."""
        self._publication.close()


def attach(
    session: ClientSession,
    ledger: QualifiedId,
    password: bytes,
    channel: str | None,
    *,
    take_over: bool = False,
) -> Task[LedgerWriting]:
    """Publish to a ledger, by default to `default_channel`, and let the archive record that."""
    if channel is None:
        channel = default_channel(session.request_channel)
    prepare = codecs.PrepareWriterRequest(
        **requests.id_fields(ledger),
        takes_over=codecs.BooleanType(take_over),
        password_token=requests.password_token(password),
    )
    what = f"write to ledger {ledger}"
    found = yield from requests.describe_by(session, Listing(prepare, what, 1))
    info = requests.info_of(found)
    if info.recording_id != NULL_VALUE:
        channel = yield from _extension_channel(session, info, channel)
    is_local = ChannelUri.parse(channel).is_ipc
    publication = yield from add_publication(session.aeron, channel, STREAM_ID, session.timeout_ns)
    try:
        request = codecs.AttachWriterRequest(
            **requests.id_fields(ledger),
            stream_id=STREAM_ID,
            session_id=publication.session_id,
            location=codecs.WriterLocation.LOCAL if is_local else codecs.WriterLocation.REMOTE,
            channel=channel,
            password_token=requests.password_token(password),
        )
        found = yield from requests.describe_by(session, Listing(request, what, 1))
        return LedgerWriting(session, publication, found, password)
    except BaseException:
        publication.close()
        raise


def _extension_channel(session: ClientSession, info: LedgerInfo, channel: str) -> Task[str]:
    """Return the channel of a publication that begins where the ledger's recording ends."""
    deadline_ns = time.monotonic_ns() + session.timeout_ns
    while True:
        recording = yield from list_recording(session, info.recording_id)
        if recording is None:
            raise errors.LedgerError.lost_recording(info.id, info.recording_id)
        if not recording.is_active:
            return extension_channel(recording, channel)
        if time.monotonic_ns() >= deadline_ns:
            raise errors.LedgerInUseError(f"ledger {info.id} still has a writer", info.id)
        yield Pause(_PAUSE_NS)


def default_channel(control_channel: str) -> str:
    """Return the default channel of writers: the address of the control channel."""
    uri = ChannelUri.parse(control_channel)
    if uri.is_ipc:
        return "aeron:ipc"
    names = ("endpoint", "interface")
    parameters = {name: uri.parameters[name] for name in names if name in uri.parameters}
    if "endpoint" not in parameters:
        raise errors.ConfigurationError(
            f"control channel {control_channel} has no endpoint to publish to: give the writer's"
            " channel",
            "channel",
        )
    return str(ChannelUri("udp", parameters))
