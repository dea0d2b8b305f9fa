"""An attacker that pretends to be an archive, and passes on the proofs that clients send it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import AerotapeError
from support.daemon.control_rig import RawClient
from support.processes import free_port


class Relay:
    """Listens as an archive does; what a client sends to connect, it sends to another archive.

    Attributes:
        channel: the control channel for the victims.
        outcome: the other archive's response to a proof of a victim; None: none was passed on.
    """

    def __init__(self, aeron_dir: Path, target: str, channel: str = "") -> None:
        self.channel = channel or f"aeron:udp?endpoint=localhost:{free_port()}"
        self.outcome: Any = None
        self._aeron = _native.AeronClient(str(aeron_dir))
        self._target = target
        self._control = self._aeron.add_subscription(self.channel, 10)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set() and self.outcome is None:
            connect = self._next(codecs.AuthConnectRequest)
            if connect is not None:
                self._pass_on(connect)

    def _next(self, kind: type[Any], timeout_s: float = 5.0) -> Any:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and not self._ends.is_set():
            for payload, *_ in self._control.poll(1, 10_000_000):
                message = codecs.decode(payload)
                if isinstance(message, kind):
                    return message
        return None

    def _pass_on(self, connect: Any) -> None:
        response_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        target = RawClient(
            self._aeron, self._target, response_channel=response_channel, response_stream_id=21
        )
        victim = None
        try:
            asked = codecs.AuthConnectRequest(
                correlation_id=self._aeron.next_correlation_id(),
                response_stream_id=21,
                version=connect.version,
                response_channel=response_channel,
                encoded_credentials=connect.encoded_credentials,
            )
            target.send(asked)
            challenge = target.await_message(codecs.Challenge)
            target.control_session_id = challenge.control_session_id
            victim = self._aeron.add_exclusive_publication(
                connect.response_channel, connect.response_stream_id
            )
            challenge.correlation_id = connect.correlation_id
            assert victim.offer_within(challenge.encode(), 5_000_000_000) > 0
            answer = self._next(codecs.ChallengeResponse)
            if answer is not None:
                answer.control_session_id = target.control_session_id
                target.send(answer)
                self.outcome = target.response(answer.correlation_id)
        except AerotapeError:
            return  # the victim has gone
        finally:
            target.close()
            if victim is not None:
                victim.close()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._aeron.close()


@contextmanager
def relaying(aeron_dir: Path, target: str, channel: str = "") -> Iterator[Relay]:
    """Run an attacker on a media driver that is not the victim's."""
    relay = Relay(aeron_dir, target, channel)
    try:
        yield relay
    finally:
        relay.close()
