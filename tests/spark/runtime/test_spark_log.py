"""Errors of tasks on the terminal, with and without Spark's log."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.damage.small_disk import SmallDisk, small_disk

import aerotape

pytestmark = pytest.mark.spark

pytest.importorskip("pyspark")

ROOT = Path(aerotape.__file__).parents[1]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk for a table, with room for 64 KiB."""
    with small_disk(tmp_path / "disk", 1 << 20) as mounted:
        mounted.fill(64 << 10)
        yield mounted


@pytest.fixture
def recorded(archive_dir: Path) -> Path:
    """A directory with an incompressible recording of 256 KB."""
    rng = random.Random(2)
    builder = SegmentBuilder()
    for _ in range(256):
        builder.message(rng.randbytes(1_000))
    add_recording(archive_dir, builder)
    return archive_dir


def lines(*arguments: object, code: int, **environment: str) -> list[str]:
    """Run the job with Spark and return the lines on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "aerotape", "parquet", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == code, done.stderr
    return done.stderr.splitlines()


def test_a_failed_task_is_one_line_or_with_verbose_a_traceback(
    recorded: Path, disk: SmallDisk
) -> None:
    """The line has the cause and the file; with --verbose Spark's log has the whole traceback."""
    out = disk.path / "out"
    [line] = lines(recorded, out, code=1)
    assert line.startswith("aerotape parquet: the Spark job failed: OSError: ")
    assert "No space left on device" in line
    assert str(out) in line
    whole = lines("--verbose", recorded, out, code=1)
    assert any(each.startswith("aerotape parquet: the Spark job failed: OSErr") for each in whole)
    assert any("org.apache.spark.api.python.PythonException" in each for each in whole)
    assert any("in _write" in each for each in whole)


def test_what_java_prints_precedes_the_error(recorded: Path, tmp_path: Path) -> None:
    """A JVM that does not start: its output is shown, without the line on incubator modules."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        "echo 'WARNING: Using incubator modules: jdk.incubator.vector' >&2\n"
        "echo 'no memory' >&2\n"
        "exit 1\n"
    )
    java.chmod(0o755)
    home = str(java.parents[1])
    *above, error = lines(recorded, tmp_path / "out", code=1, JAVA_HOME=home)
    assert "no memory" in above
    assert not any("incubator" in line for line in above)
    assert error.startswith("aerotape parquet: cannot start Spark with master ")
    assert "see its output above" in error
