"""Reading from an HDFS and writing to it: over HTTP, and by the package hdfs-native."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.location import NO_OPTIONS
from aerotape.catalog.remote.object_folder import reach
from aerotape.replay.offline.directory import open_directory
from aerotape.url_path import UrlPath

pytest.importorskip("pyspark")
pytest.importorskip("requests")

from pyarrow import dataset
from support.jvm import hdfs
from support.jvm.hdfs import SmallHdfs
from support.jvm.java import HarnessError
from support.spark.table_rig import TasksHere

from aerotape.spark.source.options import ReadOptions
from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import TableJob
from aerotape.spark.tables.plan import JobOptions

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallHdfs]:
    try:
        hdfs.class_path()
    except (HarnessError, FileNotFoundError) as error:
        pytest.skip(f"no classes for an HDFS: {error}")
    with hdfs.serve(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture(params=["webhdfs", "hdfs"])
def url(request: pytest.FixtureRequest, cluster: SmallHdfs) -> str:
    if request.param == "webhdfs":
        return f"webhdfs://127.0.0.1:{cluster.http_port}/over-http"
    pytest.importorskip("hdfs_native")
    return f"hdfs://127.0.0.1:{cluster.rpc_port}/native"


def upload(folder: Path, url: str) -> None:
    file_system, path = reach(UrlPath(url), NO_OPTIONS)
    file_system.makedirs(path, exist_ok=True)
    for file in folder.iterdir():
        with file_system.open(f"{path}/{file.name}", "wb") as stream:
            stream.write(file.read_bytes())


def test_a_table_follows_a_copy_that_grows(tmp_path: Path, url: str) -> None:
    """After a job, an incremental one and a full one, the table has each message once, and the
    folder has no other files."""
    add_recording(tmp_path, fill(SegmentBuilder(), 40))
    live = fill(SegmentBuilder(start_position=98_304), 40, seed=2)
    add_recording(tmp_path, live, live=True)
    options = JobOptions(read=ReadOptions(archive_dir=f"{url}/archive", partition_bytes=1 << 16))
    table = f"{url}/table"
    file_system, path = reach(UrlPath(table), NO_OPTIONS)
    for _ in range(3):
        upload(tmp_path, f"{url}/archive")
        with TableJob(options, ParquetFolder(table), TasksHere()) as job:
            assert [each.error for each in job.run().recordings] == [None, None]
            assert job.run().files == 0
        folder = dataset.dataset(path, filesystem=file_system, format="parquet")
        rows = folder.to_table(columns=["position", "payload"]).to_pylist()
        expected = [
            (message.position, message.payload)
            for recording in open_directory(tmp_path).recordings()
            for message in recording.messages()
        ]
        assert sorted((row["position"], row["payload"]) for row in rows) == sorted(expected)
        names = {name.rpartition("/")[2] for name in file_system.find(path)}
        assert {name for name in names if not name.endswith(".parquet")} == set()
        fill(live, 40, seed=5).write(tmp_path)
