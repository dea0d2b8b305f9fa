"""The same random segment requests to both archives have the same responses and files."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.builders.streams import TERM_LENGTH as TERM
from support.builders.streams import record, segment_files
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive, JavaArchiveException, JavaClient

STREAM_ID = 6001
DELETING = ("deleteDetachedSegments", "purgeSegments", "migrateSegments", "truncateRecording")
Call = tuple[str, tuple[int, ...]]


class Side:
    """One of the two archives and its client."""

    def __init__(self, archive: AerotapeArchive | JavaArchive, client: JavaClient) -> None:
        self.archive_dir = Path(archive.archive_dir)
        self.client = client

    def make(self, start: int, length: int) -> int:
        return record(self.client, STREAM_ID, length, start_position=start).recording_id

    def call(self, call: Call) -> Any:
        """Return the result of a call, or its error code; wait until its files are deleted."""
        method, arguments = call
        if method == "migrateSegments":
            self._make_way(*arguments)
        self.client.call("takeSignals")
        try:
            result = self.client.call(method, *arguments)
        except JavaArchiveException as error:
            assert error.exception == "ArchiveException", error
            return f"error {error.error_code}"
        if method in DELETING and not (method == "migrateSegments" and result == 0):
            signals: list[Any] = []

            def is_deleted() -> bool:
                signals.extend(self.client.call("takeSignals"))
                return any(signal["signal"] == "DELETE" for signal in signals)

            await_true(is_deleted)
        return result

    def _make_way(self, source: int, target: int) -> None:
        """Delete the blank next segment of the target, with which Java refuses to migrate."""
        start = self.positions().get(source, (None, None))[0]
        if start is not None and start == self.positions().get(target, (None, None))[1]:
            blank = self.archive_dir / f"{target}-{start}.rec"
            if blank.exists() and not any(blank.read_bytes()):
                blank.unlink()

    def positions(self) -> dict[int, tuple[int, int]]:
        return {
            row["recordingId"]: (row["startPosition"], row["stopPosition"])
            for row in self.client.call("listRecordings", 0, 1000)
        }

    def state(self) -> dict[int, tuple[int, int, list[int]]]:
        """Positions and files of each recording."""
        return {
            recording_id: (start, stop, segment_files(self.archive_dir, recording_id))
            for recording_id, (start, stop) in self.positions().items()
        }


@pytest.fixture(scope="module")
def sides() -> Iterator[list[Side]]:
    """Our archive and the Java one, each with its own driver."""
    folder = Path(tempfile.mkdtemp(prefix="aerotape-sequences-", dir="/dev/shm"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        made = []
        archives: list[AerotapeArchive | JavaArchive] = [
            AerotapeArchive(folder / "own", folder / "own-driver"),
            JavaArchive(folder / "java", folder / "java-driver"),
        ]
        for archive in archives:
            stack.enter_context(archive)
            client = stack.enter_context(JavaClient(archive.aeron_dir))
            client.connect(archive.control_channel)
            made.append(Side(archive, client))
        yield made


def random_call(rng: random.Random, recordings: dict[int, tuple[int, int]]) -> Call:
    """Return a request for one of the recordings, valid or not."""
    recording_id = rng.choice([*recordings, *recordings, 99_999])
    start, stop = recordings.get(recording_id, (0, 4 * TERM))
    edges = [base + step for base in (start, stop) for step in (-TERM, 0, 1024, TERM, 2 * TERM)]
    boundaries = list(range(start - start % TERM + TERM, stop + 1, TERM)) or [start]
    position = rng.choice([*edges, rng.randrange(8 * 64) * 1024])
    if rng.random() < 0.6:
        position = rng.choice(boundaries)
    match rng.choice(["detach", "detach", "purge", "attach", "delete", "move", "move", "cut"]):
        case "detach":
            return "detachSegments", (recording_id, position)
        case "purge":
            return "purgeSegments", (recording_id, position)
        case "attach":
            return "attachSegments", (recording_id,)
        case "delete":
            return "deleteDetachedSegments", (recording_id,)
        case "cut":
            return "truncateRecording", (recording_id, position)
        case _:
            meeting = [
                (one, other)
                for one, (begin, end) in recordings.items()
                for other, (other_begin, other_end) in recordings.items()
                if one != other and (end == other_begin or begin == other_end)
            ]
            pairs = meeting or [(recording_id, rng.choice(list(recordings)))]
            return "migrateSegments", rng.choice(pairs)


@pytest.mark.parametrize("seed", range(2))
def test_both_archives_behave_alike(sides: list[Side], seed: int) -> None:
    """Results, error codes, positions in the catalog and the set of segment files are equal."""
    rng = random.Random(seed)
    own, java = sides
    known = set(own.positions())
    done: list[tuple[Call, Any]] = []
    for _ in range(60):
        if rng.random() < 0.25 or len(own.positions().keys() - known) < 2:
            stops = [stop for _, stop in own.positions().values() if 0 < stop < 6 * TERM]
            start = rng.choice([0, 2048, *stops, *stops])
            length = rng.choice([1024, 2 * TERM, 3 * TERM, 3 * TERM + 4096, 5 * TERM])
            assert own.make(start, length) == java.make(start, length)
        recordings = {key: each for key, each in own.positions().items() if key not in known}
        call = random_call(rng, recordings)
        results = [side.call(call) for side in sides]
        done.append((call, results))
        assert results[0] == results[1], done
        assert own.state() == java.state(), done
    carried_out = {call[0] for call, (result, _) in done if not str(result).startswith("error")}
    assert len(carried_out) > 3, carried_out
    assert any(result == "error 0" for _, (result, _) in done)
