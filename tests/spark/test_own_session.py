"""What a user sees in a session of `aerotape.spark.session`."""

from __future__ import annotations

import pytest
from support.own_process import run_python

pytestmark = pytest.mark.spark

pytest.importorskip("pyspark")

SCRIPT = """
import aerotape.spark

spark = aerotape.spark.session()
aerotape.spark.register(spark)
try:
    spark.read.format("aerotape").option("recordingIds", "x").load("/nowhere")
except Exception as error:
    print(error)
"""


def test_errors_are_sentences_and_registering_is_silent() -> None:
    """An invalid option has no traceback, and Spark does not log that a data source is replaced."""
    run = run_python("-c", SCRIPT)
    assert run.returncode == 0, run.stderr
    assert "recordingIds: 'x' is not a whole number" in run.stdout
    assert "Traceback" not in run.stdout
    assert "replaced" not in run.stderr


def test_a_missing_jdk_is_named() -> None:
    """The last line says what is needed."""
    script = "import aerotape.spark; aerotape.spark.session()"
    run = run_python("-c", script, JAVA_HOME="/nowhere")
    assert run.returncode == 1
    assert "JAVA_HOME must name a JDK 17 or later" in run.stderr.splitlines()[-1]
