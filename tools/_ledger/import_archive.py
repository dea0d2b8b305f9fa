"""`import-archive` and `replicate-archive`: add the recordings of another archive to a store."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError
from aerotape.tools._archive_tool._common import add_checksum_option
from aerotape.tools._cli.arguments import channel, identity, uint64
from aerotape.tools._cli.connection import connect
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit_line, note
from aerotape.tools._ledger._common import LedgerId, add_ledger_command, id_row

if TYPE_CHECKING:
    from aerotape.catalog.scopes.importing import RecordingImport

_STORE_VARIABLE = "AERON_ARCHIVE_DIR"
_STORE = "aeron-archive"


@dataclass(frozen=True, slots=True)
class ImportedRecording(LedgerId):
    """The outcome of one recording.

    Attributes:
        result: outcome.
        length: bytes of the recording.
        directory: directory.
        error: why it failed.
    """

    result: str
    length: int
    directory: str
    error: str | None


JSON_ROWS: Final = {"import-archive": ImportedRecording, "replicate-archive": ImportedRecording}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "import-archive", _import, writes=True)
    parser.add_argument(
        "source", metavar="DIR", type=Path, help="the archive directory to import; it is only read"
    )
    _add_store_options(parser, "the archive id in DIR's mark file")
    add_checksum_option(parser, "verify the checksums of frames first: crc-32 or crc-32c")

    replicate = add_ledger_command(commands, "replicate-archive", _replicate)
    _add_store_options(replicate, "the id of the archive")
    replicate.add_argument(
        "--replication-channel",
        metavar="CHANNEL",
        type=channel,
        help="the UDP channel to which the archive replays (default: as its responses)",
    )


def _add_store_options(parser: argparse.ArgumentParser, scope: str) -> None:
    parser.add_argument(
        "--ledger-scope-id",
        metavar="N",
        type=uint64,
        help=f"the scope of the imported recordings (default: {scope})",
    )
    parser.add_argument(
        "--archive-dir",
        metavar="STORE",
        type=Path,
        default=Path(os.environ.get(_STORE_VARIABLE) or _STORE),
        help="the archive directory to import into; its archive may be running "
        f"(default: ${_STORE_VARIABLE}, or {_STORE})",
    )
    parser.add_argument(
        "--recording-id",
        dest="recording_ids",
        metavar="ID",
        type=identity,
        action="append",
        help="only this recording (repeatable)",
    )


def _import(args: argparse.Namespace) -> int:
    """Import the recordings of another archive under their scope.

    Each recording is imported atomically. Those imported before are left as they are. Recordings
    that are being recorded, are damaged, or differ from the one imported under their id are left
    out; the exit code is 3 then, or 1 if nothing else was selected.
    """
    from aerotape.archive.features.ledger.metadata_store import ledgers_of
    from aerotape.catalog.scopes.importing import import_archive
    from aerotape.replay.offline.directory import open_directory

    source = open_directory(args.source)
    scope = args.ledger_scope_id
    if scope is None:
        scope = source.own_scope_id()
        if scope == 0:
            raise ConfigurationError(
                f"the mark file of {args.source} has no archive id: give --ledger-scope-id",
                "--ledger-scope-id",
            )
    with (
        ledgers_of(args.archive_dir) as is_ledger,
        Progress(None, "importing", unit="MiB") as progress,
    ):
        outcomes = import_archive(
            args.archive_dir,
            source,
            scope,
            recording_ids=args.recording_ids,
            checksum=args.checksum or "none",
            dry_run=args.dry_run,
            is_ledger=is_ledger,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        )
        return _reported(outcomes, args)


def _replicate(args: argparse.Namespace) -> int:
    """Replicate the recordings of a running archive into a store, under their scope.

    The archive is that of the connection options; the store is a local directory. A
    live recording is replicated up to where it is; repeat the command to continue. Recordings that
    differ from the one in the store are left out; the exit code is 3 then, or 1 if nothing else was
    selected.
    """
    from aerotape.archive.features.ledger.metadata_store import ledgers_of
    from aerotape.catalog.scope_layout import scope_of_archive
    from aerotape.client.store_replication import replicate_archive

    with (
        connect(args) as client,
        ledgers_of(args.archive_dir) as is_ledger,
        Progress(None, "replicating", unit="MiB") as progress,
    ):
        scope = args.ledger_scope_id
        if scope is None:
            scope = scope_of_archive(client.archive_id)
        outcomes = replicate_archive(
            client,
            args.archive_dir,
            scope,
            is_ledger=is_ledger,
            replay_channel=args.replication_channel,
            recording_ids=args.recording_ids,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        )
        return _reported(outcomes, args)


def _reported(outcomes: Iterator[RecordingImport], args: argparse.Namespace) -> int:
    """Print each outcome; return the exit code."""
    left_out = done = 0
    for each in outcomes:
        done += 1
        left_out += bool(each.error)
        _print(each, args)
    if not done and not args.json:
        print("no recordings")
    if not left_out:
        return EXIT_OK
    return EXIT_FAILURE if left_out == done else EXIT_DATA_SUSPECT


def _print(outcome: RecordingImport, args: argparse.Namespace) -> None:
    result = outcome.result
    if result == "imported" and args.dry_run:
        result = "would be imported"
    row = ImportedRecording(
        **id_row(outcome.qualified_id),
        result=result,
        length=outcome.length,
        directory=str(outcome.directory),
        error=outcome.error or None,
    )
    id = f"recording {outcome.recording_id}"
    if outcome.error:
        note(f"left out: {id}: {outcome.error}")
        if not args.json:
            return
    emit_line(row, f"{id}: {outcome.qualified_id}, {result}, {outcome.length} bytes", args)
