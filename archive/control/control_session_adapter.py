"""Control messages: decoded, matched with their session, authorised, and passed to a handler.

A connect request begins a control session. Every other request belongs to one and is valid only
over the image that began it (a replay with a token comes over another image), and once the
authenticator has admitted the client and the authorisation service permits it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from aerotape import counter_keys
from aerotape.archive.control import requests
from aerotape.archive.control.control_session import SESSION_CLOSED, ControlSession
from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.control.signals import SignalAudience
from aerotape.archive.replay.tokens import token_replay_channel
from aerotape.archive.security.authentication import GuardedAuthenticator
from aerotape.catalog.layout import version_string
from aerotape.channel_uri import ChannelUri, stripped_channel
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import archive_removed
from aerotape.codecs.runtime import HEADER
from aerotape.errors import CodecError, ConfigurationError
from aerotape.protocol import (
    PROTOCOL_MAJOR_VERSION,
    PROTOCOL_VERSION,
    ErrorCode,
)
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape._native import AeronClient
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.control_sessions import ControlSessions
    from aerotape.archive.control.services import Services
    from aerotape.codecs.runtime import Message, SchemaCodecs

# More than any request needs: four channels and credentials for another archive.
MAX_MESSAGE_LENGTH = 64 * 1024
# Of changes for a disk that stands still, so that clients do not fill the memory.
_MAX_WAITING = 1_000


@dataclass(eq=False, kw_only=True)
class ControlSessionAdapter:
    """Decodes and routes control messages. All methods are for the conductor's thread.

    Attributes:
        sessions: those in progress, to which new ones are added.
        services: for the handlers of requests.
        audience: the sessions that signals are broadcast to; None where only the client that sent
            the request receives them.
    """

    config: ArchiveConfig
    client: AeronClient
    sessions: ControlSessions
    services: Services
    authenticator: GuardedAuthenticator
    audience: SignalAudience | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.config.recording_signals == "all":
            self.audience = SignalAudience(self.sessions, self.services.authorisation)

    def on_message(
        self, subscription_id: int, image_id: int, session_id: int, payload: bytes
    ) -> None:
        """Handle a whole control message.

        Args:
            subscription_id: registration id of the control subscription.
            image_id: correlation id of the image, which identifies the sender.
            session_id: the image's Aeron session.
        """
        try:
            if len(payload) > MAX_MESSAGE_LENGTH:
                raise CodecError(f"longer than any request, which has {MAX_MESSAGE_LENGTH} at most")
            message: Any = _decode(payload, self.services.features.schemas)
        except CodecError as error:
            # As in the reference, logged and ignored: the sender is unknown.
            self.services.errors.record(
                "unreadable control message",
                f"{error}: {len(payload)} bytes from the stream with sessionId={session_id}",
            )
            return
        if isinstance(message, codecs.AuthConnectRequest):
            self._connect(message, subscription_id, image_id, session_id)
        elif _is_of_session(type(message)):
            channel = token_replay_channel(message, image_id)
            by_token = channel is not None
            session = self._session_of(message, image_id, session_id, by_token=by_token)
            if session is not None:
                if by_token:
                    message = copy(message)
                    message.replay_channel = channel
                self._route(session, message)
        else:
            self.services.errors.record("control message is not a request", type(message).__name__)

    def _session_of(
        self, message: Any, image_id: int, session_id: int, *, by_token: bool
    ) -> ControlSession | None:
        """Return the session of a message, None when this image does not own it."""
        if by_token:
            tokens = self.services.replay_tokens
            owner = tokens.session_id(message.replay_token, message.recording_id)
            fault = "request with a replay token that is unknown or has timed out"
        else:
            owner = message.control_session_id
            fault = "request for an unknown control session"
        session = None if owner is None else self.sessions.get(owner)
        if session is not None and not session.is_done:
            if by_token or session.image_id == image_id:
                return session
            fault = "request from a stream that does not own the control session"
        elif isinstance(message, codecs.CloseSessionRequest):
            return None
        self.services.errors.record(
            fault,
            f"{type(message).__name__} controlSessionId={message.control_session_id}"
            f" sessionId={session_id}",
        )
        return None

    def _route(self, session: ControlSession, message: Any) -> None:
        """Apply a message to its session, if the client is admitted and authorised."""
        if isinstance(message, codecs.CloseSessionRequest):
            session.abort(SESSION_CLOSED)
        elif isinstance(message, codecs.ChallengeResponse):
            session.on_challenge_response(message.correlation_id, message.encoded_credentials)
        elif not session.is_authenticated:
            pass
        elif self.services.authorisation.is_authorised(
            message.SCHEMA_ID, message.TEMPLATE_ID, session.principal
        ):
            session.attempt_to_activate()
            if session.is_active:
                self._handle(session, message)
        else:
            why = self.services.authorisation.why_refused(
                message.SCHEMA_ID, message.TEMPLATE_ID, session.principal
            )
            action = _words(type(message).__name__)
            self.services.errors.record("unauthorised request", f"{action} of {session}")
            session.send_error(
                message.correlation_id,
                ErrorCode.UNAUTHORISED_ACTION,
                ": ".join(filter(None, ("unauthorised action", action, why))),
            )

    def _handle(self, session: ControlSession, message: Any) -> None:
        """Have a request handled, now or once the disk responds."""
        changes = self.services.changes
        handle = partial(respond, self.services, session, message)
        if type(message) not in requests.CHANGES:
            handle()
        elif len(changes) < _MAX_WAITING:
            changes.run_when_disk_responds(handle)
        else:
            session.send_error(
                message.correlation_id,
                ErrorCode.GENERIC,
                f"the disk does not respond: {_MAX_WAITING} requests and events wait for it; try"
                " again",
            )

    def _connect(
        self, message: codecs.AuthConnectRequest, subscription_id: int, image_id: int, stream: int
    ) -> None:
        """Begin a control session; log a request without a usable response channel."""
        try:
            channel = self._response_channel(message.response_channel, image_id)
        except ConfigurationError as error:
            self.services.errors.record("connect request with an unusable response channel", error)
            return
        session_id = self.services.next_id()
        source = self._source_identity(subscription_id, stream)
        session = ControlSession(
            session_id,
            message.correlation_id,
            subscription_id=subscription_id,
            image_id=image_id,
            source_identity=source,
            description=f"responses to {message.response_channel}"
            f" streamId={message.response_stream_id}",
            add_publication=lambda: self.client.async_add_exclusive_publication(
                channel, message.response_stream_id
            ),
            counter=self.client.async_add_counter(
                counter_keys.CounterType.CONTROL_SESSION,
                counter_keys.control_session_key(self.services.archive_id, session_id),
                counter_keys.control_session_label(
                    self.services.archive_id, _client_info(message.client_info, source, stream)
                ),
            ),
            authenticator=self.authenticator,
            credentials=message.encoded_credentials,
            invalid_version=_why_invalid(message.version),
            capabilities=(message.version or 0) & self.services.features.capabilities,
            connect_timeout_ms=self.config.connect_timeout_ns // 1_000_000,
            liveness_check_interval_ms=self.config.session_liveness_check_interval_ns // 1_000_000,
            now_ms=time.monotonic_ns() // 1_000_000,
        )
        if self.audience is not None:
            session.broadcast = self.audience.broadcast
        self.sessions.add(session)

    def _source_identity(self, subscription_id: int, session_id: int) -> str:
        image = self.sessions.subscriptions[subscription_id].image_by_session_id(session_id)
        if image is None:
            return ""
        source = image.source_identity
        image.release()
        return source

    def _response_channel(self, channel: str, image_id: int) -> str:
        uri = ChannelUri.parse(channel)
        config = self.config
        mtu = uri.get("mtu")
        term_length = uri.get("term-length")
        sparse = uri.get("sparse")
        additions: dict[str, str | int | bool] = {
            "mtu": config.control_mtu_length if mtu is None else parse_size("mtu", mtu),
            "term_length": (
                config.control_term_buffer_length
                if term_length is None
                else parse_size("term-length", term_length)
            ),
            "sparse": config.control_term_buffer_sparse if sparse is None else sparse,
        }
        if uri.has_control_mode_response:
            additions["response_correlation_id"] = image_id
        return stripped_channel(uri, **additions)


def respond(services: Services, session: ControlSession, request: Any) -> None:
    """Respond to a request; whatever fails becomes an error response."""
    try:
        own = requests.HANDLERS
        handlers = own if type(request) in own else services.features.handlers
        handlers[type(request)](services, session, request)
    except Exception as error:
        name = type(request).__name__
        send_failure(session, request.correlation_id, name, error, services.errors)


def _is_of_session(message: type[Message]) -> bool:
    """Whether messages of a class are requests of a session, or belong to its authentication."""
    return "Request" in message.__name__ or message is codecs.ChallengeResponse


def _decode(payload: bytes, schemas: Mapping[int, SchemaCodecs]) -> Any:
    """Decode a request of Aeron's schema, or of one of `schemas`, by their ids (CodecError).

    The connect request of old clients is returned as today's, without credentials.
    """
    if len(payload) >= HEADER.size:
        _, template_id, schema_id, _ = HEADER.unpack_from(payload)
        if (schema := schemas.get(schema_id)) is not None:
            return schema.decode(payload)
        if schema_id == codecs.SCHEMA_ID and template_id in archive_removed.MESSAGES:
            old = archive_removed.decode(payload)
            return codecs.AuthConnectRequest(*(getattr(old, name) for name in old.__match_args__))
    return codecs.decode(payload)


def _client_info(name: str | None, source_identity: str, session_id: int) -> str:
    info = f"sourceIdentity={source_identity} sessionId={session_id}"
    return f"{name} {info}" if name else info


def _why_invalid(version: int | None) -> str | None:
    if version is not None and version >> 16 & 0xFF == PROTOCOL_MAJOR_VERSION:
        return None
    return (
        f"invalid client version {version_string(version or 0)},"
        f" archive is {version_string(PROTOCOL_VERSION)}"
    )


def _words(request: str) -> str:
    """Return the name of a request's class as words: ``start recording``."""
    name = re.sub(r"Request\d*$", "", request)
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
