"""Spark as jobs start it, and the one that is there already."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support.own_process import run_script

from aerotape.errors import ConfigurationError
from aerotape.spark.runtime.session import check_master, job_context
from aerotape.spark.runtime.worker_daemon import without_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_a_thread(master: str | None) -> object:
    """Use a job's context on a thread that has no session; return it, or what was raised."""
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


def test_a_job_on_another_thread_leaves_the_session_of_the_process_running(
    spark: SparkSession,
) -> None:
    assert in_a_thread(None) is spark.sparkContext
    assert spark.range(3).count() == 3


def test_another_master_than_that_of_the_process_is_refused_on_any_thread(
    spark: SparkSession,
) -> None:
    error = in_a_thread("local[7]")
    assert isinstance(error, ConfigurationError)
    assert "'local[2]'" in str(error)
    assert "'local[7]'" in str(error)


SHARING = """
import threading
from concurrent.futures import ThreadPoolExecutor
from pyspark import SparkContext
from aerotape.spark.runtime.session import job_context

ended, entered = threading.Event(), threading.Event()

def second():
    with job_context("local[1]", "second") as context:
        entered.set()
        assert ended.wait(60)
        return context.parallelize(range(4), 1).sum()

with job_context("local[1]", "first"):
    outcome = ThreadPoolExecutor(1).submit(second)
    assert entered.wait(60)
ended.set()
assert outcome.result() == 6
assert SparkContext._active_spark_context is None
print("done")
"""


@pytest.mark.spark
def test_jobs_at_the_same_time_share_a_context_until_the_last_one_ends() -> None:
    """The first to end leaves it to the other, which stops it."""
    pytest.importorskip("pyspark")
    run = run_script(SHARING)
    assert run.stdout == "done\n", run.stderr


LOGGING = """
from pyspark import SparkContext
from aerotape.spark.runtime.session import job_context

def level(context):
    return context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()

SparkContext("local[1]", "the user's").stop()
for whole_log in (True, False):
    with job_context("local[1]", "job", whole_log=whole_log) as context:
        print(level(context))
"""


@pytest.mark.spark
def test_in_a_jvm_that_is_there_a_job_logs_errors_only() -> None:
    """That has been started with another configuration of its log."""
    pytest.importorskip("pyspark")
    run = run_script(LOGGING)
    before, within = run.stdout.splitlines()
    assert before != within, run.stderr
    assert within == "ERROR"


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no context then, which PySpark would tell by a traceback."""
    context = pytest.importorskip("pyspark").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(ConfigurationError, match="with SPARK_REMOTE unset"), job_context(None, ""):
        pass


def test_a_master_may_be_of_another_cluster_manager_or_of_the_context_that_runs(
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


WORKERS = """
import os
from aerotape.spark.runtime.session import job_context

def found(_):
    from importlib.util import find_spec
    import aerotape, pyspark_aerotape
    return [name for name in ("archive", "catalog", "replay", "spark", "tools") if find_spec(name)]

os.environ["PYTHONPATH"] = ""
with job_context("local[1]", "workers") as context:
    print(context.parallelize([0], 1).map(found).collect())
"""


@pytest.mark.spark
def test_local_workers_import_the_package_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not its folders by themselves, which stand beside the package in a checkout."""
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    run = run_script(WORKERS)
    assert run.stdout == "[[]]\n", run.stderr


def test_local_workers_run_the_installed_pyspark(spark: SparkSession) -> None:
    def where(_: int) -> str:
        import pyspark

        return pyspark.__file__

    import pyspark

    assert spark.sparkContext.parallelize([0], 1).map(where).collect() == [pyspark.__file__]


def test_the_zip_stays_where_pyspark_is_nowhere_else() -> None:
    pytest.importorskip("pyspark")
    zip_file = "/opt/spark/python/lib/pyspark.zip"
    assert without_zip([zip_file, "/nowhere"]) == [zip_file, "/nowhere"]
    assert without_zip([zip_file, *sys.path]) == sys.path
    assert without_zip([str(Path("/elsewhere/py4j.zip")), *sys.path])[0] == "/elsewhere/py4j.zip"
