"""`import-archive`: add the recordings of another archive directory to a store."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import identity, uint64
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit_line, note
from aerotape.tools._ledger._common import id_row
from aerotape.tools._tool._common import add_checksum_option

if TYPE_CHECKING:
    from aerotape.catalog.scopes.importing import RecordingImport
    from aerotape.qualified_id import QualifiedId

_STORE_VARIABLE = "AERON_ARCHIVE_DIR"
_STORE = "aeron-archive"


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "import-archive", _import, writes=True)
    parser.add_argument(
        "source", metavar="DIR", type=Path, help="the archive directory to import; it is only read"
    )
    parser.add_argument(
        "--ledger-scope-id",
        metavar="N",
        type=uint64,
        help="the scope of the imported recordings (default: the archive id in DIR's mark file)",
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
    add_checksum_option(parser, "verify the checksums of frames first: crc-32 or crc-32c")


def _import(args: argparse.Namespace) -> int:
    """Import the recordings of another archive under their scope.

    Each recording is imported atomically. Those imported before are left as they are. Recordings
    that are being recorded, are damaged, or differ from the one imported under their id are left
    out; the exit code is 3 then, or 1 if nothing else was selected.
    """
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
    left_out = done = 0
    with (
        _ledgers(args.archive_dir) as is_ledger,
        Progress(None, "importing", unit="MiB") as progress,
    ):
        for each in import_archive(
            args.archive_dir,
            source,
            scope,
            recording_ids=args.recording_ids,
            checksum=args.checksum or "none",
            dry_run=args.dry_run,
            is_ledger=is_ledger,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        ):
            done += 1
            left_out += bool(each.error)
            _print(each, args)
    if not done and not args.json:
        print("no recordings")
    if not left_out:
        return EXIT_OK
    return EXIT_FAILURE if left_out == done else EXIT_DATA_SUSPECT


@contextmanager
def _ledgers(archive_dir: Path) -> Iterator[Callable[[QualifiedId], bool]]:
    """Open the metadata of a store's ledgers, if it has any; whether one has an id."""
    from aerotape.archive.ledger.store import FILE_NAME, LedgerStore

    if not (archive_dir / FILE_NAME).exists():
        yield lambda qualified_id: False
        return
    with closing(LedgerStore.open(archive_dir)) as store:
        yield store.has


def _print(outcome: RecordingImport, args: argparse.Namespace) -> None:
    result = outcome.result
    if args.dry_run and result == "imported":
        result = "would be imported"
    row = {
        **id_row(outcome.qualified_id),
        "result": result,
        "length": outcome.length,
        "directory": str(outcome.directory),
        "error": outcome.error or None,
    }
    id = f"recording {outcome.recording_id}"
    if outcome.error:
        note(f"left out: {id}: {outcome.error}")
        if not args.json:
            return
    emit_line(row, f"{id}: {outcome.qualified_id}, {result}, {outcome.length} bytes", args)
