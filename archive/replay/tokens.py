"""Replay tokens: how a replay is asked for on another request stream than the session's own.

The archive answers over a response channel (control-mode=response) to whoever sent on one request
stream. A replay that shall come the same way needs a request stream of its own, which belongs to
no control session. So the client asks its session for a token first (ReplayTokenRequest), and the
replay request that carries it counts as the session's, whichever stream brings it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ConfigurationError
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession


class ReplayTokens:
    """The tokens that are valid at the moment."""

    def __init__(self, timeout_ns: int, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """Begin with none.

        Args:
            timeout_ns: how long a token is valid; it may be used more than once.
        """
        self._timeout_ns = timeout_ns
        self._clock = clock
        # All are valid for the same time: the first to run out is always the first in here.
        self._tokens: dict[int, tuple[ControlSession, int, int]] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def issue(self, session: ControlSession, recording_id: int) -> int:
        """Return a token for replays of a recording, on behalf of a session."""
        self._drop_old()
        token = NULL_VALUE
        while token == NULL_VALUE or token in self._tokens:
            # Whoever guesses it could replay to a stream of their own.
            token = random.SystemRandom().getrandbits(64) - (1 << 63)
        self._tokens[token] = session, recording_id, self._clock() + self._timeout_ns
        return token

    def session(self, token: int, recording_id: int) -> ControlSession | None:
        """Return on whose behalf a replay is asked for; None when the token is not valid for it."""
        self._drop_old()
        session, issued_for, _ = self._tokens.get(token, (None, NULL_VALUE, 0))
        return session if issued_for == recording_id else None

    def forget(self, session: ControlSession) -> None:
        """Drop the tokens of a session that has ended."""
        for token in [token for token, issued in self._tokens.items() if issued[0] is session]:
            del self._tokens[token]

    def _drop_old(self) -> None:
        now_ns = self._clock()
        while self._tokens:
            token, (_, _, deadline_ns) = next(iter(self._tokens.items()))
            if now_ns < deadline_ns:
                break
            del self._tokens[token]


def redirect(request: codecs.ReplayRequest | codecs.BoundedReplayRequest, image_id: int) -> bool:
    """Have a replay that is asked for with a token sent back to where the request came from.

    Args:
        image_id: correlation id of the image that brought the request.

    Returns:
        False, and nothing is changed, when there is no token or no response channel: then it is
        a request like others.
    """
    if request.replay_token in (None, NULL_VALUE):
        return False
    try:
        channel = ChannelUri.parse(request.replay_channel)
    except ConfigurationError:
        return False
    if not channel.has_control_mode_response:
        return False
    channel.put("response-correlation-id", str(image_id))
    request.replay_channel = str(channel)
    return True
