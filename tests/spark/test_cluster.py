"""The data source and the Parquet job on a Spark standalone cluster: workers in processes and
working directories of their own, over a shared folder and over object storage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from built_archive import add_recording, fill
from segment_builder import SegmentBuilder
from support import object_store, spark_cluster
from support.object_store import ObjectStore

import aerotape
from aerotape.catalog.location import StorageOptions
from aerotape.catalog.object_folder import reach
from aerotape.url_path import UrlPath

pytest.importorskip("pyspark")
pytest.importorskip("moto")

ROOT = Path(aerotape.__file__).parents[1]
MESSAGES = 400

# What a user's own script would do: count what each task reads, and say where tasks ran.
SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "120s")
    .config("spark.log.level", "ERROR").config("spark.ui.enabled", "false")
    .getOrCreate()
)

def look(rows):
    yield os.getcwd(), sum(len(row.payload) for row in rows)

from aerotape.spark.options import ReadOptions
from aerotape.spark.parquet_job import convert
from aerotape.spark.parquet_plan import JobOptions

for path in sys.argv[1:]:
    table = spark.read.format("aerotape").option("partitionBytes", "128k").load(path)
    tasks = table.rdd.mapPartitions(look).collect()
    print(json.dumps({"count": table.count(), "tasks": tasks}))
read = ReadOptions(archive_dir=os.path.abspath(sys.argv[1]), partition_bytes=1 << 18)
convert(JobOptions(read=read), "table")
spark.stop()
"""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture(scope="module")
def environment(store: ObjectStore) -> dict[str, str]:
    """What driver and workers share: where Python and aerotape are, and the way to the storage."""
    return {
        **store.environment,
        "PYSPARK_PYTHON": sys.executable,
        # Nothing is needed where aerotape is installed.
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def master(
    tmp_path_factory: pytest.TempPathFactory, environment: Mapping[str, str]
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    with spark_cluster.standalone(folder, 2, environment) as url:
        yield url


def run(arguments: list[str], cwd: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_and_the_parquet_job_on_a_cluster(
    store: ObjectStore, environment: Mapping[str, str], master: str, tmp_path: Path
) -> None:
    """Batch reads of the folder and of the bucket see every byte, in tasks of both workers; the
    job writes a table to a folder in a script's session, and as a command one to the bucket."""
    from pyarrow import dataset

    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(), MESSAGES)
    add_recording(archive_dir, builder)
    url = store.upload(archive_dir, "cluster")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    output = run([str(script), "archive", url], tmp_path, {**environment, "MASTER": master})
    reports: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    assert len(reports) == 2
    for report in reports:
        assert report["count"] == MESSAGES
        assert sum(size for _, size in report["tasks"]) == sum(
            len(m.payload) for m in builder.messages
        )
    executors = {Path(cwd) for report in reports for cwd, _ in report["tasks"]}
    assert len(executors) == 2
    assert tmp_path not in executors

    command = ["-m", "aerotape", "parquet", url, f"{url}-table", "--master", master, "--json"]
    output = run([*command, "--partition-bytes", "256k"], tmp_path, environment)
    assert json.loads(output)["messages"] == MESSAGES
    bucket, path = reach(UrlPath(f"{url}-table"), StorageOptions.of(store.options))
    for table in (
        dataset.dataset(tmp_path / "table" / "recording_id=0").to_table(),
        dataset.dataset(f"{path}/recording_id=0", filesystem=bucket).to_table(),
    ):
        payloads = table.sort_by("position")["payload"].to_pylist()
        assert payloads == [m.payload for m in builder.messages]
