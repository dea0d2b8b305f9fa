"""One Spark session for all Spark tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, without a call of `register`."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    from aerotape.spark.runtime.session import job_context

    with job_context("local[2]", "aerotape tests"):
        session = SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.shuffle.partitions", "2")
        yield session


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    """An empty folder for an archive's files."""
    directory = tmp_path / "archive"
    directory.mkdir()
    return directory


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of a table, not created yet."""
    return tmp_path / "out"
