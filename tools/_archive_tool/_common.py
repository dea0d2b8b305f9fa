"""Helpers of the commands of `aerotape tool`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.catalog.layout import checksum_name
from aerotape.frame_header import ChecksumName
from aerotape.tools._cli.arguments import identity
from aerotape.tools._cli.confirm import confirm
from aerotape.tools._cli.times import time_text

if TYPE_CHECKING:
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.recovery.suspect_marks import SuspectNote

_SHOWN_IDS: Final = 20


@dataclass(frozen=True, slots=True)
class RetainedFile:
    """A segment file that was not deleted.

    Attributes:
        segment_file: segment file.
        reason: why.
    """

    segment_file: str
    reason: str


def add_recording_id(parser: argparse.ArgumentParser, *, optional: bool = True) -> None:
    """Add the recording id of a command; if optional, the default is all recordings."""
    parser.add_argument(
        "recording_id",
        metavar="RECORDING_ID",
        type=identity,
        nargs="?" if optional else None,
        help="only this recording" if optional else "the recording",
    )


def some_ids(recording_ids: Sequence[int], args: argparse.Namespace) -> str:
    """Return recording ids as text, shortened if there are many and -v is not given."""
    shown = recording_ids if args.verbose else recording_ids[:_SHOWN_IDS]
    text = ", ".join(map(str, shown))
    left_out = len(recording_ids) - len(shown)
    return f"{text} and {left_out} more, shown with -v or --json" if left_out else text


def note_text(note: SuspectNote) -> str:
    """Return a note on a recording: what was found, and when it was accepted."""
    text = f"{note.outcome}: {note.detail}"
    if note.is_accepted:
        text += f" (accepted {time_text(note.accepted_timestamp_ms)})"
    return text


def would(args: argparse.Namespace, done: str, infinitive: str) -> str:
    """Return the verb for what was done, or with --dry-run would be."""
    return f"would {infinitive}" if args.dry_run else done


def add_checksum_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add -checksum, as ArchiveTool spells it."""
    parser.add_argument("-checksum", "--checksum", metavar="X", type=checksum, help=help_text)


def checksum(name: str) -> ChecksumName:
    """Parse the name of a checksum, ours or the Java class's."""
    known = checksum_name(name)
    if known in (None, "none"):
        raise argparse.ArgumentTypeError(f"unknown checksum {name!r}: expected crc-32 or crc-32c")
    return known


def confirm_change(
    args: argparse.Namespace, deed: str, check: Callable[[Catalog], None] = lambda _: None
) -> None:
    """Ask for confirmation of a change that would not be refused.

    The directory is not locked while the user is asked, so `changing` must check again.

    Args:
        deed: the change, as for `confirm`.
        check: raises if the catalog cannot be changed.
    """
    if args.dry_run or args.yes:
        return
    with changing(args) as catalog:
        check(catalog)
    confirm(args, deed, any_input=True)


@contextmanager
def changing(
    args: argparse.Namespace,
    *,
    capacity_bytes: int | None = None,
    checksum: ChecksumName = "none",
    sync_level: int = 0,
) -> Iterator[Catalog]:
    """Open the catalog for changes, and prevent archives of this package from starting.

    With --dry-run the catalog is only read, and an archive may be using the directory. The file is
    not written before the first change or call of `Catalog.reserve`, as a command may be refused.

    Args:
        capacity_bytes: the least length of the file; by default it stays the same.
        checksum: checksum of descriptors that are changed.
        sync_level: as for `Catalog.open`.

    Raises:
        ArchiveInUseError: an archive is using the directory.
        CatalogError: the catalog cannot be opened.
    """
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.layout import MIN_CAPACITY_BYTES
    from aerotape.catalog.mark.mark_file import DEFAULT_LIVENESS_TIMEOUT_MS
    from aerotape.catalog.mark.ownership import unused

    with (
        nullcontext() if args.dry_run else unused(args.directory, DEFAULT_LIVENESS_TIMEOUT_MS),
        Catalog.open(
            args.directory,
            read_only=args.dry_run,
            capacity_bytes=capacity_bytes or MIN_CAPACITY_BYTES,
            checksum=checksum,
            sync_level=sync_level,
            lazily=True,
        ) as catalog,
    ):
        yield catalog
