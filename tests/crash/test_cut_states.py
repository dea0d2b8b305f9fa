"""A sample of states after power cuts, opened by the daemon, ArchiveTool and the Java archive.

`test_power_cuts` checks all states with our own readers. This module draws a few of them, in which
a segment file, the catalog or the mark file is not as it was last written.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.daemon.archives import EMBEDDED_DRIVER, start_after_crash
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.jvm.java import JavaArchive, archive_tool
from support.model.placed_messages import check_replayed
from support.power_cut.power_cut import Cut
from support.power_cut.recorded_archive import CHECKSUMS, promises, record
from support.processes import ArchiveProcess

import aerotape

pytestmark = [pytest.mark.jvm, pytest.mark.crash]

KINDS = {"segment": ".rec", "catalog": "archive.catalog", "mark file": "archive-mark.dat"}
OF_EACH = 2
MIN_PLACES = 5
"""At how many changes there must be any of a kind, for what is drawn to say something."""
LEVEL = 1
CHECKSUM: Final = "crc-32c"
PROPERTIES = {"aeron.archive.record.checksum": CHECKSUMS[CHECKSUM]}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory in memory."""
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def cuts(folder: Path, seeds: range) -> dict[str, list[Cut]]:
    """Power cuts after a client was promised something, some of each kind."""
    seed = seeds.start
    found: dict[str, list[Cut]] = {kind: [] for kind in KINDS}
    latest: dict[str, bytes] = {}
    run = record(folder / "aeron", folder, LEVEL, CHECKSUM, seed)
    for cut in run.power_cuts(seed):
        if cut.kind == "everything":  # the first at each place
            latest = dict(cut.files)
        if any(each.must_be_there for each in promises(cut).values()):
            for kind, suffix in KINDS.items():
                names = [n for n in latest.keys() | cut.files.keys() if n.endswith(suffix)]
                if any(latest.get(name) != cut.files.get(name) for name in names):
                    found[kind].append(cut)
    draw = random.Random(seed)
    for kind, states in found.items():
        assert len({cut.place for cut in states}) >= MIN_PLACES, f"{kind}: {len(states)} states"
    return {kind: draw.sample(states, OF_EACH) for kind, states in found.items()}


@pytest.fixture(scope="module")
def driver_dir(folder: Path) -> Iterator[Path]:
    """The directory of a media driver for all archives of this module."""
    path = folder / "driver"
    with aerotape.MediaDriver.launch(path, EMBEDDED_DRIVER):
        yield path


@pytest.fixture(scope="module")
def replayed() -> Iterator[list[int]]:
    """The number of messages that each archive replayed, which must not be zero."""
    counts: list[int] = []
    yield counts
    assert not counts or sum(counts) > 0


@pytest.fixture(params=[(kind, n) for kind in KINDS for n in range(OF_EACH)], ids=str)
def cut(cuts: dict[str, list[Cut]], request: pytest.FixtureRequest) -> Cut:
    """One of the power cuts."""
    kind: str
    number: int
    kind, number = request.param
    return cuts[kind][number]


@pytest.fixture
def directory(cut: Cut, folder: Path) -> Iterator[Path]:
    """The archive directory after the power cut."""
    left = folder / "left"
    cut.write(left)
    # The archive looks like one that stopped long ago.
    with contextlib.suppress(AssertionError, struct.error):
        age_mark_file(left / "a" / "archive")
    yield left / "a" / "archive"
    shutil.rmtree(left)


def check_served(archive: ArchiveProcess, driver_dir: Path, cut: Cut) -> int:
    """Replay what clients were promised and check each byte; return the number of messages."""
    count = 0
    with aerotape.connect(
        aeron_dir=driver_dir,
        control_request_channel=archive.control_channel,
        control_response_channel="aeron:ipc",
    ) as client:
        for number, promised in promises(cut).items():
            descriptor = client.list_recording(number)
            if not promised.must_be_there:
                continue
            what = f"{cut}: recording {number}, {promised}, {descriptor}"
            assert descriptor is not None, what
            assert descriptor.stop_position >= promised.position, what
            if promised.stop is not None:
                assert descriptor.stop_position == promised.stop, what
            start = descriptor.start_position
            if promised.stream_id:
                assert descriptor.stream_id == promised.stream_id, what
                assert start in promised.starts, what
            length = promised.position - start
            if length > 0:
                with client.replay(number, start, length=length) as messages:
                    count += check_replayed(descriptor, messages, promised.position)
    return count


def verified(directory: Path, cut: Cut) -> None:
    """Verify with ArchiveTool what was promised."""
    # Without -checksum: the power may fail between a change to an entry and its checksum.
    done = archive_tool(directory, "verify", "-a", answers="y\n")
    for number, promised in promises(cut).items():
        if promised.must_be_there and promised.position > min(promised.starts):
            assert f"(recordingId={number}) OK" in done.stdout, f"{cut}: {done}"


def test_the_daemon_serves_what_was_promised(
    cut: Cut, directory: Path, driver_dir: Path, replayed: list[int]
) -> None:
    """Whatever was torn; ArchiveTool finds no damage in the directory afterwards."""
    with AerotapeArchive(directory, driver_dir, driver="external", properties=PROPERTIES) as ours:
        replayed.append(check_served(ours, driver_dir, cut))
        assert ours.stop() == 0
    verified(directory, cut)


def test_java_serves_what_was_promised(
    cut: Cut, directory: Path, driver_dir: Path, replayed: list[int]
) -> None:
    """ArchiveTool describes it, and the Java archive starts on it, whatever was torn."""
    described = archive_tool(directory, "describe")
    assert described.returncode == 0, described.stderr
    listed = {int(number) for number in re.findall(r"\|recordingId=([0-9]+)\|", described.stdout)}
    known = promises(cut)
    assert {number for number, each in known.items() if each.must_be_there} <= listed, str(cut)
    archive = JavaArchive(directory, driver_dir, driver="external", properties=PROPERTIES)
    with start_after_crash(archive) as java:
        replayed.append(check_served(java, driver_dir, cut))
