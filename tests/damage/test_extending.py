"""Extensions of recordings in damaged directories: data after their ends is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.damage.damaged_directory import BuiltDirectory, surviving
from support.damage.damages import Damaged
from support.damage.tool_commands import run

from aerotape.archive.recording.extension import clear_stale_tail, refuse_request
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.errors import CatalogError, StorageError

_NOW_MS = 1_800_000_000_000


def lower(directory: Path) -> None:
    """Set the ends of recordings in the middle of their valid frames."""
    with Catalog.open(directory) as catalog:
        for recording_id in list(catalog.recording_ids()):
            descriptor = catalog.descriptor(recording_id)
            length = descriptor.stop_position - descriptor.start_position
            if length > 0:
                middle = descriptor.start_position + length // 64 * 32
                catalog.set_stop_position(recording_id, middle)


def prepare_extensions(directory: Path) -> int:
    """Do what an archive does that starts and then extends each recording; return their number."""
    count = 0
    with Catalog.open(directory, create=True) as catalog:
        refresh(catalog, directory, checksum="crc-32c", now_ms=_NOW_MS)
        for recording_id in list(catalog.recording_ids()):
            try:
                descriptor = catalog.descriptor(recording_id)
                if not descriptor.is_active and not refuse_request(
                    catalog, recording_id, descriptor.stream_id, is_recorded=False, deleted_to=None
                ):
                    clear_stale_tail(directory, descriptor, _NOW_MS)
                    count += 1
            except (CatalogError, StorageError):
                continue
    return count


@pytest.mark.parametrize("is_lowered", [False, True], ids=["verified", "lowered"])
def test_extensions_lose_nothing(
    built: BuiltDirectory, damaged: Damaged, directory: Path, *, is_lowered: bool
) -> None:
    """Neither after an end that `verify` has set nor after any other end."""
    run("tool", directory, "verify")
    try:
        if is_lowered:
            lower(directory)
        count = prepare_extensions(directory)
    except CatalogError:
        assert damaged.hit.no_catalog or damaged.hit.entries
        count = 0
    assert not damaged.surviving - surviving(built, directory)
    if not damaged.hit.no_catalog and not damaged.hit.entries:
        assert count > 2
