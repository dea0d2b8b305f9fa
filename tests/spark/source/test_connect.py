"""The data source in a session of Spark Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.recording import wait_until
from support.jvm.java import QUICK_JVMS, free_port
from support.own_process import run_python
from support.spark.connect import local_url
from support.spark.query_sequences import add_recordings

pytestmark = pytest.mark.spark

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CLIENT = """
import sys
from pyspark.sql import SparkSession
from aerotape.spark import register

url, archive_dir = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
print("found", spark.read.format("aerotape").load(archive_dir).count())
spark.sql(f"CREATE TABLE tape USING aerotape OPTIONS (path '{archive_dir}', streamId 10)")
print("table", spark.sql("SELECT payload FROM tape").count())
spark.sql("CREATE VIEW ticks AS SELECT * FROM tape WHERE position >= 0")
print("view", spark.table("ticks").count())
register(spark)
print("registered", spark.read.format("aerotape").load(archive_dir).count())
spark.stop()
"""


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on loopback in another process."""
    pytest.importorskip("grpc")
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
    }
    server = subprocess.Popen(
        [
            *(home / "bin" / "spark-submit", "--master", "local[2]", "--class", SERVER),
            *(part for item in settings.items() for part in ("--conf", "=".join(item))),
            "spark-internal",
        ],
        cwd=tmp_path_factory.mktemp("server"),
        env=_environment() | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: server.poll() is not None or _listens(port), "the server's start", 120)
        assert server.poll() is None
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(params=["server", "local"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The server, or one that the client starts."""
    pytest.importorskip("grpc")
    if request.param == "local":
        with local_url() as local:
            yield local
    else:
        yield request.getfixturevalue("server_url")


def _environment() -> dict[str, str]:
    """Return the environment without references to the checkout."""
    retained = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return retained | QUICK_JVMS | {"PYSPARK_PYTHON": sys.executable}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_session_of_spark_connect(url: str, tmp_path: Path) -> None:
    """The server finds the installed data source by itself; tables, views and `register` work."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(stream_id=10), 30))
    add_recording(archive_dir, fill(SegmentBuilder(stream_id=11), 20, seed=2))
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, url, str(archive_dir)],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["found 50", "table 30", "view 30", "registered 50"], (
        done.stderr[-5_000:]
    )


def test_random_sequences(server_url: str, tmp_path: Path, seeds: range) -> None:
    """Each query has its rows, whatever was queried before, as in `test_shared_relations.py`."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    add_recordings(archive_dir)
    run = run_python(
        "-m", "support.spark.query_sequences", server_url, archive_dir, tmp_path, seeds[0], 6,
        timeout_s=600, PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-5_000:]
    assert run.stdout.splitlines()[-1] == "12 queries"
