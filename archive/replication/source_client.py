"""The daemon's own client of another archive: the control protocol, never blocking.

It runs on the conductor's thread. What takes time is a step (see `steps`): connecting, and asking
for something. Whatever the source says besides is looked at in between by `poll`.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape import __version__
from aerotape.aeron import ADMIN_ACTION, BACK_PRESSURED
from aerotape.archive.client import channels
from aerotape.archive.client.requests.queries import descriptor_of
from aerotape.archive.client.requests.request import Request
from aerotape.archive.client.session.control_session import decode_answer
from aerotape.archive.replication.steps import Step, add, wait_for
from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.runtime import Message
from aerotape.errors import AeronTimeoutError, AerotapeError, ArchiveError, CodecError
from aerotape.protocol import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    VERSION_WITH_ARCHIVE_ID,
)

if TYPE_CHECKING:
    from aerotape._native import AeronClient, ExclusivePublication, Subscription
    from aerotape.catalog.descriptor import RecordingDescriptor

_FRAGMENT_LIMIT: Final = 10


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """Where another archive is and how it is to be spoken to.

    Attributes:
        request_channel: its control channel.
        request_stream_id: its control stream.
        response_channel: where it is to answer; port 0 lets the driver choose.
        response_stream_id: on which stream.
        credentials: what is sent with the connect request; with any, a challenge is an error.
        client_name: as what this archive shows up there.
        timeout_ns: how long connecting and each request may take.
    """

    request_channel: str
    request_stream_id: int
    response_channel: str
    response_stream_id: int
    credentials: bytes
    client_name: str
    timeout_ns: int


class SourceArchive:
    """A control session with another archive. For one thread; `connect` comes first."""

    def __init__(self, aeron: AeronClient, address: SourceAddress) -> None:
        self.address = address
        self._aeron = aeron
        self._subscription: Subscription | None = None
        self._publication: ExclusivePublication | None = None
        self._control_session_id: int | None = None
        self._is_connected = False
        # A further request publication, with the answers to which a replay comes along.
        self._replay_publication: ExclusivePublication | None = None
        self._awaited: int | None = None
        self._answers: deque[Message] = deque()

    # ---- connecting ---------------------------------------------------------------------------

    def connect(self) -> Step[None]:
        """Open a control session.

        Raises:
            ArchiveError: the archive refuses, or asks for more than credentials.
            AerotapeError: there is no archive within the timeout, or a channel cannot be used.
        """
        address = self.address
        deadline_ns = time.monotonic_ns() + address.timeout_ns
        what = f"to connect to the archive at {address.request_channel}"
        response = ChannelUri.parse(address.response_channel)
        request = ChannelUri.parse(address.request_channel)
        channels.add_control_defaults(response)
        channels.add_control_defaults(request)
        if not response.has_control_mode_response:
            session_id = str(channels.random_session_id())
            response.put("session-id", session_id)
            request.put("session-id", session_id)
        subscription = self._subscription = yield from add(
            lambda: self._aeron.async_add_subscription(str(response), address.response_stream_id),
            deadline_ns,
            what,
        )
        if response.has_control_mode_response:
            request.put("response-correlation-id", str(subscription.registration_id))
        publication = self._publication = yield from self._add_publication(
            request, deadline_ns, what
        )
        yield from wait_for(
            lambda: publication.is_connected or None, deadline_ns, f"{what}: nobody listens there"
        )
        if channels.has_wildcard_port(str(response)):
            endpoint = yield from wait_for(subscription.resolved_endpoint, deadline_ns, what)
            response.resolve_wildcard_port(endpoint)
        yield from self._open_session(str(response), deadline_ns, what)
        self._is_connected = True

    def _add_publication(
        self, channel: ChannelUri, deadline_ns: int, what: str
    ) -> Step[ExclusivePublication]:
        stream_id = self.address.request_stream_id
        return add(
            lambda: self._aeron.async_add_exclusive_publication(str(channel), stream_id),
            deadline_ns,
            what,
        )

    def _open_session(self, answer_channel: str, deadline_ns: int, what: str) -> Step[None]:
        address = self.address
        connect = codecs.AuthConnectRequest(
            correlation_id=self._aeron.next_correlation_id(),
            response_stream_id=address.response_stream_id,
            version=PROTOCOL_VERSION,
            response_channel=answer_channel,
            encoded_credentials=address.credentials,
            client_info=f"name={address.client_name} version={__version__}",
        )
        answer = yield from self._exchange(connect.correlation_id, connect, deadline_ns, what)
        if isinstance(answer, codecs.Challenge):
            if address.credentials:
                raise ArchiveError("Replication does not support challenge/response authentication")
            # As a client without credentials: an empty answer, which the archive may accept.
            response = codecs.ChallengeResponse(
                control_session_id=answer.control_session_id,
                correlation_id=self._aeron.next_correlation_id(),
            )
            answer = yield from self._exchange(response.correlation_id, response, deadline_ns, what)
        if not isinstance(answer, codecs.ControlResponse):
            raise ArchiveError(f"failed {what}: it answers with {type(answer).__name__}")
        self._control_session_id = answer.control_session_id
        if (answer.version or 0) >= VERSION_WITH_ARCHIVE_ID:
            yield from self._ask(codecs.ArchiveIdRequest(), deadline_ns, what)
        # The archive repeats its answer until it has had a request.
        keep_alive = codecs.KeepAliveRequest(
            control_session_id=answer.control_session_id, correlation_id=NULL_VALUE
        )
        yield from self._send(keep_alive, self._request_publication, deadline_ns, what)

    def add_replay_publication(self, subscription_id: int) -> Step[ExclusivePublication]:
        """Open another way to the archive: it replays back along it, into a subscription of ours.

        Args:
            subscription_id: registration id of the subscription, which has a response channel.
        """
        what = f"to reach the archive at {self.address.request_channel} for a replay"
        deadline_ns = time.monotonic_ns() + self.address.timeout_ns
        uri = ChannelUri.parse(self.address.request_channel)
        channels.add_control_defaults(uri)
        uri.put("response-correlation-id", str(subscription_id))
        added = self._replay_publication = yield from self._add_publication(uri, deadline_ns, what)
        yield from wait_for(lambda: added.is_connected or None, deadline_ns, what)
        return added

    # ---- asking -------------------------------------------------------------------------------

    def ask(
        self, request: Request, what: str, publication: ExclusivePublication | None = None
    ) -> Step[int]:
        """Send a request of this session and return the id or position it is answered with.

        Args:
            request: its control session and correlation id are filled in.
            what: what is asked for, for error messages.
            publication: another way to the archive than this session's.

        Raises:
            ArchiveError: it answers with an error, or has reported one meanwhile.
            AeronTimeoutError: it does not answer in time.
        """
        deadline_ns = time.monotonic_ns() + self.address.timeout_ns
        answer = yield from self._ask(request, deadline_ns, what, publication)
        if not isinstance(answer, codecs.ControlResponse):
            raise ArchiveError(f"failed {what}: it answers with {type(answer).__name__}")
        return answer.relevant_id

    def descriptor(self, recording_id: int) -> Step[RecordingDescriptor | None]:
        """Return the descriptor of a recording, None when there is none (errors as `ask`)."""
        what = f"to fetch remote recording descriptor: recordingId={recording_id}"
        request = codecs.ListRecordingRequest(recording_id=recording_id)
        deadline_ns = time.monotonic_ns() + self.address.timeout_ns
        answer = yield from self._ask(request, deadline_ns, what)
        return descriptor_of(answer) if isinstance(answer, codecs.RecordingDescriptor) else None

    def _ask(
        self,
        request: Request,
        deadline_ns: int,
        what: str,
        publication: ExclusivePublication | None = None,
    ) -> Step[Message]:
        assert self._control_session_id is not None, "requests come after the handshake"
        request.control_session_id = self._control_session_id
        request.correlation_id = self._aeron.next_correlation_id()
        return (
            yield from self._exchange(
                request.correlation_id, request, deadline_ns, what, publication
            )
        )

    def _exchange(
        self,
        correlation_id: int,
        message: Request | Message,
        deadline_ns: int,
        what: str,
        publication: ExclusivePublication | None = None,
    ) -> Step[Message]:
        self._answers.clear()
        self._awaited = correlation_id
        try:
            yield from self._send(
                message, publication or self._request_publication, deadline_ns, what
            )
            return (yield from wait_for(self._next_answer, deadline_ns, what))
        finally:
            self._awaited = None

    def _next_answer(self) -> Message | None:
        if not self._answers:
            self.poll()
        return self._answers.popleft() if self._answers else None

    @property
    def _request_publication(self) -> ExclusivePublication:
        assert self._publication is not None, "connect comes first"
        return self._publication

    def _send(
        self,
        message: Request | Message,
        publication: ExclusivePublication,
        deadline_ns: int,
        what: str,
    ) -> Step[None]:
        data = message.encode()
        while (result := publication.offer(data)) < 0:
            if result not in (BACK_PRESSURED, ADMIN_ACTION):
                raise ArchiveError(
                    f"failed {what}: the connection to the archive is gone ({result})"
                )
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(f"failed {what}: the archive reads no requests")
            yield

    # ---- listening ----------------------------------------------------------------------------

    def poll(self) -> None:
        """Look at what the archive has said: keep what is awaited, raise what is an error.

        Raises:
            ArchiveError: an error of the archive, or it is not connected any more.
        """
        if self._subscription is None:
            return
        messages = self._subscription.poll(_FRAGMENT_LIMIT)
        for payload, *_ in messages:
            try:
                message = decode_answer(payload)
            except CodecError as error:
                raise ArchiveError(f"the source archive sent what cannot be read: {error}") from (
                    error
                )
            if message is not None:
                self._take(message)
        if self._is_connected and not messages and not self._subscription.is_connected:
            self._is_connected = False
            raise ArchiveError("the source archive is not connected any more")

    def _take(self, message: Message) -> None:
        is_awaited = getattr(message, "correlation_id", None) == self._awaited
        if isinstance(message, codecs.ControlResponse):
            if self._control_session_id not in (None, message.control_session_id):
                return
            if message.code is codecs.ControlResponseCode.ERROR:
                if is_awaited or self._control_session_id is not None:
                    raise ArchiveError(
                        message.error_message, message.relevant_id, message.correlation_id
                    )
            elif is_awaited:
                self._answers.append(message)
        elif is_awaited and isinstance(message, codecs.Challenge | codecs.RecordingDescriptor):
            self._answers.append(message)

    # ---- the end ------------------------------------------------------------------------------

    def stop_replay(self, replay_session_id: int) -> None:
        """Have the archive stop a replay, if it can still be told."""
        self._say(
            codecs.StopReplayRequest(
                correlation_id=self._aeron.next_correlation_id(),
                replay_session_id=replay_session_id,
            )
        )

    def close(self) -> None:
        """Say goodbye and give both streams back. Idempotent."""
        self._say(codecs.CloseSessionRequest())
        self._control_session_id = None
        for resource in (self._replay_publication, self._publication, self._subscription):
            if resource is not None:
                resource.close()
        self._replay_publication = self._publication = self._subscription = None

    def _say(self, message: codecs.StopReplayRequest | codecs.CloseSessionRequest) -> None:
        """Send without waiting: of no great matter when it does not get there."""
        if self._control_session_id is not None and self._publication is not None:
            message.control_session_id = self._control_session_id
            with contextlib.suppress(AerotapeError):  # the media driver is gone
                self._publication.offer(message.encode())
