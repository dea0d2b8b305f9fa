"""The interface of authorisation services, which decide on requests, and safe calls to them.

An authorisation service is any object with the method of `AuthorisationService`. It is called
before every request of a control session, keep-alives included. A client whose first request is
refused cannot use its session, so allow `ArchiveIdRequest` (68) and `KeepAliveRequest` (61) for
every client that may connect.

Only `True` allows. A service that raises, or returns anything else, has refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog


class AuthorisationService(Protocol):
    """Decides on requests. Called on the conductor's thread: must not block."""

    def is_authorised(
        self,
        protocol_id: int,
        action_id: int,
        type: object,
        encoded_principal: bytes,
        /,
    ) -> bool:
        """Return True to allow a request.

        Args:
            protocol_id: id of the SBE schema; 101 for the archive's control protocol.
            action_id: the request's template id in that schema.
            type: None; some protocols of Aeron have kinds of one request.
            encoded_principal: the client's identity, from the authenticator.
        """
        ...


class AllowAllActions:
    """Allows every request, as the reference's default does."""

    def is_authorised(
        self, _protocol_id: int, _action_id: int, _type: object, _principal: bytes, /
    ) -> bool:
        """Return True."""
        return True


class DenyAllActions:
    """Refuses every request, the first of a client included."""

    def is_authorised(
        self, _protocol_id: int, _action_id: int, _type: object, _principal: bytes, /
    ) -> bool:
        """Return False."""
        return False


class ExplainedAuthorisation(AuthorisationService, Protocol):
    """A service that can say why it refuses; optional."""

    def why_refused(self, protocol_id: int, action_id: int, encoded_principal: bytes, /) -> str:
        """Return the reason for the refusal of the last request, for its client; may be empty."""
        ...


@dataclass(eq=False)
class GuardedAuthorisation:
    """Calls an authorisation service; an exception that it raises refuses the request."""

    service: AuthorisationService
    errors: ErrorLog

    def is_authorised(self, protocol_id: int, action_id: int, encoded_principal: bytes) -> bool:
        """Return whether the service returns True."""
        try:
            answer: object = self.service.is_authorised(
                protocol_id, action_id, None, encoded_principal
            )
            if answer is True or answer is False:
                return answer
            # A coroutine, for example, would count as true.
            raise TypeError(f"is_authorised returned {answer!r}, neither True nor False")
        # Not even SystemExit of a service may end the archive.
        except BaseException as error:
            self.errors.record(
                "authorisation service failed",
                f"request {action_id} is refused: {type(error).__name__}: {error}",
                exception=error,
            )
            return False

    def why_refused(self, protocol_id: int, action_id: int, encoded_principal: bytes) -> str:
        """Return the service's reason for the refusal of a request, "" when it gives none."""
        explain = getattr(self.service, "why_refused", None)
        if explain is None:
            return ""
        try:
            return str(explain(protocol_id, action_id, encoded_principal))
        except Exception as error:
            self.errors.record("authorisation service failed", str(error), exception=error)
            return ""
