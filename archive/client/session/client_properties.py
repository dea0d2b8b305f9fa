"""Properties of a connection, for the blocking and the asynchronous client."""

from __future__ import annotations

from aerotape.aeron import Aeron
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.catalog.layout import version_string
from aerotape.formatting import shown
from aerotape.protocol import NULL_VALUE


class ClientProperties:
    """Properties of a connection to an archive."""

    _aeron: Aeron
    _session: ClientSession

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
