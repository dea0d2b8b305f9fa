"""What a client knows of its connection, whichever way it waits."""

from __future__ import annotations

from aerotape.aeron import Aeron
from aerotape.archive.client.session import ControlSession
from aerotape.archive.protocol import NULL_VALUE
from aerotape.text import shown


class ClientFacts:
    """Properties of a connection to an archive."""

    _aeron: Aeron
    _session: ControlSession
    _archive_id: int

    @property
    def aeron(self) -> Aeron:
        """The Aeron client in use, to publish and subscribe with."""
        return self._aeron

    @property
    def archive_id(self) -> int:
        """The archive's id, as told at the connect; -1 if it is too old to have one."""
        return self._archive_id

    @property
    def archive_version(self) -> str:
        """The version of the control protocol that the archive speaks, like ``1.12.0``."""
        return self._session.archive_version_text

    @property
    def control_session_id(self) -> int:
        """The session's id at the archive."""
        session_id = self._session.control_session_id
        return NULL_VALUE if session_id is None else session_id

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed or the archive has been found gone."""
        return self._session.is_closed

    def __repr__(self) -> str:
        return shown(self, "_session.publication.channel", "archive_id", "control_session_id")
