"""Spark contexts of jobs, new and active ones."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support.own_process import run_python

from aerotape.errors import ConfigurationError
from aerotape.spark.runtime.session import check_master, job_context
from aerotape.spark.runtime.worker_daemon import without_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_a_thread(master: str | None) -> object:
    """Return a job's context, or the error, from a thread without a session."""
    found: list[object] = []

    def use() -> None:
        try:
            with job_context(master, "on another thread") as context:
                found.append(context)
        except ConfigurationError as error:
            found.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    return found[0]


def test_a_job_on_another_thread_uses_the_active_context(spark: SparkSession) -> None:
    """The session continues to run, and another master is refused."""
    assert in_a_thread(None) is spark.sparkContext
    assert spark.range(3).count() == 3
    error = in_a_thread("local[7]")
    assert isinstance(error, ConfigurationError)
    assert "'local[2]'" in str(error)
    assert "'local[7]'" in str(error)


IN_A_NEW_PROCESS = """
import json
import os
from pyspark import SparkContext
from aerotape.spark.runtime.session import job_context

def level(context):
    return context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()

def found(_):
    from importlib.util import find_spec
    import aerotape, pyspark_aerotape
    return [name for name in ("archive", "catalog", "replay", "spark", "tools") if find_spec(name)]

os.environ["PYTHONPATH"] = ""
SparkContext("local[1]", "the user's").stop()
levels = []
for whole_log in (True, False):
    with job_context("local[1]", "job", whole_log=whole_log) as context:
        levels.append(level(context))
        folders = context.parallelize([0], 1).map(found).collect()
print(json.dumps([levels, folders, SparkContext._active_spark_context is None]))
"""


@pytest.mark.spark
def test_jobs_in_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a JVM that was started before, a job logs as that JVM does, and stops its context. Local
    workers import the package and not the folders next to it."""
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    run = run_python("-c", IN_A_NEW_PROCESS)
    assert run.returncode == 0, run.stderr
    (before, within), folders, is_stopped = json.loads(run.stdout)
    assert before == within != "ERROR"
    assert folders == [[]]
    assert is_stopped


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark Connect has no context, for which PySpark would print a traceback."""
    context = pytest.importorskip("pyspark").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(ConfigurationError, match="with SPARK_REMOTE unset"), job_context(None, ""):
        pass


def test_masters_of_other_cluster_managers_and_of_the_active_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = pytest.importorskip("pyspark").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", None)
    check_master("armada://host:50051")
    with pytest.raises(ConfigurationError, match="'own' is not a Spark master URL"):
        check_master("own")
    monkeypatch.setattr(context, "_active_spark_context", SimpleNamespace(master="own"))
    check_master("own")
    with pytest.raises(ConfigurationError, match="'other' is not a Spark master URL"):
        check_master("other")


def test_local_workers_run_the_installed_pyspark(spark: SparkSession) -> None:
    def where(_: int) -> str:
        import pyspark

        return pyspark.__file__

    import pyspark

    assert spark.sparkContext.parallelize([0], 1).map(where).collect() == [pyspark.__file__]


def test_the_zip_is_retained_without_another_pyspark() -> None:
    pytest.importorskip("pyspark")
    zip_file = "/opt/spark/python/lib/pyspark.zip"
    assert without_zip([zip_file, "/nowhere"]) == [zip_file, "/nowhere"]
    assert without_zip([zip_file, *sys.path]) == sys.path
    assert without_zip([str(Path("/other/py4j.zip")), *sys.path])[0] == "/other/py4j.zip"
