"""Spark's classes in a file: made by a first start, used by the next."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from support.own_process import run_script

from aerotape.spark.runtime import class_archive

pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(
    not os.environ.get("JAVA_HOME") and shutil.which("java") is None, reason="there is no java"
)

START = """
from pathlib import Path
from pyspark import SparkContext
from aerotape.spark import class_archive
from aerotape.spark.runtime.session import job_context

class_archive._FREE_BYTES = 0
with job_context("local[1]", "start") as context:
    assert context.parallelize(range(4), 1).sum() == 6
    maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    print(sorted({line.split()[-1] for line in maps.splitlines() if line.endswith(".jsa")}))
"""


@pytest.fixture(autouse=True)
def any_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a disk that is nearly full do as well."""
    monkeypatch.setattr(class_archive, "_FREE_BYTES", 0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for such files, not there yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(class_archive.CACHE_VARIABLE, str(folder))
    return folder


def mapped() -> list[str]:
    """Start Spark, run a task, and return the class archives of its JVM, but for Java's own."""
    run = run_script(START)
    assert run.returncode == 0, run.stderr
    assert "cds" not in run.stderr
    return [path for path in eval(run.stdout) if "spark-" in path]


def left(folder: Path) -> Path:
    """Wait for what the JVM of the last start leaves, and let it be old enough to be taken."""
    deadline = time.monotonic() + 60
    while True:
        found = list(folder.glob("*.new"))
        if found and found[0].read_bytes()[:4].strip(b"\0"):
            os.utime(found[0], (1, 1))
            return found[0]
        assert time.monotonic() < deadline, "the JVM has left no classes"
        time.sleep(0.1)


def test_the_second_start_maps_the_classes_of_the_first_and_a_spoilt_file_does_no_harm(
    cache: Path,
) -> None:
    assert mapped() == []
    new = left(cache)
    ready = str(new.with_suffix(".jsa"))
    assert mapped() == [ready]
    assert [str(path) for path in cache.iterdir()] == [ready]

    Path(ready).unlink()
    Path(ready).write_bytes(b"spoilt" * 1000)
    assert mapped() == []


def test_a_file_that_is_still_written_is_not_taken(cache: Path) -> None:
    options = class_archive.java_options("-Xmx1g")
    assert options.startswith(f"-XX:ArchiveClassesAtExit={cache}/spark-")
    new = Path(options.split()[0].partition("=")[2])
    new.write_bytes(bytes(4096))  # the JVM writes the beginning last
    os.utime(new, (1, 1))
    assert class_archive.java_options("-Xmx1g") == options
    new.write_bytes(b"\x01" * 4096)
    os.utime(new, (time.time() + 3600,) * 2)  # changed just now, however long this test is held up
    assert class_archive.java_options("-Xmx1g") == options
    os.utime(new, (1, 1))
    ready = new.with_suffix(".jsa")
    assert class_archive.java_options("-Xmx1g").startswith(f"-XX:SharedArchiveFile={ready} ")
    assert ready.exists()
    assert not new.exists()
    other = class_archive.java_options("-Xmx2g")
    assert other.startswith(f"-XX:ArchiveClassesAtExit={cache}/spark-")
    assert ready.stem not in other


def test_what_nobody_uses_any_more_is_deleted_when_another_is_made(cache: Path) -> None:
    """Using one keeps it, however old it is; what is no such file stays."""
    new = Path(class_archive.java_options("-Xmx1g").split()[0].partition("=")[2])
    used = new.with_suffix(".jsa")
    unused, broken_off = cache / "spark-0123.jsa", cache / "spark-4567.new"
    recent, foreign = cache / "spark-89ab.jsa", cache / "other.jsa"
    for path in (used, unused, broken_off, recent, foreign):
        path.write_bytes(b"classes")
        age_s = 29 * 86_400 if path == recent else 31 * 86_400
        os.utime(path, (time.time() - age_s,) * 2)
    assert f"={used} " in class_archive.java_options("-Xmx1g")
    assert unused.exists()
    assert "ArchiveClassesAtExit" in class_archive.java_options("-Xmx2g")
    assert set(cache.iterdir()) == {used, recent, foreign}


def test_nothing_is_made_where_the_user_wants_none_or_others_could_write(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert class_archive.java_options("") == ""
    cache.chmod(0o700)
    assert class_archive.java_options("") != ""
    for unfit in ("", str(cache / "with space"), "/proc/nothing", str(Path(__file__))):
        monkeypatch.setenv(class_archive.CACHE_VARIABLE, unfit)
        assert class_archive.java_options("") == ""


def test_files_are_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(class_archive.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert f"={tmp_path}/xdg/aerotape/spark-" in class_archive.java_options("")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"={tmp_path}/.cache/aerotape/spark-" in class_archive.java_options("")
