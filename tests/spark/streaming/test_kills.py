"""A streaming query that is killed in each way, and its archive twice: each message once.

Kills come at random moments (pytest's `--seed`), most of them in the middle of a batch: of the
whole driver, of the process that plans the batches, of the processes of tasks, or the query is
stopped.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.beside import working
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.daemon.recording import wait_until
from support.model.messages import message
from support.spark.streaming_job import StreamingJob, run_batches, start_query

import aerotape
from aerotape import _native
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyspark")

from support.spark.stream_query import Query, Row

pytestmark = pytest.mark.crash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"
TASK = "pyspark.worker"
STREAM_ID = 41
# For each seed. After one that kills workers, the next query may have to be started again.
ROUNDS = ("driver", "stop", TASK, "stop", PLANNER)
ARCHIVE_KILLED_IN = (1, 3)


@contextmanager
def publishing(publication: aerotape.ExclusivePublication, pause_s: float) -> Iterator[None]:
    """Send messages of up to 6000 bytes with pauses between them, while there is a subscriber."""

    def send(over: threading.Event) -> None:
        index = 0
        while not over.is_set():
            if publication.offer(message(STREAM_ID, index, 0, 6000)) > 0:
                index += 1
            time.sleep(pause_s)

    with working(send):
        yield


def start_archive(archive_dir: Path, aeron: aerotape.Aeron) -> AerotapeArchive:
    """Start the archive and have it record the stream."""
    archive = AerotapeArchive(archive_dir, Path(aeron.native.aeron_dir), driver="external").start()
    with aerotape.connect(aeron=aeron, control_request_channel=archive.control_channel) as client:
        client.start_recording("aeron:ipc", STREAM_ID, "local")
    return archive


def kill_until_it_ends(spark: SparkSession, query: StreamingQuery, module: str) -> None:
    """Kill the Python processes that run a module, until the query raises what ends it.

    Spark replaces workers that had nothing to do when they were killed, and the query goes on. A
    daemon of workers is killed with its process group: one that it has just started would remain.
    """
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]

    def has_ended() -> bool:
        for pid in [pid for pid in _descendants(jvm) if module in _arguments(pid)]:
            with suppress(ProcessLookupError):
                if os.getpgid(pid) == pid:
                    os.killpg(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGKILL)
        return bool(query.awaitTermination(1))

    wait_until(has_ended, f"the end of a query whose processes of {module} are killed")


def replace_workers(spark: SparkSession) -> None:
    """Run tasks until one succeeds.

    Spark's pool may have held other workers that were killed, and hands them to the next tasks
    while the system has not collected their exit status.
    """

    def is_alive() -> bool:
        with suppress(Exception):
            return spark.sparkContext.parallelize([0], 1).map(abs).count() == 1
        return False

    wait_until(is_alive, "a task with a new worker")


def _descendants(ancestor: int) -> Iterator[int]:
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parent = pid = int(directory.name)
            while parent > 1 and parent != ancestor:
                parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
            if parent == ancestor:
                yield pid


def _arguments(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def recorded(archive_dir: Path) -> list[Row]:
    """All rows of the directory, without Spark."""
    return [
        row
        for recording in open_directory(archive_dir).recordings()
        for row in recording.to_arrow().to_pylist()
    ]


def places(rows: list[Row]) -> list[tuple[int, int]]:
    """Return recording ids and positions of rows, for a short message when they differ."""
    return [(row["recording_id"], row["position"]) for row in rows]


def test_archives_killed_while_a_reader_follows(
    driver: _native.MediaDriver, tmp_path: Path, seeds: range
) -> None:
    """The reader without Spark, which is much faster: each message once, whenever the archive is
    killed or the reader is restarted."""
    moments = random.Random(seeds.start)
    archive_dir = tmp_path / "archive"
    with aerotape.Aeron(driver.aeron_dir) as aeron:
        # A query requires an archive directory.
        start_archive(archive_dir, aeron).stop()
        query = Query(archive_dir, maxMessagesPerTrigger=100)
        publication = aeron.add_exclusive_publication("aeron:ipc", STREAM_ID)
        with publishing(publication, pause_s=0.0002):
            for _ in range(3 * len(seeds)):
                archive = start_archive(archive_dir, aeron)
                wait_until(lambda: bool(query.batch()), "a batch")
                killer = threading.Timer(moments.uniform(0, 0.3), archive.kill)
                killer.start()
                while killer.is_alive() or moments.random() < 0.5:
                    query.batch()
                    if moments.random() < 0.2:
                        query.restart()
                killer.join()
                archive.stop()
                age_mark_file(archive_dir)
        assert start_archive(archive_dir, aeron).stop() == 0
    query.restart()
    query.run()
    rows = [row for batch in query.batches for row in batch]
    rows.sort(key=lambda row: (row["recording_id"], row["position"]))
    assert places(rows) == places(recorded(archive_dir))
    assert rows == recorded(archive_dir)


def test_a_query_killed_in_each_way_loses_and_repeats_nothing(
    spark: SparkSession,
    driver: _native.MediaDriver,
    tmp_path: Path,
    seeds: range,
) -> None:
    """In the end the sink has all rows of a batch read, each once, although some batches had to be
    repeated while a live stream was recorded."""
    moments = random.Random(seeds.start)
    archive_dir, out, checkpoint = tmp_path / "archive", tmp_path / "out", tmp_path / "checkpoint"
    repeated = 0

    def is_in_a_batch() -> bool:
        return len(_numbers(checkpoint / "offsets")) > len(_numbers(checkpoint / "commits"))

    with aerotape.Aeron(driver.aeron_dir) as aeron:
        archive = start_archive(archive_dir, aeron)
        publication = aeron.add_exclusive_publication("aeron:ipc", STREAM_ID)
        publication.wait_connected()
        with publishing(publication, pause_s=0.006):
            for number, what in enumerate(ROUNDS * len(seeds)):
                batches = moments.randrange(1, 3)
                delay_s = moments.uniform(0, 0.4)
                if what == "driver":
                    with StreamingJob(archive_dir, out, checkpoint) as job:
                        job.wait_for_batches(batches)
                        time.sleep(delay_s)
                        job.kill()
                else:
                    query = run_batches(spark, archive_dir, out, checkpoint, batches)
                    assert query.isActive, query.exception()
                    if number % len(ROUNDS) in ARCHIVE_KILLED_IN:
                        archive.kill()
                        age_mark_file(archive_dir)
                        archive = start_archive(archive_dir, aeron)
                    time.sleep(delay_s)
                    if what == "stop":
                        query.stop()
                    else:
                        with pytest.raises(Exception, match="STREAM_FAILED"):
                            kill_until_it_ends(spark, query, what)
                        if what == TASK:
                            replace_workers(spark)
                repeated += is_in_a_batch()
        assert archive.stop() == 0
    query = start_query(spark, archive_dir, out, checkpoint, available_now=True)
    query.awaitTermination()

    expected = recorded(archive_dir)
    table = spark.read.parquet(str(out)).orderBy("recording_id", "position")
    rows = [row.asDict() for row in table.collect()]
    assert places(rows) == places(expected)
    assert rows == expected
    assert len({row["recording_id"] for row in rows}) == 1 + len(ARCHIVE_KILLED_IN) * len(seeds)
    assert repeated > 0


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
