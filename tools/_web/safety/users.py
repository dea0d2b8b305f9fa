"""The users of the web service: those of a users file, by HTTP's basic authentication."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
from pathlib import Path
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from aerotape.archive.security.users import UsersFile
from aerotape.archive.security.users_file import User

_PUBLIC: Final = "/healthz"
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="aerotape", charset="UTF-8"'}


class UserGuard:
    """Refuses requests without a user of the file; others have it in `request.state.user`."""

    def __init__(self, app: ASGIApp, path: Path) -> None:
        """Read the file.

        Args:
            app: the application behind.
            path: the users file.

        Raises:
            ConfigurationError: the file cannot be used.
        """
        self._app = app
        self._file = UsersFile(path)
        # Checking a secret takes a while on purpose: one at a time, and each only once.
        self._lock = threading.Lock()
        self._digest_key = secrets.token_bytes(32)
        self._right: dict[str, tuple[bytes, User]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != _PUBLIC:
            given = Headers(scope=scope).get("authorization", "")
            user = await run_in_threadpool(self._user, given) if given else None
            if user is None:
                response = PlainTextResponse("a user of the archive is required\n", 401, _CHALLENGE)
                await response(scope, receive, send)
                return
            scope.setdefault("state", {})["user"] = user
        await self._app(scope, receive, send)

    def _user(self, authorization: str) -> User | None:
        scheme, _, encoded = authorization.partition(" ")
        try:
            name, colon, secret = base64.b64decode(encoded, validate=True).partition(b":")
        except binascii.Error:
            return None
        if scheme.lower() != "basic" or not colon:
            return None
        digest = hashlib.blake2b(secret, key=self._digest_key).digest()
        with self._lock:
            users = self._file.refresh()
            user = users.get(name.decode("ascii", "replace"))
            if user is None:
                # As slow as for a user, so that the time does not say who is one.
                next(iter(users.values())).verifier.accepts_secret(secret)
                return None
            if self._right.get(user.name) == (digest, user):
                return user
            if not user.verifier.accepts_secret(secret):
                return None
            self._right[user.name] = (digest, user)
            return user
