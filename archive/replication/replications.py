"""All replications into this archive: checks requests, advances and ends sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from aerotape.archive.replication.request import ReplicationRequest
from aerotape.channel_uri import ChannelUri
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import SOON_NS

if TYPE_CHECKING:
    from aerotape._native import AeronClient
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.observer import RecordingObserver
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.replication.replication_session import ReplicationSession
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.client.credentials import Login
    from aerotape.client.session.client_session import ClientSession
    from aerotape.waiting import Task

_QUIET_NS: Final = 10_000_000


@dataclass(eq=False, kw_only=True)
class Replications:
    """All replications into this archive.

    Attributes:
        next_id: returns an id that no control session and no other replication has.
    """

    config: ArchiveConfig
    archive_id: int
    client: AeronClient
    catalog: Catalog
    recordings: Recordings
    errors: ErrorLog
    next_id: Callable[[], int]
    # A stopped session leaves the first at once, the second when it is closed.
    _by_id: dict[int, ReplicationSession] = field(default_factory=dict, init=False)
    _sessions: list[ReplicationSession] = field(default_factory=list, init=False)

    @property
    def wants_within_ns(self) -> int | None:
        """Nanoseconds within which `do_work` has to be called; None without replications."""
        if not self._sessions:
            return None
        is_quiet = all(session.is_quiet for session in self._sessions)
        return _QUIET_NS if is_quiet else SOON_NS

    def recording_ids(self) -> set[int]:
        """Return the ids of the recordings that exist and are replicated to."""
        return {session.dst_recording_id for session in self._sessions} - {NULL_VALUE}

    def start(
        self, replication_id: int, observer: RecordingObserver, request: ReplicationRequest
    ) -> None:
        """Start a replication.

        Args:
            replication_id: of `next_id`.
            observer: is notified of its signals and errors, and of those of its recording.

        Raises:
            ArchiveError: it is refused; with the reference's error code.
            ChannelUriError: the replication channel is not a channel URI.
        """
        # Loaded with the first replication: this brings the whole client, which a daemon without
        # replications does not need.
        from aerotape.archive.replication.replication_session import (
            ReplicationSession,
            stopped_destination,
        )

        if not request.replication_channel:
            request = replace(request, replication_channel=self.config.replication_channel)
        if request.uses_response_channel:
            if request.live_destination:
                raise ArchiveError("response channels can't be used with live destinations")
            if request.is_tagged:
                raise ArchiveError("response channels can't be used with tagged replication")
        if request.dst_recording_id != NULL_VALUE:
            stopped_destination(self.catalog, self.recordings, request.dst_recording_id)
        session = ReplicationSession(
            replication_id,
            request,
            observer,
            self._open_source(request, replication_id),
            aeron=self.client,
            catalog=self.catalog,
            recordings=self.recordings,
        )
        self._by_id[replication_id] = session
        self._sessions.append(session)

    def open_session(
        self, control_channel: str, login: Callable[[], Login] | None
    ) -> Task[ClientSession]:
        """Open a session with another archive, as a replication from it does.

        Args:
            login: as in ReplicationRequest.
        """
        stream_id = self.config.control_stream_id
        return self._open_source(
            ReplicationRequest(NULL_VALUE, control_channel, stream_id, login=login), 0
        )

    def _open_source(self, request: ReplicationRequest, replication_id: int) -> Task[ClientSession]:
        from aerotape.client.credentials import Login
        from aerotape.client.session.handshake import open_session

        config = self.config

        def refused(_: bytes) -> bytes:
            if request.encoded_credentials:
                raise ArchiveError("Replication does not support challenge/response authentication")
            # As a client without credentials: an empty response, which the source may accept.
            return b""

        # As in the reference, whose own client takes them from the archive's properties too.
        parameters = {
            "term-length": str(config.control_term_buffer_length),
            "mtu": str(config.control_mtu_length),
            "sparse": str(config.control_term_buffer_sparse).lower(),
        }
        given = request.login
        login = Login(request.encoded_credentials, refused) if given is None else given()
        return open_session(
            self.client,
            request_channel=request.src_control_channel,
            request_stream_id=request.src_control_stream_id,
            response_channel=request.src_response_channel or self._response_channel(),
            response_stream_id=config.control_response_stream_id,
            timeout_ns=config.message_timeout_ns,
            login=login,
            stream_parameters=parameters,
            client_name=(
                f"archive archiveId={self.archive_id} replicationSessionId={replication_id}"
            ),
        )

    def _response_channel(self) -> str:
        """Return the channel for the source's responses: on the host of the control channel."""
        config = self.config
        if config.control_response_channel:
            return config.control_response_channel
        host = "localhost"
        if config.control_channel_enabled:
            endpoint = ChannelUri.parse(config.control_channel).get("endpoint") or ""
            host = endpoint.rpartition(":")[0] or host
        return f"aeron:udp?endpoint={host}:0"

    def stop(self, replication_id: int) -> bool:
        """Stop a replication, False if there is none; the data recorded so far stays."""
        session = self._by_id.pop(replication_id, None)
        if session is None:
            return False
        session.is_done = True
        return True

    def do_work(self) -> None:
        """Advance each replication by one step.

        Raises:
            ClosedError: the media driver is lost.
        """
        for session in list(self._sessions):
            session.do_work()
            if session.is_done:
                self._remove(session)

    def recording_stopped(self, recording_id: int, position: int) -> None:
        """Handle the end of a recording, before its STOP signal is sent."""
        for session in list(self._sessions):
            if session.dst_recording_id == recording_id:
                session.recording_stopped(position)
                if session.is_done:
                    self._remove(session)

    def _remove(self, session: ReplicationSession) -> None:
        self._by_id.pop(session.replication_id, None)
        self._sessions.remove(session)
        if session.failure is not None:
            self.errors.record(
                "replication failed", f"{session.failure} (replication {session.replication_id})"
            )
        session.close()

    def close(self) -> None:
        """End all replications; the data recorded so far stays."""
        for session in list(self._sessions):
            self._remove(session)
