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
    """A local session with two cores, without registration of the data source by the caller."""
    pytest.importorskip("pyspark")
    from aerotape.spark.runtime.session import job_session

    with job_session("local[2]", "aerotape tests") as session:
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
    """A path for a table."""
    return tmp_path / "out"
