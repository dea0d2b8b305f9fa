"""What every family of requests needs: the session, and the Aeron client beside it."""

from __future__ import annotations

from aerotape.aeron import Aeron
from aerotape.archive.client.session import ControlSession, Request


class Requests:
    """Base of the classes that hold an archive's requests, a family each.

    Every request raises `ArchiveError` with the archive's error code when it is refused,
    `AeronTimeoutError` when there is no answer in time and `ClosedError` when the archive has
    gone away or the client is closed.

    Positions and lengths are bytes, timestamps milliseconds since the epoch; -1 stands, as
    everywhere in Aeron, for a position or id that there is not.
    """

    def __init__(self, aeron: Aeron, session: ControlSession) -> None:
        self._aeron = aeron
        self._session = session

    def _ask(self, message: Request, what: str) -> int:
        return self._session.request(message, what).relevant_id
