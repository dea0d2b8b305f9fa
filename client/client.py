"""The blocking client of an archive."""

from __future__ import annotations

from typing import NamedTuple

from aerotape.aeron import Aeron
from aerotape.catalog.layout import version_string
from aerotape.client.blocking.ledgers import LedgerMethods
from aerotape.client.blocking.queries import QueryMethods
from aerotape.client.blocking.recordings import RecordingMethods
from aerotape.client.blocking.segments import SegmentMethods
from aerotape.client.blocking.streams import StreamMethods
from aerotape.client.connection import (
    ConnectionSettings,
)
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.keep_alive import IdleReader
from aerotape.context import Closing
from aerotape.formatting import shown
from aerotape.protocol import NULL_VALUE


class ClientProperties:
    """Properties of a connection to an archive."""

    _aeron: Aeron
    _session: ClientSession
    _replay_channel: str

    @property
    def aeron(self) -> Aeron:
        """The Aeron client in use, to publish and subscribe with."""
        return self._aeron

    @property
    def archive_id(self) -> int:
        """The archive's id, as received at connect; -1 for an archive too old to have one."""
        return self._session.archive_id

    @property
    def archive_version(self) -> str:
        """The version of the control protocol of the archive, like ``1.12.0``."""
        return version_string(self._session.archive_version)

    @property
    def control_session_id(self) -> int:
        """The session's id at the archive."""
        session_id = self._session.control_session_id
        return NULL_VALUE if session_id is None else session_id

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed or the archive went away."""
        return self._session.is_closed

    def __repr__(self) -> str:
        return shown(self, "_session.publication.channel", "archive_id", "control_session_id")


class Access(NamedTuple):
    """The connection of a client, for tasks that use it.

    Attributes:
        session: the control session.
        replay_channel: where the archive replays to, if nothing else is given.
    """

    session: ClientSession
    replay_channel: str


def access(client: ClientProperties) -> Access:
    """Return the connection of a client, blocking or not."""
    return Access(client._session, client._replay_channel)


class Client(
    RecordingMethods,
    SegmentMethods,
    QueryMethods,
    StreamMethods,
    LedgerMethods,
    ClientProperties,
    Closing,
):
    """A connection to an archive, with the requests of its control protocol; thread-safe."""

    def __init__(self, connecting: ConnectionSettings, session: ClientSession) -> None:
        """Create a client of an open session."""
        super().__init__(session)
        self._aeron = connecting.aeron
        self._connecting = connecting
        self._replay_channel = connecting.replay_channel
        interval_ns = connecting.keep_alive_interval_ns
        self._reader = IdleReader(session, interval_ns) if interval_ns > 0 else None

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._reader is not None:
            self._reader.close()
        self._session.close()
        if self._connecting.owned_aeron is not None:
            self._connecting.owned_aeron.close()
