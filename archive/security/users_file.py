"""The users file: the names, secrets and roles of an archive's users.

A line for each user, three fields with colons between:

    alice:admin:scram-sha-256$200000$<salt, base64>$<stored key, base64>

Blank lines and lines that begin with # are skipped. The secret itself is not in it (`scram`).
Roles, whose requests are in `permissions` and in the features of the archive:

    read     list, find and ask for positions, and replay
    record   that, and start, stop and extend recordings
    mirror   what an archive needs of another one whose data it mirrors, and nothing else
    admin    everything: truncate, purge, segments, replication, channels

Only the file's owner may write it, and only owner and group may read it; the owner is root or the
user that the archive runs as. It is replaced as a whole, so that a reader sees the old file or the
new one.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from aerotape import scram
from aerotape.catalog.durability import write_durably
from aerotape.errors import ConfigurationError, StorageError
from aerotape.scram import Verifier

MAX_SECRET_LENGTH = 1024
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_SCHEME = "scram-sha-256"
_FORBIDDEN_MODE = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO


class Role(Enum):
    """The role of a user, which decides what it may request (`permissions`)."""

    READ = "read"
    RECORD = "record"
    MIRROR = "mirror"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class User:
    """A line of the file."""

    name: str
    role: Role
    verifier: Verifier


Users = Mapping[str, User]


def make_user(
    name: str, role: Role, secret: bytes, iterations: int = scram.DEFAULT_ITERATIONS
) -> User:
    """Create a user with a new salt; slow, as it hashes.

    Raises:
        ConfigurationError: the name, the secret or the iterations cannot be used.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"user name {name!r}: expected 1 to 64 ASCII letters, digits and . _ @ -", "name"
        )
    if not 1 <= len(secret) <= MAX_SECRET_LENGTH or b"\0" in secret or b"\n" in secret:
        raise ConfigurationError(
            f"a secret must have 1 to {MAX_SECRET_LENGTH} bytes, without line ends and zero bytes",
            "secret",
        )
    if not scram.MIN_ITERATIONS <= iterations <= scram.MAX_ITERATIONS:
        raise ConfigurationError(
            f"iterations={iterations}: must be {scram.MIN_ITERATIONS} to {scram.MAX_ITERATIONS}",
            "iterations",
        )
    return User(name, role, Verifier.of(secret, secrets.token_bytes(scram.SALT_LENGTH), iterations))


def read_users(path: Path) -> Users:
    """Read the file if only its owner can have written it.

    Raises:
        ConfigurationError: it is missing, is open to others, or has an invalid line.
    """
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"users file {path}: not a regular file", str(path))
    try:
        with path.open("rb") as file:
            _check_owner(path, os.fstat(file.fileno()))
            return _parse(path, file.read())
    except OSError as error:
        raise ConfigurationError(f"users file {path}: {error.strerror}", str(path)) from error


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(
            f"users file {path}: belongs to user id {status.st_uid}: must belong to root or to"
            f" the user that the archive runs as (user id {os.geteuid()})",
            str(path),
        )
    if status.st_mode & _FORBIDDEN_MODE:
        raise ConfigurationError(
            f"users file {path}: its mode {stat.S_IMODE(status.st_mode):04o} gives access to"
            f" others: chmod 600 {path}",
            str(path),
        )


def _parse(path: Path, data: bytes) -> Users:
    users: dict[str, User] = {}
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = raw.decode("ascii", "replace").strip()
        if not line or line.startswith("#"):
            continue
        user = _parse_line(line)
        if user is None:
            raise ConfigurationError(
                f"users file {path}, line {number}: not NAME:ROLE:{_SCHEME}$ITERATIONS$SALT$KEY"
                f" with a role of {', '.join(role.value for role in Role)}",
                str(path),
            )
        if user.name in users:
            raise ConfigurationError(
                f"users file {path}, line {number}: duplicate user {user.name}", str(path)
            )
        users[user.name] = user
    return users


def _parse_line(line: str) -> User | None:
    try:
        name, role, verifier = line.split(":")
        scheme, iterations, salt, key = verifier.split("$")
        keys = (base64.b64decode(each, validate=True) for each in (salt, key))
        user = User(name, Role(role), Verifier(int(iterations), *keys))
    except ValueError:
        return None
    is_sound = (
        _NAME.fullmatch(name)
        and scheme == _SCHEME
        and scram.MIN_ITERATIONS <= user.verifier.iterations <= scram.MAX_ITERATIONS
        and len(user.verifier.salt) >= 8
        and len(user.verifier.stored_key) == scram.KEY_LENGTH
    )
    return user if is_sound else None


def _line(user: User) -> str:
    verifier = user.verifier
    salt, key = (
        base64.b64encode(each).decode("ascii") for each in (verifier.salt, verifier.stored_key)
    )
    return f"{user.name}:{user.role.value}:{_SCHEME}${verifier.iterations}${salt}${key}"


def put_user(path: Path, user: User) -> bool:
    """Add a user, or replace the one of that name; create the file if missing.

    Returns:
        Whether a user was replaced.

    Raises:
        ConfigurationError: the file is not a users file.
        StorageError: it cannot be written.
    """
    with _changing(path) as lines:
        places = [at for at, line in enumerate(lines) if _name_of(line) == user.name]
        if places:
            lines[places[0]] = _line(user)
        else:
            lines.append(_line(user))
        return bool(places)


def remove_user(path: Path, name: str) -> bool:
    """Remove a user; False when there is no such user.

    Raises as `put_user`; ConfigurationError also for the last user, since archives refuse a file
    without users.
    """
    with _changing(path) as lines:
        others = [line for line in lines if _name_of(line) != name]
        is_found = len(others) < len(lines)
        if is_found and not any(map(_name_of, others)):
            raise ConfigurationError(
                f"cannot remove {name}, the last user of users file {path}: an archive refuses a"
                " file without users; add another user first",
                "name",
            )
        lines[:] = others
        return is_found


def _name_of(line: str) -> str:
    text = line.strip()
    return "" if text.startswith("#") else text.partition(":")[0]


@contextmanager
def _changing(path: Path) -> Iterator[list[str]]:
    """Yield the file's lines to be changed in place; comments stay. One process at a time."""
    # Through a symbolic link, its target is replaced.
    path = Path(os.path.realpath(path))
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            lines: list[str] = []
            before = None
            if path.exists():
                read_users(path)
                # As in `_parse`: `str.splitlines` would split at other characters too.
                lines = path.read_bytes().decode("latin-1").split("\n")
                if not lines[-1]:
                    lines.pop()
                before = path.stat()
            unchanged = list(lines)
            yield lines
            if lines != unchanged:
                _replace(path, lines, before)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageError(f"cannot change users file {path}: {error.strerror}", path) from error


def _replace(path: Path, lines: list[str], before: os.stat_result | None) -> None:
    data = "".join(f"{line}\n" for line in lines).encode("latin-1")
    mode, owner = 0o600, None
    if before is not None:
        mode = stat.S_IMODE(before.st_mode)
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            owner = before.st_uid, before.st_gid
    write_durably(path, data, mode=mode, owner=owner)
