"""One-line causes of Spark's failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.spark.runtime.failures import cause
from aerotape.tools._cli.main import main

# Shortened only by lines.
_CALLED = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
)
_ABORTED = (
    f"{_CALLED}: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in "
    "stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) "
    "(localhost executor driver): "
)
_AT = "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{_ABORTED}org.apache.spark.api.python.PythonException: Traceback (most recent call "
            'last):\n  File "worker.py", line 1, in main\nOSError: [Errno 28] No space left on '
            f"device: '/out'\n{_AT}Caused by: java.io.IOException: other\n",
            "OSError: [Errno 28] No space left on device: '/out'",
        ),
        (
            f'{_ABORTED}java.io.IOException: Cannot run program "/none/python": error=2, No such '
            f"file or directory{_AT}Caused by: java.io.IOException: error=2, No such file\n",
            'Cannot run program "/none/python": error=2, No such file or directory (set '
            "PYSPARK_PYTHON to a Python with aerotape and its extra spark)",
        ),
        (
            f"{_ABORTED}org.apache.spark.SparkException: Python worker exited unexpectedly "
            f"(crashed).{_AT}Caused by: java.net.SocketException: Connection reset\n",
            "Python worker exited unexpectedly (crashed). (was it killed, for example for lack of "
            "memory? fewer concurrent tasks need less)",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n: "
            f"org.apache.spark.SparkException: Asked to run locally with 0 threads{_AT}",
            "Asked to run locally with 0 threads",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", None),
        ("", "RuntimeError"),
    ],
    ids=["python", "no-program", "killed", "start", "own", "nothing"],
)
def test_the_line_with_the_cause_is_found(text: str, expected: str | None) -> None:
    """It follows the call, the job, the stage and the task, and precedes the stack traces."""
    assert cause(RuntimeError(text)) == (text if expected is None else expected)


def test_a_master_that_spark_does_not_know_is_a_usage_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is reported in one line, without a start of Java, and before a folder is created."""
    add_recording(tmp_path, fill(SegmentBuilder(), 5))
    out = tmp_path.parent / f"{tmp_path.name}-table"
    assert main(["parquet", str(tmp_path), str(out), "--master", "locl[2]"]) == 2
    text = capfd.readouterr().err
    assert text.startswith(
        "aerotape parquet: 'locl[2]' is not a Spark master URL: expected local[N]"
    )
    assert text.count("\n") == 1
    assert not out.exists()
