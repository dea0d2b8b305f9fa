"""The measurements and their order."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.tools._bench.measurement import ROWS, Load, Measurement, rounds_of
from aerotape.tools._bench.written import SEGMENT_LENGTH, counting_payload, write_recording

if TYPE_CHECKING:
    from aerotape._native import ChecksumName
    from aerotape.tools._bench.offline import WrittenArchive
    from aerotape.tools._bench.workspace import Workspace

LIVE: Final = frozenset({"record", "replay"})
CHECKSUM: Final[ChecksumName] = "crc-32c"


def needed_bytes(load: Load) -> int:
    """Return the bytes for files: a recording, the last one while it is deleted, a table."""
    return 3 * load.length + SEGMENT_LENGTH


def row_count(chosen: Collection[str]) -> int:
    """Return the number of rows of these measurements."""
    return sum(len(ROWS[name]) for name in chosen)


def machine() -> dict[str, Any]:
    """Return the properties of the machine that the results depend on."""
    return {
        "aerotape": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
    }


def measure(place: Workspace, load: Load, chosen: Collection[str]) -> Iterator[Measurement]:
    """Run the chosen measurements, in the order of `ROWS`."""
    if LIVE.intersection(chosen):
        yield from _measure_live(place, load, chosen)
    if not LIVE.issuperset(chosen):
        yield from _measure_offline(place, load, chosen)


def _measure_live(place: Workspace, load: Load, chosen: Collection[str]) -> Iterator[Measurement]:
    from aerotape.tools._bench.live import LiveArchive

    checksums: tuple[ChecksumName, ...] = ("none", CHECKSUM) if "record" in chosen else ("none",)
    for checksum, row in zip(checksums, ROWS["record"], strict=False):
        with LiveArchive(place, load, checksum) as archive:
            actions: dict[str, Callable[[], float]] = {}
            if "record" in chosen:
                actions[row] = archive.record
            if "replay" in chosen and checksum == "none":
                ways = (archive.replay, archive.replay_into_python)
                actions |= zip(ROWS["replay"], ways, strict=True)
            for what, once in actions.items():
                seconds = rounds_of(once, load.rounds)
                yield Measurement(what, archive.messages, archive.recorded_length, seconds)
        shutil.rmtree(archive.folder)


def _measure_offline(
    place: Workspace, load: Load, chosen: Collection[str]
) -> Iterator[Measurement]:
    from aerotape.replay.offline.directory import open_directory
    from aerotape.tools._bench.offline import WrittenArchive

    folder = place.folder / "written"
    payload = counting_payload(load.message_bytes)
    recording_id, messages = write_recording(folder, payload, load.length, CHECKSUM)
    length = open_directory(folder).recording(recording_id).recorded_position
    archive = WrittenArchive(folder, messages)

    def measured(what: str, once: Callable[[], float]) -> Measurement:
        return Measurement(what, messages, length, rounds_of(once, load.rounds))

    if "scan" in chosen:
        everything, two_columns, checked = ROWS["scan"]
        yield measured(everything, archive.scan)
        yield measured(two_columns, lambda: archive.scan(("position", "payload")))
        yield measured(checked, lambda: archive.scan(checksum=CHECKSUM))
    if "verify" in chosen:
        plain, checked = ROWS["verify"]
        yield measured(plain, archive.verify)
        yield measured(checked, lambda: archive.verify(CHECKSUM))
    if "parquet" in chosen:
        with _conversion(place, archive) as convert:
            yield measured(ROWS["parquet"][0], convert)


@contextmanager
def _conversion(place: Workspace, archive: WrittenArchive) -> Iterator[Callable[[], float]]:
    """Yield the conversion in one Spark session, started by the round that does not count."""
    from aerotape.spark.tables.task_runner import SparkTasks

    with SparkTasks(None) as tasks:
        yield lambda: archive.convert(place.folder / "table", tasks)
