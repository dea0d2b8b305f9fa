"""Manage a users file: the users that may connect to an archive, with secrets and roles.

    aerotape users FILE add alice --role read      prompt for the secret
    aerotape users FILE add bob --secret-file F    read it from the first line of F (-: stdin)
    aerotape users FILE remove alice
    aerotape users FILE list
    aerotape archive --users FILE                  accept only these users

A running archive reads changes of the file. The file has no secrets, only verifiers of them.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.output import emit
from aerotape.tools._cli.secrets import read_secret

_ROLES = ("read", "record", "mirror", "admin")


@dataclass(frozen=True, slots=True)
class User:
    """A user in the file.

    Attributes:
        user: user name.
        role: read, record, mirror or admin.
        iterations: PBKDF2 iterations.
    """

    user: str
    role: str
    iterations: int


@dataclass(frozen=True, slots=True)
class AddedUser:
    """A user that was added.

    Attributes:
        added: user name.
        role: read, record, mirror or admin.
    """

    added: str
    role: str


@dataclass(frozen=True, slots=True)
class ChangedUser:
    """A user whose secret and role were replaced.

    Attributes:
        changed: user name.
        role: read, record, mirror or admin.
    """

    changed: str
    role: str


@dataclass(frozen=True, slots=True)
class RemovedUser:
    """A user that was removed.

    Attributes:
        removed: user name.
    """

    removed: str


JSON_ROWS: Final = {"": User | AddedUser | ChangedUser | RemovedUser}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the users file; `add` creates it")
    parser.add_argument("action", choices=("add", "remove", "list"), help="the action")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the user to add or remove")
    group = parser.add_argument_group(
        "add", "Options of `add`, which replaces the secret and the role of an existing user."
    )
    group.add_argument(
        "--role",
        choices=_ROLES,
        default="read",
        help="read: list and replay (default); record: also start and stop; mirror: for archives"
        " that mirror ledgers; admin: everything",
    )
    group.add_argument(
        "--secret-file", metavar="F", help="read the secret from the first line of F (-: stdin)"
    )
    group.add_argument(
        "--iterations",
        metavar="N",
        type=count,
        help="PBKDF2 iterations, 4096 to 2000000: more make guessing slower (default: 200000)",
    )


def run(args: argparse.Namespace) -> None:
    """Change or show the file."""
    from aerotape import scram
    from aerotape.archive.security import users_file

    if (args.name is None) != (args.action == "list"):
        raise ConfigurationError(
            "NAME is required for add and remove, and not used for list", "NAME"
        )
    if args.action == "list":
        rows = users_file.read_users(args.file).values()
        emit(
            (
                User(user=user.name, role=user.role.value, iterations=user.verifier.iterations)
                for user in rows
            ),
            args,
        )
    elif args.action == "remove":
        if not users_file.remove_user(args.file, args.name):
            raise AerotapeError(f"users file {args.file} has no user {args.name}")
        emit(RemovedUser(args.name), args)
    else:
        iterations = scram.DEFAULT_ITERATIONS if args.iterations is None else args.iterations
        role = users_file.Role(args.role)
        user = users_file.make_user(args.name, role, _secret(args), iterations)
        was_there = users_file.put_user(args.file, user)
        # An archive may not be allowed to create it.
        emit((ChangedUser if was_there else AddedUser)(args.name, args.role), args)


def _secret(args: argparse.Namespace) -> bytes:
    if args.secret_file is not None:
        return read_secret(args.secret_file)
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "standard input is not a terminal: give the secret with --secret-file F (-: stdin)",
            "--secret-file",
        )
    secret = getpass.getpass(f"secret of {args.name}: ")
    if getpass.getpass("repeat: ") != secret:
        raise ConfigurationError("the secrets differ: nothing was changed")
    return secret.encode()
