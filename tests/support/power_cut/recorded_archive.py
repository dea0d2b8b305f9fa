"""What an archive at work does to files, and what its clients were told until the power failed."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aerotape.catalog.layout import ChecksumName
from support.power_cut.power_cut import Cut, Run, build_shim, recorded
from support.power_cut.run import RUN_S

# How often a run is recorded at most until its record is complete.
MAX_RUNS = 3
CHECKSUMS = {"none": "", "crc-32c": "io.aeron.archive.checksum.Crc32c"}


@dataclass
class Promised:
    """What clients know of a recording.

    Attributes:
        position: there are all bytes up to it.
        counter: index of its position counter, if that is watched.
        stop: its stop position.
        is_ended: whether that must be in the catalog, and not what a start finds.
        limit: a position behind which nothing was published.
        is_entered: whether it must be in the catalog, told or not.
    """

    position: int = 0
    counter: int = -1
    stop: int | None = None
    starts: set[int] = field(default_factory=lambda: {0})
    is_ended: bool = False
    limit: int | None = None
    is_entered: bool = False
    may_be_purged: bool = False
    is_purged: bool = False
    stream_id: int = 0
    channels: set[str] = field(default_factory=set)

    @property
    def must_be_there(self) -> bool:
        """Whether clients know of it, or it is in a catalog that is forced to storage."""
        return not self.may_be_purged and (
            self.is_entered or self.counter >= 0 or self.stream_id > 0
        )


def promises(cut: Cut) -> dict[int, Promised]:
    """Work out what had been promised when the power failed."""
    known: dict[int, Promised] = {}
    for text in cut.notes:
        what, *arguments = json.loads(text)
        if not arguments:
            continue
        recording = known.setdefault(arguments[0], Promised())
        value: Any = arguments[1] if len(arguments) > 1 else None
        if what == "made":
            recording.stream_id = value
        elif what == "recorded":
            recording.position = value
        elif what == "counter":
            recording.counter, recording.stop = value, None
            # Until something is published there can be nothing behind.
            recording.limit = recording.position if value >= 0 else None
        elif what == "publishing":
            recording.limit = None
        elif what == "entered":
            recording.is_entered = True
        elif what == "stopped":
            recording.stop = recording.position = value
            recording.is_ended = True
        elif what == "extend":
            recording.is_ended = False
        elif what == "cut":
            recording.position, recording.stop = value, None
        elif what == "start":
            recording.starts.add(value)
        elif what == "purge":
            recording.may_be_purged = True
        elif what == "purged":
            recording.is_purged = True
        elif what == "channel":
            recording.channels = {value}
        elif what == "new channel":
            recording.channels.add(value)
    for recording in known.values():
        if 0 <= recording.counter < len(cut.counters):
            recording.position = max(recording.position, cut.counters[recording.counter])
    return known


def record(aeron_dir: Path, tmp_path: Path, level: int, checksum: ChecksumName, seed: int) -> Run:
    """Have an archive at work and return what it does to files.

    A change has escaped once in about a hundred runs, why is not known. Such a record is of no use:
    it is made again, with a warning that tells what is missing.
    """
    for _ in range(MAX_RUNS - 1):
        run = _recorded(aeron_dir, tmp_path, level, checksum, seed)
        try:
            run.check_complete()
        except AssertionError as error:
            warnings.warn(f"what an archive did is not known completely: {error}", stacklevel=2)
            shutil.rmtree(run.root)
            (tmp_path / "log").unlink()
        else:
            return run
    run = _recorded(aeron_dir, tmp_path, level, checksum, seed)
    run.check_complete()
    return run


def _recorded(
    aeron_dir: Path, tmp_path: Path, level: int, checksum: ChecksumName, seed: int
) -> Run:
    root = aeron_dir.parent / "root"
    root.mkdir()
    return recorded(
        build_shim(tmp_path),
        root,
        tmp_path / "log",
        [
            *(sys.executable, "-m", "support.power_cut.run", str(root), str(aeron_dir), str(seed)),
            f"aeron.archive.file.sync.level={level}",
            f"aeron.archive.catalog.file.sync.level={level}",
            f"aeron.archive.record.checksum={CHECKSUMS[checksum]}",
        ],
        RUN_S + 30,
    )
