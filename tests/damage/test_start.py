"""Archives started on damaged directories: whole data is served, nothing is lost."""

from __future__ import annotations

from pathlib import Path

from support.daemon.served import check_served, connect, launch
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import BuiltDirectory, content, surviving
from support.damage.damages import Damaged

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import RecordingOutcome, refresh
from aerotape.errors import AerotapeError, CatalogError

_NOW_MS = 1_800_000_000_000


def start(directory: Path) -> list[RecordingOutcome]:
    """Do what a start does to the directory."""
    with Catalog.open(directory, create=True) as catalog:
        return refresh(catalog, directory, checksum="crc-32c", now_ms=_NOW_MS)


def test_a_start_loses_nothing(built: BuiltDirectory, damaged: Damaged, directory: Path) -> None:
    """All frames are in the recordings or in quarantine; undamaged recordings are not changed."""
    before = content(directory)
    try:
        outcomes = {each.recording_id: each for each in start(directory)}
    except CatalogError:
        assert damaged.hit.no_catalog
        assert content(directory) == before
        return
    lost = damaged.surviving - surviving(built, directory)
    assert not lost
    check_untouched(built, directory, damaged.hit)
    if damaged.hit.no_catalog:
        return
    for number, original in built.originals.items():
        if original.live and number not in damaged.hit.recordings:
            outcome = outcomes[number]
            assert (outcome.repaired, outcome.stop_position) == (True, original.stream.position)
    again = content(directory)
    start(directory)
    assert content(directory) == again, "a second start found more to do"


def test_the_archive_starts_and_serves(
    built: BuiltDirectory, damaged: Damaged, directory: Path, driver_dir: Path
) -> None:
    """Replays of undamaged recordings are whole; others end at the damage, with all messages
    preceding it."""
    before = content(directory)
    try:
        archive = launch(directory, driver_dir)
    except AerotapeError as error:
        assert damaged.hit.no_catalog
        assert len(str(error).splitlines()) == 1
        after = content(directory)
        # The mark file identifies the archive.
        assert [name for name in before if before[name] != after.get(name)] == ["archive-mark.dat"]
        return
    with archive, connect(driver_dir) as client:
        check_served(client, built, damaged.path, damaged.hit)
    if not damaged.hit.no_catalog:
        assert not damaged.surviving - surviving(built, directory)
