"""A client that speaks the control protocol message by message, so that it can misbehave."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import CodecError
from aerotape.protocol import PROTOCOL_VERSION


class RawClient:
    """One request publication and one response subscription, no state machine."""

    def __init__(
        self,
        client: _native.AeronClient,
        control_channel: str,
        *,
        response_channel: str = "aeron:ipc",
        response_stream_id: int = 20,
        control_stream_id: int = 10,
        session_id: int | None = None,
    ) -> None:
        self.client = client
        suffix = ""
        if session_id is not None:
            suffix = ("|" if "?" in control_channel else "?") + f"session-id={session_id}"
        self.response_channel = response_channel
        self.response_stream_id = response_stream_id
        self.subscription = client.add_subscription(response_channel, response_stream_id)
        self.publication = client.add_exclusive_publication(
            control_channel + suffix, control_stream_id
        )
        self.control_session_id = -1
        self.received: list[Any] = []

    def send(self, message: Any) -> int:
        """Offer a message (or encoded bytes); return its correlation id."""
        data = message if isinstance(message, bytes) else message.encode()
        result = self.publication.offer_within(data, 5_000_000_000)
        assert result > 0, f"offer: {result}"
        return -1 if isinstance(message, bytes) else getattr(message, "correlation_id", -1)

    def connect(self, *, version: int = PROTOCOL_VERSION, **fields: Any) -> Any:
        """Send a connect request, store the session id of the response and return the response."""
        correlation_id = self.client.next_correlation_id()
        self.send(
            codecs.AuthConnectRequest(
                correlation_id=correlation_id,
                response_stream_id=self.response_stream_id,
                version=version,
                response_channel=self.response_channel,
                **fields,
            )
        )
        response = self.response(correlation_id)
        self.control_session_id = response.control_session_id
        return response

    def request(self, kind: Callable[..., Any], **fields: Any) -> int:
        """Send a request of this session; return its correlation id."""
        return self.send(
            kind(
                control_session_id=self.control_session_id,
                correlation_id=self.client.next_correlation_id(),
                **fields,
            )
        )

    def call(self, kind: Callable[..., Any], **fields: Any) -> Any:
        """Send a request and return the control response to it."""
        return self.response(self.request(kind, **fields))

    def response(self, correlation_id: int, timeout_s: float = 30.0) -> Any:
        """Wait for the control response with this correlation id."""
        return self.await_message(codecs.ControlResponse, timeout_s, correlation_id=correlation_id)

    def await_message(self, kind: type[Any], timeout_s: float = 30.0, **fields: Any) -> Any:
        """Wait for a message with these fields; others are added to `received`."""
        return self.await_where(
            lambda message: (
                isinstance(message, kind)
                and all(getattr(message, name) == value for name, value in fields.items())
            ),
            timeout_s,
        )

    def await_where(self, wanted: Callable[[Any], bool], timeout_s: float = 30.0) -> Any:
        """Wait for a message for which a condition holds; others are added to `received`."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            for index, message in enumerate(self.received):
                if wanted(message):
                    return self.received.pop(index)
            self.poll(0.05)
        raise AssertionError(f"not received within {timeout_s} s; got {self.received}")

    def poll(self, timeout_s: float = 0.0) -> None:
        """Poll messages into `received`."""
        for payload, *_ in self.subscription.poll(20, int(timeout_s * 1e9)):
            try:
                self.received.append(codecs.decode(payload))
            except CodecError as error:
                raise AssertionError(f"undecodable response {payload!r}") from error

    def close(self) -> None:
        self.publication.close()
        self.subscription.close()


def await_true(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait for a condition; fail when it is not met in time."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "condition not met in time"
        time.sleep(0.02)


def control_session_counters(client: _native.AeronClient) -> list[int]:
    """Return the control session ids with a counter (type 113) of the archive."""
    return [row[7] for row in client.counters().rows(113)]
