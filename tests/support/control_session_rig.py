"""A control session with a fake response publication and a manual clock."""

from __future__ import annotations

from typing import Any

from aerotape.archive.control.control_session import ControlSession, ControlSessionState
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.security.authentication import AllowAll, GuardedAuthenticator
from aerotape.codecs.generated import archive as codecs

BACK_PRESSURED = -2


class FakePublication:
    """Stores messages, or returns a given result."""

    def __init__(self) -> None:
        self.is_connected = True
        self.registration_id = 1234
        self.position = 0
        self.result: int | None = None
        self.messages: list[Any] = []
        self.revoked = False

    def offer(self, data: bytes) -> int:
        if self.result is not None:
            return self.result
        self.messages.append(codecs.decode(data))
        return 64 * len(self.messages)

    def revoke(self) -> None:
        self.revoked = True


class FakeCounter:
    def __init__(self) -> None:
        self.value = 0
        self.reference_id = 0
        self.closed = False

    def set_reference_id(self, reference_id: int) -> None:
        self.reference_id = reference_id

    def set(self, value: int) -> None:
        self.value = value

    def close(self) -> None:
        self.closed = True


class Pending:
    """Returns the given object after a number of polls."""

    def __init__(self, answer: Any, polls: int = 0) -> None:
        self.answer = answer
        self.polls = polls
        self.cancelled = False

    def poll(self) -> Any:
        if self.polls:
            self.polls -= 1
            return None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel(self) -> None:
        self.cancelled = True


class ControlSessionRig:
    """A session with its fakes."""

    def __init__(
        self,
        *,
        version: str | None = None,
        authenticator: Any = None,
        publications: list[Any] | None = None,
        capabilities: int = 0,
        session_id: int = 7,
    ) -> None:
        self.publication = FakePublication()
        self.counter = FakeCounter()
        answers = iter(publications or [self.publication])
        self.session = ControlSession(
            session_id,
            100,
            subscription_id=1,
            image_id=1,
            source_identity="aeron:ipc",
            description="test",
            add_publication=lambda: Pending(next(answers)),  # type: ignore[arg-type,return-value]
            counter=Pending(self.counter, polls=1),  # type: ignore[arg-type]
            authenticator=GuardedAuthenticator(authenticator or AllowAll(), ErrorLog()),
            credentials=b"alice",
            invalid_version=version,
            capabilities=capabilities,
            connect_timeout_ms=5_000,
            liveness_check_interval_ms=1_000,
            now_ms=0,
        )

    def work(self, *times_ms: int) -> None:
        for now_ms in times_ms:
            self.session.do_work(now_ms)

    def activate(self) -> None:
        """Connect the session and remove the connect response."""
        self.work(1, 2, 3)
        self.session.attempt_to_activate()
        assert self.session.state is ControlSessionState.ACTIVE
        self.publication.messages.clear()
