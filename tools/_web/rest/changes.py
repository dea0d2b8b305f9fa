"""Requests that change the archive: only if they are allowed, and for users who may."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from fastapi import HTTPException, Request

from aerotape.archive.features.built_in import FEATURES
from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users_file import User
from aerotape.catalog.file.entries import checked_entries
from aerotape.catalog.recovery.suspect_marks import SuspectNote, accept_notes
from aerotape.clients import ArchiveClient
from aerotape.clock import epoch_ms
from aerotape.codecs.generated import archive as codecs
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.session import ControlSession

_T = TypeVar("_T")
_PERMISSIONS = Permissions(FEATURES)
ACCEPTING: Final = codecs.PurgeRecordingRequest.TEMPLATE_ID
"""The message that a role must allow to accept damage."""


class Changes:
    """Makes requests in the service's control session."""

    def __init__(
        self, session: ControlSession, observed: ObservedArchive, *, are_allowed: bool
    ) -> None:
        """Create it.

        Args:
            session: the control session.
            observed: the archive; its files are read again after a change.
            are_allowed: whether anything may be changed.
        """
        self._session = session
        self._observed = observed
        self._are_allowed = are_allowed

    def request(
        self,
        request: Request,
        template_id: int,
        call: Callable[[ArchiveClient], _T],
        schema_id: int = codecs.SCHEMA_ID,
    ) -> _T:
        """Make a request that changes something.

        Args:
            request: of the HTTP client, with its user.
            template_id: of the message of the archive's protocol, which the user's role must allow.
            call: makes it.
            schema_id: of the message.

        Raises:
            HTTPException: 403, nothing may be changed, or not by this user.
            AerotapeError: the archive refuses it, or is not there.
        """
        self.check(request, template_id, schema_id)
        try:
            return self._session.run(call)
        finally:
            self._observed.renew()

    def accept_damage(self, request: Request, recording_id: int) -> list[SuspectNote]:
        """Accept the damage of a recording, in the archive's directory; return what was accepted.

        It takes the role that may delete recordings: the protocol has no request for it.

        Args:
            request: of the HTTP client, with its user.
            recording_id: the recording.

        Raises:
            HTTPException: 403, nothing may be changed, or not by this user.
            StorageError: the service cannot write there.
            UnknownRecordingError: there is no such recording.
        """
        self.check(request, ACCEPTING)
        directory = self._observed.directory
        checked_entries(open_directory(directory).entries(), recording_id, directory)
        try:
            return accept_notes(directory, recording_id, epoch_ms())
        finally:
            self._observed.renew()

    def check(self, request: Request, template_id: int, schema_id: int = codecs.SCHEMA_ID) -> None:
        """Refuse a request as `request` does (HTTPException, 403)."""
        if reason := self.refusal(request, template_id, schema_id):
            raise HTTPException(HTTPStatus.FORBIDDEN, reason)

    def refusal(
        self, request: Request, template_id: int, schema_id: int = codecs.SCHEMA_ID
    ) -> str:
        """The reason for which `request` would refuse a request; "" if there is none."""
        if not self._are_allowed:
            return "the service was started without --allow-changes"
        user: User | None = getattr(request.state, "user", None)
        if user is not None and not _PERMISSIONS.allow(user.role, template_id, schema_id):
            return f"user {user.name} has the role {user.role.value}"
        return ""
