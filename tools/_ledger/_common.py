"""Options and output that the commands of `aerotape ledger` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError, QualifiedIdError
from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.arguments import uint64
from aerotape.tools._cli.connection import add_connection_options
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import as_row, emit
from aerotape.tools._cli.secrets import read_secret
from aerotape.tools._cli.times import time_text

if TYPE_CHECKING:
    from aerotape.client.ledger.requests import LedgerInfo


@dataclass(frozen=True, slots=True)
class LedgerId:
    """Both forms of a ledger's id.

    Attributes:
        scope_id: scope id, unsigned, decimal.
        ledger_id: ledger id, unsigned, decimal.
        qualified_name: qualified id, 32 hexadecimal digits.
    """

    scope_id: str
    ledger_id: str
    qualified_name: str


@dataclass(frozen=True, slots=True)
class MemberArchive:
    """An archive that has a ledger.

    Attributes:
        channel: its control channel.
        is_connected: whether it is connected.
        lag_bytes: bytes that it has not confirmed, null if it is not connected.
        error: why it is not connected, empty if it is.
    """

    channel: str
    is_connected: bool
    lag_bytes: int | None
    error: str


@dataclass(frozen=True, slots=True)
class LedgerRow(LedgerId):
    """A ledger.

    Attributes:
        type: type of its journal.
        state: OPEN, IN_RECOVERY or CLOSED.
        digest_type: digest type.
        last_add_confirmed: last entry confirmed, -1 without one.
        last_add_pushed: last entry written, -1 without one.
        length_bytes: bytes of payloads; null if they are not known.
        has_writer: whether a client may append.
        recording_id: recording id.
        confirmed_position: confirmed position, bytes.
        recorded_position: recorded position, bytes.
        created_ms: creation time, epoch milliseconds.
        write_quorum: write quorum.
        ack_quorum: ack quorum.
        has_password: whether it has a password.
        mirrors: control channels of the mirrors.
        members: the archives of the ledger.
        damaged_entries: damaged entries that readers met and that no other archive had.
        repaired_entries: damaged entries that readers met, fetched from another archive.
    """

    type: str
    state: str
    digest_type: str
    last_add_confirmed: int | None
    last_add_pushed: int | None
    length_bytes: int | None
    has_writer: bool
    recording_id: int
    confirmed_position: int
    recorded_position: int
    created_ms: int
    write_quorum: int
    ack_quorum: int
    has_password: bool
    mirrors: Sequence[str]
    members: Sequence[MemberArchive]
    damaged_entries: int
    repaired_entries: int


def add_ledger_command(
    commands: Commands, name: str, run_it: Callable[[argparse.Namespace], int | None]
) -> argparse.ArgumentParser:
    """Add a command with the options of a connection to the archive."""
    parser = add_command(commands, name, run_it)
    add_connection_options(parser)
    return parser


_MOST_DIGITS: Final = 20  # of a number; a qualified name has 32


def qualified_name(text: str) -> QualifiedId:
    """Parse a qualified name or a UUID."""
    try:
        return QualifiedId.parse(text)
    except QualifiedIdError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_scope_option(parser: argparse.ArgumentParser) -> None:
    """Add --ledger-scope-id."""
    parser.add_argument(
        "--ledger-scope-id", metavar="N", type=uint64, help="the scope (default: 0)"
    )


def add_ledger_options(parser: argparse.ArgumentParser) -> None:
    """Add the argument and the options that name a ledger."""
    parser.add_argument(
        "ledger",
        metavar="LEDGER",
        nargs="?",
        help="its number, in scope 0 or that of --ledger-scope-id, or its qualified name; without "
        "it, the options name the ledger",
    )
    add_scope_option(parser)
    parser.add_argument(
        "--ledger-id", metavar="N", type=uint64, help="the number of the ledger in its scope"
    )
    parser.add_argument(
        "--ledger-qualified-name",
        metavar="HEX",
        type=qualified_name,
        help="scope and number as 32 hexadecimal digits, or as a UUID",
    )


def add_password_option(parser: argparse.ArgumentParser) -> None:
    """Add --password-file."""
    parser.add_argument(
        "--password-file",
        metavar="F",
        help="read the ledger's password from the first line of F (-: stdin)",
    )


def password_of(args: argparse.Namespace) -> bytes:
    """Return the password, empty without one (ConfigurationError)."""
    return b"" if args.password_file is None else read_secret(args.password_file)


def has_ledger_options(args: argparse.Namespace) -> bool:
    """Return whether an option names the ledger."""
    return args.ledger_id is not None or args.ledger_qualified_name is not None


def given_ledger(args: argparse.Namespace) -> QualifiedId | None:
    """Return the ledger that the options name; None when they name none.

    Raises:
        ConfigurationError: they name two ledgers, a scope without a number, or an id that no
            ledger can have.
    """
    named: QualifiedId | None = args.ledger_qualified_name
    scope_id, ledger_id = args.ledger_scope_id, args.ledger_id
    if args.ledger is not None:
        if has_ledger_options(args):
            raise ConfigurationError(
                f"LEDGER {args.ledger} and an option name a ledger: give one of them", "LEDGER"
            )
        try:
            if len(args.ledger) <= _MOST_DIGITS:
                ledger_id = uint64(args.ledger)
            else:
                named = qualified_name(args.ledger)
        except argparse.ArgumentTypeError as error:
            raise ConfigurationError(
                f"LEDGER {args.ledger!r} is neither a number nor a qualified name: {error}",
                "LEDGER",
            ) from None
    if named is None:
        if ledger_id is None:
            if scope_id is not None:
                raise ConfigurationError(
                    "--ledger-scope-id alone names no ledger: give --ledger-id too", "--ledger-id"
                )
            return None
        try:
            return QualifiedId(scope_id or 0, ledger_id)
        except QualifiedIdError as error:
            raise ConfigurationError(str(error), "--ledger-id") from None
    for option, given, expected in (
        ("--ledger-scope-id", scope_id, named.scope_id),
        ("--ledger-id", ledger_id, named.ledger_id),
    ):
        if given is not None and given != expected:
            raise ConfigurationError(
                f"{option} {given} and --ledger-qualified-name {named} are different ledgers:"
                f" that name has {expected}; give one of them",
                option,
            )
    return named


def required_ledger(args: argparse.Namespace) -> QualifiedId:
    """Return the ledger that the options name. Raises as `given_ledger`, and if there is none."""
    ledger = given_ledger(args)
    if ledger is None:
        raise ConfigurationError(
            "no ledger is named: give LEDGER, --ledger-id or --ledger-qualified-name", "LEDGER"
        )
    return ledger


def id_row(ledger: QualifiedId) -> dict[str, str]:
    """Return both forms of an id. Numbers are strings: they exceed the integers of JSON readers."""
    return {
        "scope_id": str(ledger.scope_id),
        "ledger_id": str(ledger.ledger_id),
        "qualified_name": str(ledger),
    }


def emit_info(info: LedgerInfo, args: argparse.Namespace) -> None:
    """Print all that is known of a ledger."""
    row = info_row(info)
    if args.json:
        emit(row, args)
        return
    shown = as_row(row).items()
    emit(
        {
            ("created" if name == "created_ms" else name): (
                time_text(value) if name == "created_ms" else value
            )
            for name, value in shown
        },
        args,
    )


def info_row(info: LedgerInfo) -> LedgerRow:
    """Return all that is known of a ledger."""
    return LedgerRow(
        **id_row(info.id),
        type=info.type,
        state=info.state,
        digest_type=info.digest_type,
        last_add_confirmed=info.last_add_confirmed,
        last_add_pushed=info.last_add_pushed,
        length_bytes=info.length,
        has_writer=info.has_writer,
        recording_id=info.recording_id,
        confirmed_position=info.confirmed_position,
        recorded_position=info.recorded_position,
        created_ms=info.created_ms,
        write_quorum=info.write_quorum,
        ack_quorum=info.ack_quorum,
        has_password=info.has_password,
        mirrors=list(info.mirrors),
        members=[
            MemberArchive(
                channel=each.channel,
                is_connected=each.is_connected,
                lag_bytes=max(info.recorded_position - each.confirmed_position, 0)
                if each.is_connected
                else None,
                error=each.error,
            )
            for each in info.members
        ],
        damaged_entries=info.damaged_entries,
        repaired_entries=info.repaired_entries,
    )
