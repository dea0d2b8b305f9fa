r"""A client's control session: from its connect request until either side closes it.

    INIT -> CONNECTING -> CONNECTED -> (CHALLENGED ->) AUTHENTICATED -> ACTIVE -> DONE
                                    \-> REJECTED ------------------------------> DONE

INIT adds the response publication and the session's counter, CONNECTING waits for the client to
subscribe. A CONNECTED session is authenticated, or refused for its protocol version; the OK (or
the refusal) is sent again every 200 ms, since the client may not yet have seen the image. The
first request afterwards makes it ACTIVE. It ends when the client does not receive its responses
(`response_sender`) or closes it, or when the image of the request stream becomes unavailable.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.archive.control.responses import RESPONSE_NOT_CONNECTED, ResponseSender
from aerotape.archive.security.authentication import NULL_PRINCIPAL, GuardedAuthenticator
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.driver_tasks import add
from aerotape.protocol import PROTOCOL_VERSION, ErrorCode
from aerotape.waiting import SOON_NS, Running

if TYPE_CHECKING:
    from collections.abc import Callable

    from aerotape._native import (
        BulkOffer,
        Counter,
        ExclusivePublication,
        PendingCounter,
        PendingExclusivePublication,
    )

RESEND_INTERVAL_MS = 200
_RESEND_INTERVAL_NS = RESEND_INTERVAL_MS * 1_000_000
# Reasons for the end of a session that are not logged.
SESSION_CLOSED = "session closed"
REJECTED = "authentication rejected"
REQUEST_IMAGE_GONE = "control request publication image unavailable"
_QUIET_ENDINGS = (SESSION_CLOSED, RESPONSE_NOT_CONNECTED, REQUEST_IMAGE_GONE)


class ControlSessionState(Enum):
    """States of a control session."""

    INIT = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    ACTIVE = auto()
    REJECTED = auto()
    DONE = auto()


_UNDECIDED = (ControlSessionState.CONNECTED, ControlSessionState.CHALLENGED)
_POLLED = (
    ControlSessionState.INIT,
    ControlSessionState.CONNECTING,
    *_UNDECIDED,
    ControlSessionState.DONE,
)
_ADMITTED = (ControlSessionState.AUTHENTICATED, ControlSessionState.ACTIVE)


class ControlSession(ResponseSender):
    """One client. All methods are for the conductor's thread.

    Attributes:
        subscription_id: registration id of the control subscription of that image.
        source_identity: of the image of the client's requests.
        principal: the authenticated principal.
    """

    def __init__(
        self,
        session_id: int,
        correlation_id: int,
        *,
        subscription_id: int,
        image_id: int,
        source_identity: str,
        description: str,
        add_publication: Callable[[], PendingExclusivePublication],
        counter: PendingCounter,
        authenticator: GuardedAuthenticator,
        credentials: bytes,
        invalid_version: str | None,
        capabilities: int = 0,
        connect_timeout_ms: int,
        liveness_check_interval_ms: int,
        now_ms: int,
    ) -> None:
        """Begin in INIT.

        Args:
            correlation_id: of the connect request.
            description: the client's channel and stream, for messages.
            add_publication: requests the response publication; called again after a temporary
                refusal of the driver.
            credentials: of the connect request, for the authenticator.
            invalid_version: why the client's version is refused, None when it is accepted.
            capabilities: those of the archive's features that the client asks for (`Feature`).
            now_ms: milliseconds of a monotonic clock, as in all calls.
        """
        super().__init__(session_id, image_id, connect_timeout_ms, now_ms)
        self.subscription_id = subscription_id
        self.source_identity = source_identity
        self.principal = NULL_PRINCIPAL
        self.state = ControlSessionState.INIT
        self.end_reason = ""
        self._correlation_id = correlation_id
        self._description = description
        self._add_publication = add_publication
        self._pending_publication: Running[ExclusivePublication] | None = None
        self._pending_counter: PendingCounter | None = counter
        self._counter: Counter | None = None
        self._authenticator = authenticator
        self._refusal = REJECTED
        self._is_admitted = authenticator.connect_request(session_id, credentials)
        self._invalid_version = invalid_version
        self._capabilities = capabilities
        self._liveness_check_interval_ms = liveness_check_interval_ms
        self._liveness_check_at_ms = now_ms + liveness_check_interval_ms
        self._resend_at_ms = 0

    # ---- state --------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        return self.state is ControlSessionState.DONE

    @property
    def is_active(self) -> bool:
        return self.state is ControlSessionState.ACTIVE

    @property
    def is_authenticated(self) -> bool:
        """Whether the client is authenticated, with or without a request so far."""
        return self.state in _ADMITTED

    @property
    def wants_within_ns(self) -> int | None:
        """Nanoseconds within which `do_work` has to be called; None when the client is idle."""
        if self.listing is not None and not self._queue:
            # The end of a bulk offer ends the conductor's wait by itself.
            return 0 if self.listing.bulk_offer is None else _RESEND_INTERVAL_NS
        if self._queue or self.state in _POLLED:
            return SOON_NS
        return None if self.state is ControlSessionState.ACTIVE else _RESEND_INTERVAL_NS

    @property
    def bulk_offer(self) -> BulkOffer | None:
        """The descriptors that are sent to the client while the conductor waits, if any."""
        return None if self.listing is None else self.listing.bulk_offer

    @property
    def ended_badly(self) -> bool:
        """Whether the reason of the end is logged."""
        return self.is_done and not self.end_reason.startswith(_QUIET_ENDINGS)

    def __str__(self) -> str:
        return f"control session {self.session_id} ({self._description})"

    def attempt_to_activate(self) -> None:
        """Become ACTIVE: a request shows that the client has received the OK."""
        if self.state is ControlSessionState.AUTHENTICATED and self._invalid_version is None:
            self.state = ControlSessionState.ACTIVE

    # Called by the authenticator through its proxy. A refusal is final.

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send the client a challenge; False under back pressure."""
        if self.state not in _UNDECIDED or not self._send_unanswered(
            codecs.Challenge(
                control_session_id=self.session_id,
                correlation_id=self._correlation_id,
                version=PROTOCOL_VERSION,
                encoded_challenge=encoded_challenge,
            ).encode()
        ):
            return False
        self.state = ControlSessionState.CHALLENGED
        return True

    def authenticate(self, encoded_principal: bytes) -> bool:
        """Admit the client; False under back pressure."""
        if self.state not in _UNDECIDED or not self._offer(self._connect_response()):
            return False
        self.principal = encoded_principal
        self.state = ControlSessionState.AUTHENTICATED
        self._resend_at_ms = self._now_ms + RESEND_INTERVAL_MS
        return True

    def reject(self, why: str = "") -> None:
        """Refuse the client, with a reason for it unless `why` is empty."""
        if self.state is not ControlSessionState.DONE:
            self.state = ControlSessionState.REJECTED
            self._refusal = f"{REJECTED}: {why}" if why else REJECTED
            self._resend_at_ms = 0

    def on_challenge_response(self, correlation_id: int, encoded_credentials: bytes) -> None:
        """Pass the response to a challenge to the authenticator; ignored without a challenge."""
        if self.state is ControlSessionState.CHALLENGED:
            self._correlation_id = correlation_id
            if not self._authenticator.challenge_response(self.session_id, encoded_credentials):
                self.reject()

    def abort(self, reason: str) -> None:
        """End the session; it is closed in the next duty cycle."""
        if self.state is not ControlSessionState.DONE:
            self.state = ControlSessionState.DONE
            self.end_reason = reason
            self.on_work(self.session_id)

    def close(self) -> None:
        """Release publication and counter; responses that were not read are dropped."""
        self.listing = None
        self._queue.clear()
        if self._publication is not None:
            self._publication.revoke()
        elif self._pending_publication is not None:
            self._pending_publication.close()
        if self._counter is not None:
            self._counter.close()
        elif self._pending_counter is not None:
            self._pending_counter.cancel()
        self._publication = self._pending_publication = None
        self._counter = self._pending_counter = None

    # ---- the duty cycle -----------------------------------------------------------------------

    def do_work(self, now_ms: int) -> None:
        """Advance by a step. Exceptions are for the caller to handle."""
        self._now_ms = now_ms
        if self._activity_deadline_ms is not None and now_ms > self._activity_deadline_ms:
            if self.state is ControlSessionState.ACTIVE:
                if not self._has_been_sent_to():
                    self.abort(
                        "failed to send response for more than"
                        f" connectTimeoutMs={self._connect_timeout_ms}"
                    )
            else:
                self.abort(
                    f"failed to establish initial connection: state={self.state.name}"
                    f" connectTimeoutMs={self._connect_timeout_ms}"
                )
        match self.state:
            case ControlSessionState.INIT:
                self._init()
            case ControlSessionState.CONNECTING:
                if self._publication is not None and self._publication.is_connected:
                    self.state = ControlSessionState.CONNECTED
                    self._on_connected()
            case ControlSessionState.CONNECTED:
                self._on_connected()
            case ControlSessionState.CHALLENGED:
                self._authenticator.challenged(self)
            case ControlSessionState.AUTHENTICATED:
                if self._is_resend_due():
                    self._offer(self._connect_response())
                self._drain()
            case ControlSessionState.ACTIVE:
                self._check_liveness()
                self._drain()
                self._advance_listing()
            case ControlSessionState.REJECTED:
                self._send_refusal(ErrorCode.AUTHENTICATION_REJECTED, self._refusal)

    def _init(self) -> None:
        if self._publication is None:
            if self._pending_publication is None:
                adding = add(self._add_publication, "the response stream", None)
                self._pending_publication = Running(adding)
            self._pending_publication.advance()
            if self._pending_publication.is_done:
                self._publication = self._pending_publication.result
                self._pending_publication = None
        if self._pending_counter is not None:
            self._counter = self._pending_counter.poll()
            if self._counter is not None:
                self._pending_counter = None
        if self._publication is not None and self._counter is not None:
            self._counter.set_reference_id(self._publication.registration_id)
            self._counter.set(self.session_id)
            self._activity_deadline_ms = self._now_ms + self._connect_timeout_ms
            self.state = ControlSessionState.CONNECTING

    def _is_resend_due(self) -> bool:
        if self._now_ms < self._resend_at_ms:
            return False
        self._resend_at_ms = self._now_ms + RESEND_INTERVAL_MS
        return True

    def _on_connected(self) -> None:
        if self._invalid_version is not None:
            # As in the reference, relevantId is the control session's.
            self._send_refusal(self.session_id, self._invalid_version)
        elif not self._is_admitted:
            self.reject()
        else:
            # In each duty cycle: an authenticator that uses other threads may have a result.
            self._authenticator.connected(self)

    def _connect_response(self) -> bytes:
        return responses.control_response(
            self.session_id,
            self._correlation_id,
            self.session_id,
            ControlResponseCode.OK,
            version=PROTOCOL_VERSION | self._capabilities,
        )

    def _send_refusal(self, relevant_id: int, why: str) -> None:
        if self._is_resend_due():
            self._send_unanswered(
                responses.control_response(
                    self.session_id,
                    self._correlation_id,
                    relevant_id,
                    ControlResponseCode.ERROR,
                    why,
                )
            )

    def _send_unanswered(self, message: bytes) -> bool:
        """Send a challenge or a refusal without resetting the connect timeout."""
        deadline_ms = self._activity_deadline_ms
        is_sent = self._offer(message)
        self._activity_deadline_ms = deadline_ms
        return is_sent

    def _check_liveness(self) -> None:
        if self._now_ms >= self._liveness_check_at_ms:
            self._liveness_check_at_ms = self._now_ms + self._liveness_check_interval_ms
            self._offer(codecs.Ping(control_session_id=self.session_id).encode())
        if self._publication is not None and not self._publication.is_connected:
            self.abort(RESPONSE_NOT_CONNECTED)
