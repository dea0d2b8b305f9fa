"""An authenticator and an authorisation service for tests; harness/Guard.java does the same.

The credentials of a client decide the outcome:

    open:NAME      accepted as NAME
    ask:NAME       challenged with `who is NAME?`, accepted as NAME for the response `it is NAME`
    hang           no decision
    block          the plug-in does not return
    fail:STEP      the plug-in raises at that step: request, connected, response, challenged
    anything else  refused

NAME determines the permitted requests: `reader` may list and query positions, `asker` may also
request replay tokens (in ours only), `nobody` may do nothing, for `trouble` the authorisation
service raises; other names may do everything.
"""

from __future__ import annotations

import time

from aerotape.archive.security.authentication import SessionProxy
from aerotape.codecs.generated import archive as codecs

READS = frozenset(
    message.TEMPLATE_ID
    for message in (
        codecs.ArchiveIdRequest,
        codecs.KeepAliveRequest,
        codecs.ListRecordingsRequest,
        codecs.StopPositionRequest,
    )
)


class Guard:
    """The authenticator."""

    def __init__(self) -> None:
        self._credentials: dict[int, str] = {}
        self._answers: dict[int, str] = {}

    def on_connect_request(self, session_id: int, encoded_credentials: bytes, now_ms: int) -> None:
        self._credentials[session_id] = encoded_credentials.decode("ascii")
        if encoded_credentials == b"block":
            time.sleep(600)
        self._fail(session_id, "request")

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, now_ms: int
    ) -> None:
        self._answers[session_id] = encoded_credentials.decode("ascii")
        self._fail(session_id, "response")

    def on_connected_session(self, session_proxy: SessionProxy, now_ms: int) -> None:
        credentials = self._credentials[session_proxy.session_id]
        self._fail(session_proxy.session_id, "connected")
        how, _, name = credentials.partition(":")
        if how == "open":
            session_proxy.authenticate(name.encode())
        elif how == "ask" or credentials in ("fail:response", "fail:challenged"):
            session_proxy.challenge(f"who is {name}?".encode())
        elif how != "hang":
            session_proxy.reject()

    def on_challenged_session(self, session_proxy: SessionProxy, now_ms: int) -> None:
        session_id = session_proxy.session_id
        answer = self._answers.get(session_id)
        if answer is None:
            return
        self._fail(session_id, "challenged")
        name = self._credentials[session_id].partition(":")[2]
        if answer == f"it is {name}":
            session_proxy.authenticate(name.encode())
        else:
            session_proxy.reject()

    def _fail(self, session_id: int, step: str) -> None:
        if self._credentials[session_id] == f"fail:{step}":
            raise SystemExit(f"the guard fails at {step}")


class Actions:
    """The authorisation service."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type: object, encoded_principal: bytes
    ) -> bool:
        assert (protocol_id, type) == (codecs.SCHEMA_ID, None)
        name = encoded_principal.decode("ascii")
        if name == "trouble" and action_id not in READS:
            raise RuntimeError("the authorisation service fails")
        if name == "asker" and action_id == codecs.ReplayTokenRequest.TEMPLATE_ID:
            return True
        return (name not in ("reader", "asker") or action_id in READS) and name != "nobody"
