"""Delta tables in S3: a job that is killed at any request, and responses that are lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.location import StorageOptions
from aerotape.errors import AerotapeError

pytest.importorskip("deltalake")
pytest.importorskip("moto")

import pyarrow
from deltalake import DeltaTable
from support.spark import object_store
from support.spark.object_store import ObjectStore, Request
from support.spark.table_rig import TasksHere, expected_rows, options, run_here

from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.job import JobReport, TableJob

OF_EACH_SEED = 8
JOBS: dict[str, dict[str, Any]] = {"creates": {}, "adds": {}, "replaces": {"overwrite": True}}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """A server."""
    with object_store.serve() as store:
        yield store


class Rig:
    """Tables in S3 that a job is to create or change, each in a state before that job."""

    def __init__(self, store: ObjectStore, job: str, archive_dir: Path, out: Path) -> None:
        self.store, self.name, self.archive_dir, self.out = store, out.parent.name, archive_dir, out
        self.job_options = options(archive_dir, **JOBS[job])
        self.count = 0
        self.before: list[dict[str, Any]] = []
        for seed in range(2):
            add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
        if job != "creates":
            run_here("delta", archive_dir, out, partition_bytes=1 << 20)
            self.before = expected_rows(archive_dir)
        add_recording(archive_dir, fill(SegmentBuilder(), 8, 2))
        self.after = expected_rows(archive_dir)

    def begin(self) -> None:
        """Take another table."""
        self.count += 1
        self.prefix = f"{self.name}-{self.count}"
        if self.out.exists():
            self.store.upload(self.out, self.prefix)
        self.store.requests.clear()

    def run(self) -> JobReport:
        table = DeltaRecordingTable(f"s3://tapes/{self.prefix}", self.storage)
        with TableJob(self.job_options, table, TasksHere()) as job:
            return job.run()

    @property
    def storage(self) -> StorageOptions:
        return StorageOptions.of(self.store.options)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows that delta-rs reads, which needs all files; none without a table."""
        contents = self.store.client.list_objects_v2(Bucket="tapes", Prefix=f"{self.prefix}/_delta")
        if not any(each["Key"].endswith("0.json") for each in contents.get("Contents", [])):
            return []
        table = DeltaRecordingTable(f"s3://tapes/{self.prefix}", self.storage)
        read = DeltaTable(table.store.name, storage_options=table.storage_options)
        rows: list[dict[str, Any]] = (
            pyarrow.table(read.to_pyarrow_table())
            .sort_by([("recording_id", "ascending"), ("position", "ascending")])
            .to_pylist()
        )
        return rows


@pytest.fixture(params=JOBS)
def rig(
    store: ObjectStore, request: pytest.FixtureRequest, archive_dir: Path, out: Path
) -> Iterator[Rig]:
    """A job."""
    yield Rig(store, request.param, archive_dir, out)
    store.loses = store.refuses = lambda request: False


def from_the(number: int) -> Callable[[Request], bool]:
    """Return a function that is true from a call on, counted from 0."""
    calls: list[Request] = []

    def reached(request: Request) -> bool:
        calls.append(request)
        return len(calls) > number

    return reached


def only_the(number: int) -> Callable[[Request], bool]:
    """Return a function that is true for one call, counted from 0."""
    calls: list[Request] = []

    def reached(request: Request) -> bool:
        calls.append(request)
        return len(calls) == number + 1

    return reached


def some_requests(rig: Rig, seeds: range) -> list[int]:
    """Run the job without a fault, and draw some of the numbers of its requests."""
    rig.begin()
    rig.run()
    total = len(rig.store.requests)
    assert rig.rows() == rig.after
    draw = random.Random(seeds.start)
    return draw.sample(range(total), min(total, OF_EACH_SEED * len(seeds)))


def test_a_job_that_is_killed_at_any_request(rig: Rig, seeds: range) -> None:
    """The table is as before or has all rows, and the next run completes it. What a killed job
    cannot do any more is refused: requests from one on."""
    for number in some_requests(rig, seeds):
        rig.begin()
        rig.store.refuses = from_the(number)
        with suppress(AerotapeError, OSError):
            rig.run()
        where = f"request {number}: {rig.store.requests[number]}"
        rig.store.refuses = lambda request: False
        assert rig.rows() in (rig.before, rig.after), where
        rig.run()
        assert rig.rows() == rig.after, where


def test_a_response_that_is_lost(rig: Rig, seeds: range) -> None:
    """A request is carried out and the client gets an error, whichever request it is: the job
    repeats it, or finds its commit in the log, or fails; each row is in the table once."""
    for number in some_requests(rig, seeds):
        rig.begin()
        rig.store.loses = only_the(number)
        try:
            rig.run()
            is_done = True
        except (AerotapeError, OSError):
            is_done = False
        where = f"request {number}: {rig.store.requests[number]}"
        rig.store.loses = lambda request: False
        assert rig.rows() in ([rig.after] if is_done else [rig.before, rig.after]), where
        rig.run()
        assert rig.rows() == rig.after, where


@pytest.mark.parametrize("rig", ["creates", "adds"], indirect=True)
def test_the_response_to_a_commit_that_is_lost(rig: Rig) -> None:
    """The client repeats the request and finds the file of its own commit: the job reports the rows
    as converted."""
    rig.begin()
    lost: list[str] = []

    def loses(request: Request) -> bool:
        is_commit = request.method == "PUT" and "_delta_log/0" in request.key
        if is_commit:
            lost.append(request.key)
        return is_commit and len(lost) == 1

    rig.store.loses = loses
    assert rig.run().recordings[-1].result == "converted"
    assert lost
    assert rig.rows() == rig.after
    assert {each.result for each in rig.run().recordings} == {"up to date"}
