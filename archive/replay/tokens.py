"""Replay tokens: replays requested on another stream than that of the control session.

A response channel (control-mode=response) delivers to the sender of one request stream. A replay
over a response channel therefore needs a separate request stream, which does not belong to the
control session. The client first requests a token on its session (ReplayTokenRequest); a replay
request with that token belongs to the session, whatever stream it comes on.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError
from aerotape.protocol import NULL_VALUE


@dataclass(eq=False)
class ReplayTokens:
    """The valid tokens.

    Attributes:
        timeout_ns: validity of a token, which may be used more than once.
    """

    timeout_ns: int
    # In order of expiry, because all are valid for the same time.
    _tokens: dict[int, tuple[int, int, int]] = field(default_factory=dict, init=False)

    def issue(self, session_id: int, recording_id: int) -> int:
        """Return a token for replays of a recording, on behalf of a control session."""
        self._drop_expired()
        token = NULL_VALUE
        while token == NULL_VALUE or token in self._tokens:
            # Random: guessing a token would permit a replay to another stream.
            token = random.SystemRandom().getrandbits(64) - (1 << 63)
        self._tokens[token] = session_id, recording_id, time.monotonic_ns() + self.timeout_ns
        return token

    def session_id(self, token: int, recording_id: int) -> int | None:
        """Return the session of a token; None when it is not valid for the recording."""
        self._drop_expired()
        session_id, issued_for, _ = self._tokens.get(token, (None, NULL_VALUE, 0))
        return session_id if issued_for == recording_id else None

    def forget(self, session_id: int) -> None:
        """Drop the tokens of a session that has ended."""
        for token in [token for token, issued in self._tokens.items() if issued[0] == session_id]:
            del self._tokens[token]

    def _drop_expired(self) -> None:
        now_ns = time.monotonic_ns()
        while self._tokens:
            token, (_, _, deadline_ns) = next(iter(self._tokens.items()))
            if now_ns < deadline_ns:
                break
            del self._tokens[token]


def token_replay_channel(request: Any, image_id: int) -> str | None:
    """Return the channel of a replay that is requested with a token, to the sender of the request.

    Args:
        request: any message; those that request a replay have a `replay_token`.
        image_id: correlation id of the image that brought the request.

    Returns:
        None when there is no token or no response channel.
    """
    if getattr(request, "replay_token", None) in (None, NULL_VALUE):
        return None
    try:
        channel = ChannelUri.parse(request.replay_channel)
    except ConfigurationError:
        return None
    if not channel.has_control_mode_response:
        return None
    channel.put("response-correlation-id", str(image_id))
    return str(channel)
