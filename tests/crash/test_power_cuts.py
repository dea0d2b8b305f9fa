"""Power cuts while an archive records, at every change that it makes to files."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.mark_files import acquire
from support.builders.segment_builder import SegmentBuilder
from support.model.placed_messages import check_placed
from support.power_cut.disk import SECTOR_LENGTH
from support.power_cut.power_cut import PAGE_LENGTH, Cut, Run, build_shim, recorded
from support.power_cut.recorded_archive import Promised, promises, record

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.recovery.refresh import refresh
from aerotape.errors import AerotapeError, CatalogError, StorageError
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline.directory import Recording, open_directory

pytestmark = pytest.mark.crash

NOW_MS = 1_700_000_000_000
"""When a directory is opened that a power cut has left."""


def start(directory: Path, checksum: ChecksumName) -> tuple[list[int], set[int]]:
    """Take over the directory and refresh its catalog, as an archive does at its start.

    Returns:
        Ids of the recordings, and of those in which it has found damage.
    """
    directory.mkdir(parents=True, exist_ok=True)
    acquire(directory, liveness_timeout_ms=0).close()
    with Catalog.open(directory, create=True, capacity_bytes=2048, checksum=checksum) as catalog:
        outcomes = refresh(catalog, directory, checksum=checksum, now_ms=NOW_MS)
        # The next recording must not find existing files.
        assert not list(directory.glob(f"*{catalog.next_recording_id}-*.rec"))
        assert not list(directory.glob(f"aerotape-{catalog.next_recording_id}[.-]*"))
        return list(catalog.recording_ids()), {o.recording_id for o in outcomes if o.suspect}


def check(directory: Path, cut: Cut, level: int, checksum: ChecksumName) -> int:
    """Check that an archive starts, and that everything exists that was promised at a sync level.

    Data that was not promised may be damaged if that is reported.

    Returns:
        The number of messages that are served.
    """
    if '["serving"]' in cut.notes:
        # Without a version, ArchiveTool waits until its timeout for an archive to write it.
        assert MarkFile.read(directory).header.version > 0
    ids, suspects = start(directory, checksum)
    known = promises(cut) if level else {}
    assert {each for each, promised in known.items() if promised.must_be_there} <= set(ids)
    served = 0
    for recording_id in ids:
        promised = known.get(recording_id, Promised())
        assert not promised.is_purged, f"recording {recording_id} is back"
        recording = open_directory(directory).recording(recording_id)
        served += check_recording(recording, promised, recording_id in suspects, level, checksum)
    return served


def check_recording(
    recording: Recording, promised: Promised, is_suspect: bool, level: int, checksum: ChecksumName
) -> int:
    what = f"recording {recording.recording_id}, promised {promised}, suspect {is_suspect}"
    try:
        descriptor = recording.descriptor
    except CatalogError as error:
        assert is_suspect and not level, f"{what}: {error}"
        return 0
    assert descriptor.stop_position >= promised.position, f"{what}: {descriptor.stop_position}"
    if promised.stop is not None:
        assert descriptor.stop_position == promised.stop, what
    if promised.is_ended:
        assert descriptor.stop_timestamp_ms != NOW_MS, f"{what}: the start had to find the end"
    if promised.limit is not None:
        assert descriptor.stop_position <= promised.limit, f"{what}: {descriptor.stop_position}"
    if promised.stream_id:
        assert descriptor.start_position in promised.starts, what
        assert descriptor.stream_id == promised.stream_id, what
    if level:
        # Also for a recording that was not reported to a client.
        channel = descriptor.original_channel
        assert channel in promised.channels if promised.channels else "\0" not in channel, what
        assert channel.startswith("aeron:ipc"), f"{what}: {channel!r}"
    # Without a checksum, a page that is missing in a message is detected in the last segment.
    may_be_other = level == 0 and checksum == "none"
    but = (StorageError,) * (is_suspect or level == 0) + (AssertionError,) * (
        may_be_other or (is_suspect and checksum == "none")
    )
    return check_placed(recording, checksum, what, promised.position, but)


def check_all(
    run: Run,
    left: Path,
    level: int,
    checksum: ChecksumName,
    seed: int,
    mixtures: int,
    passed: Container[int] = (),
) -> int:
    """Check all states after power cuts, created at the path `left`; return the messages served.

    Args:
        passed: states that need no further check.
    """
    served = 0
    for cut in cuts_of(run, checksum, seed, mixtures):
        if cut.state in passed:
            continue
        cut.write(left)
        try:
            served += check(left / "a" / "archive", cut, level, checksum)
        except BaseException as error:
            error.add_note(f"{cut}, --seed={seed}")
            raise
        finally:
            shutil.rmtree(left)
    return served


def cuts_of(run: Run, checksum: ChecksumName, seed: int, mixtures: int) -> Iterator[Cut]:
    # Without a checksum, a sector that is missing within a page is not detected.
    unit = PAGE_LENGTH if checksum == "none" else SECTOR_LENGTH
    return run.power_cuts(seed, mixtures, segment_unit=unit)


@pytest.mark.parametrize(
    ("level", "checksum"), [(0, "none"), (0, "crc-32c"), (1, "none"), (2, "crc-32c")]
)
def test_power_cuts_while_an_archive_records(
    tmp_path: Path,
    aeron_dir: Path,
    level: int,
    checksum: ChecksumName,
    seeds: range,
) -> None:
    """All that was reported to clients at sync levels 1 and 2 exists; at 0 the archive starts."""
    seed, mixtures = seeds.start, len(seeds)
    run = record(aeron_dir, tmp_path, level, checksum, seed)
    assert check_all(run, aeron_dir.parent / "left", level, checksum, seed, mixtures) > 0


# The existing entries of a catalog were forced when they were stored. New entries and the length of
# the file will be forced.
NEEDLESS = re.compile(r"mapped_file\.py CatalogFile\.grow:.*")
FORCED = (
    "archive.py _make_directory",
    "catalog.py Catalog._replace",
    "catalog.py Catalog.add_recording",
    "catalog.py Catalog.change_state",
    "catalog.py Catalog.extend_recording",
    "catalog.py Catalog.recording_stopped",
    "catalog.py Catalog.set_start_position",
    "catalog.py Catalog.set_stop_position",
    "mapped_file.py CatalogFile._initialise",
    "mapped_file.py CatalogFile.grow",
    "mapped_file.py CatalogFile.rewrite",
    "mark_file.py MarkFile._signal",
    "native code, bytes",
    "native code, names",
    "removal.py Removals.truncate",
    "quarantine.py erase_tail",
)


def test_a_missing_force_to_storage_is_detected(tmp_path: Path, aeron_dir: Path) -> None:
    """The checks fail if any one place in the archive does not force its data to storage."""
    run = record(aeron_dir, tmp_path, 1, "none", 1)
    places = run.places_of_forcing()
    assert {name for place in places for name in FORCED if place.startswith(name)} == set(FORCED)
    passed = {cut.state for cut in cuts_of(run, "none", 1, 4)}  # as those of the previous test
    unnoticed = []
    for place in places:
        try:
            check_all(run.without(place), aeron_dir.parent / "left", 1, "none", 1, 4, passed)
        except (AssertionError, AerotapeError, OSError):
            continue
        unnoticed.append(place)
    needed = [place for place in unnoticed if not NEEDLESS.match(place)]
    assert not needed, f"of {len(places)} places these are not noticed: {needed}"


REFRESH = """
import sys
from pathlib import Path
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh

directory = Path(sys.argv[1])
with Catalog.open(directory, sync_level=1) as catalog:
    refresh(catalog, directory, now_ms=1)
"""


def test_power_cuts_while_a_start_removes_a_torn_tail(tmp_path: Path, aeron_dir: Path) -> None:
    """Data after the end is in its place or in quarantine, and then the recording is marked."""
    root = aeron_dir.parent / "root"
    directory = root / "archive"
    directory.mkdir(parents=True)
    stream = SegmentBuilder(segment_length=65_536)
    while stream.position < 120_000:
        stream.message(bytes(range(1, 251)) * 5)
    add_recording(directory, stream, live=True)
    torn = next(message.position for message in stream.messages if message.position > 90_000)
    with (directory / "0-65536.rec").open("r+b") as file:
        os.pwrite(file.fileno(), bytes(32), torn - 65_536)
    (directory / "0-131072.rec").write_bytes(b"\xee" * 65_536)
    before = contents(directory)
    command = [sys.executable, "-c", REFRESH, str(directory)]
    run = recorded(build_shim(tmp_path), root, tmp_path / "log", command, 60)
    run.check_complete()
    left = aeron_dir.parent / "left"
    ends = set()
    for cut in run.power_cuts(1):
        cut.write(left)
        copy = left / "archive"
        assert before <= contents(copy), str(cut)
        with Catalog.open(copy) as catalog:
            [outcome] = refresh(catalog, copy, now_ms=2)
        ends.add(outcome.stop_position)
        assert outcome.suspect, str(cut)
        assert before <= contents(copy), str(cut)
        shutil.rmtree(left)
    assert ends == {torn}


def contents(directory: Path) -> set[bytes]:
    """Return the blocks of 32 bytes in segment files and in quarantine."""
    return {
        data[at : at + 32].ljust(32, b"\0")
        for path in directory.rglob("*.rec*")
        for data in [path.read_bytes()]
        for at in range(0, len(data), 32)
    }
