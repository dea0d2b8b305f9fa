"""Requests that change the archive: only if they are allowed, and for users who may."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from fastapi import HTTPException, Request

from aerotape.archive.features.built_in import FEATURES
from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users_file import User
from aerotape.clients import ArchiveClient
from aerotape.codecs.generated import archive as codecs
from aerotape.tools._web.session import ControlSession

_T = TypeVar("_T")
_PERMISSIONS = Permissions(FEATURES)


class Changes:
    """Makes requests in the service's control session."""

    def __init__(self, session: ControlSession, *, are_allowed: bool) -> None:
        """Create it.

        Args:
            session: the control session.
            are_allowed: whether anything may be changed.
        """
        self._session = session
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
        if reason := self.refusal(request, template_id, schema_id):
            raise HTTPException(HTTPStatus.FORBIDDEN, reason)
        return self._session.run(call)

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
