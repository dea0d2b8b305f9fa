"""What the Parquet job says of Spark's failures, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_archive import add_recording, fill
from segment_builder import SegmentBuilder

from aerotape.spark.failures import cause
from aerotape.tools.main import main

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
    ("story", "told"),
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
            'Cannot run program "/none/python": error=2, No such file or directory (do workers run '
            "a Python with aerotape and its extra spark? PYSPARK_PYTHON names it)",
        ),
        (
            f"{_ABORTED}org.apache.spark.SparkException: Python worker exited unexpectedly "
            f"(crashed).{_AT}Caused by: java.net.SocketException: Connection reset\n",
            "Python worker exited unexpectedly (crashed). (was it killed, for want of memory say? "
            "fewer tasks at once need less)",
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
def test_the_line_that_tells_is_found(story: str, told: str | None) -> None:
    """Behind which call it was, which job, stage and task, and before the traces."""
    assert cause(RuntimeError(story)) == (story if told is None else told)


def test_a_master_that_spark_does_not_know_is_a_usage_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a start of Java, which tells it in ten lines, and before there is a folder."""
    add_recording(tmp_path, fill(SegmentBuilder(), 5))
    out = tmp_path.parent / f"{tmp_path.name}-table"
    assert main(["parquet", str(tmp_path), str(out), "--master", "locl[2]"]) == 2
    told = capfd.readouterr().err
    assert told.startswith("aerotape parquet: 'locl[2]' is no master of Spark's: name local[N]")
    assert told.count("\n") == 1
    assert not out.exists()
