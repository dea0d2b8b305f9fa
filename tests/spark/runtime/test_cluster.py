"""The data source and the Parquet job on a Spark standalone cluster, whose workers have separate
processes and working directories, with a shared folder and object storage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.jvm.java import QUICK_JVMS
from support.spark import object_store, spark_cluster
from support.spark.object_store import ObjectStore

import aerotape

pytestmark = pytest.mark.spark

pytest.importorskip("pyspark")
pytest.importorskip("moto")

ROOT = Path(aerotape.__file__).parents[1]
MESSAGES = 400

# A user's script: counts the bytes that each task reads, and prints where tasks ran. The command
# uses the
# active session, which saves a second driver and its executors.
SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession
from aerotape.tools._cli.main import main

spark = (
    SparkSession.builder
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "120s")
    .config("spark.log.level", "ERROR").config("spark.ui.enabled", "false")
    .config("spark.python.daemon.module", "aerotape.spark.runtime.worker_daemon")
    .getOrCreate()
)

def lengths(rows):
    yield os.getcwd(), sum(len(row.payload) for row in rows)

for source, out in zip(sys.argv[1::2], sys.argv[2::2]):
    table = spark.read.format("aerotape").option("partitionBytes", "128k").load(source)
    tasks = table.rdd.mapPartitions(lengths).collect()
    print(json.dumps({"count": table.count(), "tasks": tasks}))
    command = ["parquet", source, out, "--master", spark.sparkContext.master]
    assert main([*command, "--partition-bytes", "256k", "--json"]) == 0
spark.stop()
"""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture(scope="module")
def environment(store: ObjectStore) -> dict[str, str]:
    """Environment of driver and workers: Python, aerotape and the storage."""
    return {
        **store.environment,
        **QUICK_JVMS,
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


def test_a_script_and_the_parquet_job_on_a_cluster(
    store: ObjectStore, environment: Mapping[str, str], master: str, tmp_path: Path
) -> None:
    """Batch queries of a folder and a bucket read every byte, in tasks of both workers; the job
    writes a table to a relative path, and one to the bucket."""
    from pyarrow import dataset

    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(), MESSAGES)
    add_recording(archive_dir, builder)
    url = store.upload(archive_dir, "cluster")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", "archive", "table", url, f"{url}-table"],
        cwd=tmp_path,
        env={**os.environ, **environment, "MASTER": master},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = json.JSONDecoder().raw_decode
    reports: list[dict[str, Any]] = []
    output = done.stdout.lstrip()
    while output:
        report, end = read(output)
        reports.append(report)
        output = output[end:].lstrip()
    assert [report.get("messages", report.get("count")) for report in reports] == [MESSAGES] * 4
    tasks = [task for report in reports for task in report.get("tasks", ())]
    assert sum(size for _, size in tasks) == 2 * sum(len(m.payload) for m in builder.messages)
    executors = {Path(cwd) for cwd, _ in tasks}
    assert len(executors) == 2
    assert tmp_path not in executors

    path = f"{url}-table".removeprefix("s3://")
    for table in (
        dataset.dataset(tmp_path / "table", format="parquet").to_table(),
        dataset.dataset(path, filesystem=store.file_system, format="parquet").to_table(),
    ):
        payloads = table.sort_by("position")["payload"].to_pylist()
        assert payloads == [m.payload for m in builder.messages]
