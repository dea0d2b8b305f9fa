"""The users of the web service: those of a users file, by HTTP's basic authentication.

Checking a secret takes a while on purpose, so one thread does it, from a bounded queue: while the
queue is full, further secrets get 503. Secrets that were right before never wait for it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from aerotape.archive.security.users import MAX_CREDENTIALS_LENGTH, MAX_QUEUED_SECRETS, UsersFile
from aerotape.archive.security.users_file import User, Users
from aerotape.scram import Verifier
from aerotape.tools._web.latest import Latest
from aerotape.tools._web.paths import HEALTH, route_path
from aerotape.tools._web.rest.problems import problem

_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="aerotape", charset="UTF-8"'}
_FRESH_S: Final = 0.5
"""For so long the users that were read are those of the file."""
_WAIT_S: Final = 0.2
"""How long reading the file may take; then the last users stay in force."""
_MAX_KNOWN: Final = 1_000
_BUSY: Final = f"{MAX_QUEUED_SECRETS} other secrets are to be checked first: try again"


class UserGuard:
    """Refuses requests without a user of the file.

    Others have it in `request.state.user`; `is_admitted` returns whether it still may read.
    """

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
        self._users: Latest[Users] = Latest(self._file.refresh, _FRESH_S, 0, "users-file")
        self._reading = ThreadPoolExecutor(1, "users-wait")
        self._hashing = ThreadPoolExecutor(1, "users")
        self._digest_key = secrets.token_bytes(32)
        # Wrong secrets displace no right ones.
        self._right: dict[str, tuple[bytes, Verifier]] = {}
        self._checks: OrderedDict[tuple[str, bytes, Verifier], Future[bool]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and route_path(scope) != HEALTH:
            given = parse_credentials(Headers(scope=scope).get("authorization", ""))
            user = None if given is None else await self._checked(*given)
            if isinstance(user, str):
                status = HTTPStatus.SERVICE_UNAVAILABLE
                await problem(status, status.phrase, user)(scope, receive, send)
                return
            if user is None:
                response = PlainTextResponse("a user of the archive is required\n", 401, _CHALLENGE)
                await response(scope, receive, send)
                return
            scope.setdefault("state", {}).update(user=user, current_users=self._current)
        await self._app(scope, receive, send)

    async def _current(self) -> Users:
        """Return the users of the file; the last ones while it cannot be read."""
        known = self._users.known()
        if known is None:
            loop = asyncio.get_running_loop()
            known = await loop.run_in_executor(self._reading, self._read)
        return known

    def _read(self) -> Users:
        try:
            return self._users.get(_WAIT_S)
        except TimeoutError:
            return self._file.users

    async def _checked(self, name: str, secret: bytes) -> User | str | None:
        """Return the user, None if it is none, or why this cannot be checked now."""
        digest = hashlib.blake2b(secret, key=self._digest_key).digest()
        users = await self._current()
        user = users.get(name)
        # As slow as for a user, so that the time does not say who is one.
        verifier = next(iter(users.values())).verifier if user is None else user.verifier
        if user is not None and self._right.get(user.name) == (digest, verifier):
            return user
        check = self._check((name, digest, verifier), secret)
        if check is None:
            return _BUSY
        is_right = await asyncio.shield(asyncio.wrap_future(check))
        if user is None or not is_right:
            return None
        self._right[user.name] = digest, verifier
        return user

    def _check(self, key: tuple[str, bytes, Verifier], secret: bytes) -> Future[bool] | None:
        """Return the check of a secret, begun if it is a new one; None if there is no room."""
        if (known := self._checks.get(key)) is not None:
            return known
        if sum(not each.done() for each in self._checks.values()) >= MAX_QUEUED_SECRETS:
            return None
        check = self._checks[key] = self._hashing.submit(key[2].accepts_secret, secret)
        while len(self._checks) > _MAX_KNOWN:
            self._checks.popitem(last=False)
        return check


async def is_admitted(request: Request) -> bool:
    """Whether the user of a request is in the file as it was; true if the service has no users."""
    user: User | None = getattr(request.state, "user", None)
    return user is None or (await request.state.current_users()).get(user.name) == user


def parse_credentials(authorization: str) -> tuple[str, bytes] | None:
    """Return the name and the secret in the header Authorization; None if it has none."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic" or len(encoded) > 2 * MAX_CREDENTIALS_LENGTH:
        return None
    try:
        name, colon, secret = base64.b64decode(encoded, validate=True).partition(b":")
    except ValueError:  # not base64, or not ASCII
        return None
    return (name.decode("ascii", "replace"), secret) if colon else None
