"""Iterations of `aerotape parquet --watch` and `aerotape table --watch`, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.changed_directory import purge
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32
from support.json_output import check

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import (
    DESCRIPTOR_BLOCK_LENGTH,
    DESCRIPTOR_HEADER_LENGTH,
)
from aerotape.tools._cli.main import main

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from support.spark.table_rig import Kind, TasksHere, expected_rows, rows_of

from aerotape.context import Closing
from aerotape.spark.tables import job as job_module
from aerotape.spark.tables import task_runner
from aerotape.spark.tables import watch as watch_module


class Tasks(TasksHere, Closing):
    def __init__(self, master: str | None, *, whole_log: bool = False) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture(params=["parquet", "table"])
def command(request: pytest.FixtureRequest) -> str:
    """Return the command that the test runs."""
    return str(request.param)


@pytest.fixture
def kind(command: str) -> Kind:
    """Return the kind of table that the command writes."""
    return "delta" if command == "table" else "folder"


@pytest.fixture
def watch(
    archive_dir: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Run the command with an action between each two iterations, then end it."""
    monkeypatch.setattr(task_runner, "SparkTasks", Tasks)

    def run(*between: Callable[[], object], options: tuple[str, ...] = ()) -> int:
        steps = iter(between)

        def sleep(_: float) -> None:
            try:
                next(steps)()
            except StopIteration:
                raise KeyboardInterrupt from None

        monkeypatch.setattr(watch_module, "time", SimpleNamespace(sleep=sleep))
        return main(
            [command, str(archive_dir), str(tmp_path / "out"), "--watch", "1", "--json", *options]
        )

    return run


def rename(archive_dir: Path, recording_id: int, channel: str) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.replace_channel(recording_id, stripped_channel=channel, original_channel=channel)


def test_a_warning_of_any_iteration_counts(
    archive_dir: Path, watch: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 3 even when later iterations have nothing to do."""
    builder = fill(SegmentBuilder(), 5)
    builder.frame(b"the rest never came", flags=BEGIN)
    add_recording(archive_dir, builder)
    assert watch(lambda: None, lambda: None) == 3
    output = capfd.readouterr().err
    assert output.count("1 fragments of incompletely recorded messages left out") == 1
    assert "as reported before: recordings 0\n" in output


def test_a_recording_that_was_repaired_does_not_count(
    archive_dir: Path, watch: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    """A recording that was left out may be converted in a later iteration."""
    builder = fill(SegmentBuilder(checksum=crc32), 5)
    add_recording(archive_dir, builder)
    path = builder.segment_path(archive_dir, 0)
    sound = path.read_bytes()
    message = next(message for message in builder.messages if message.payload)
    damaged = bytearray(sound)
    damaged[message.position + 32] ^= 1
    path.write_bytes(damaged)
    options = ("--checksum", "crc-32")
    assert watch(lambda: None, options=options) == 3
    assert "left out: recording 0" in capfd.readouterr().err
    path.write_bytes(damaged)
    assert watch(lambda: path.write_bytes(sound), options=options) == 0


def test_a_purged_recording_does_not_end_the_command(
    archive_dir: Path,
    kind: Kind,
    command: str,
    tmp_path: Path,
    watch: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A recording that was converted to its end may be purged; the others continue, until all
    recordings of the option are gone."""
    for count in (5, 6, 7):
        add_recording(archive_dir, fill(SegmentBuilder(), count))
    third = fill(SegmentBuilder(), 8)
    add_recording(archive_dir, third, live=True)

    def grow() -> None:
        fill(third, 8).write(archive_dir)

    assert (
        watch(
            lambda: purge(archive_dir, 0),
            grow,
            options=("--recording-ids", "0,3", "--min-bytes", "1"),
        )
        == 0
    )
    output = capfd.readouterr()
    assert "recording 0 is gone; the table has all of it\n" in output.err
    check((command, "--watch", "--json"), output.out)
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [line.get("messages") for line in lines] == [5, 8, 8, 21]
    rows = [row for row in rows_of(kind, tmp_path / "out") if row["recording_id"] == 3]
    assert rows == [row for row in expected_rows(archive_dir) if row["recording_id"] == 3]

    purges = [lambda: purge(archive_dir, 1), lambda: purge(archive_dir, 2), lambda: pytest.fail()]
    assert watch(*purges, options=("--recording-ids", "1,2")) == 0
    output = capfd.readouterr()
    assert output.err.endswith("all recordings of --recording-ids are gone\n")


def test_a_recording_stays_selected_with_another_channel(
    archive_dir: Path,
    kind: Kind,
    tmp_path: Path,
    watch: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A recording that `--channel` selected once stays selected; one that was damaged then, and has
    another channel, is neither converted nor reported as gone."""
    live = fill(SegmentBuilder(), 5)
    add_recording(archive_dir, live, live=True)
    other = add_recording(archive_dir, fill(SegmentBuilder(), 6))
    rename(archive_dir, other, "aeron:ipc")
    catalog = archive_dir / "archive.catalog"
    sound = catalog.read_bytes()
    with Catalog.open(archive_dir, read_only=True) as entries:
        strings = entries.entry(other).offset + DESCRIPTOR_HEADER_LENGTH + DESCRIPTOR_BLOCK_LENGTH
    catalog.write_bytes(sound[:strings] + b"\xff" * 4 + sound[strings + 4 :])

    def grow() -> None:
        catalog.write_bytes(sound)
        rename(archive_dir, 0, "aeron:udp?endpoint=other-host:1")
        fill(live, 7).write(archive_dir)

    options = ("--channel", "alias=prices", "--min-bytes", "1")
    assert watch(grow, lambda: None, options=options) == 3
    output = capfd.readouterr()
    assert "gone" not in output.err
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [line.get("messages") for line in lines] == [5, 7, 12]
    rows = [row for row in expected_rows(archive_dir) if row["recording_id"] == 0]
    assert rows_of(kind, tmp_path / "out") == rows


@pytest.mark.parametrize("asked", [True, False])
def test_messages_lost_with_a_purged_recording_are_a_warning(
    archive_dir: Path, watch: Callable[..., int], capfd: pytest.CaptureFixture[str], asked: bool
) -> None:
    """That is so when it may have had more than the table has, named by id or not."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    live = fill(SegmentBuilder(), 5)
    add_recording(archive_dir, live, live=True)
    options = ("--recording-ids", "0,1") if asked else ()
    assert watch(lambda: purge(archive_dir, 1), lambda: None, options=options) == 3
    text = capfd.readouterr().err
    gone = "recording 1: it is no longer in the archive: the table has none of its messages"
    assert text.count(gone) == 1
    assert "before: recordings 1\n" in text


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--max-delay", "5"), "--max-delay requires --watch"),
        (("--watch", "--dry-run"), "--dry-run cannot be used with --watch"),
    ],
)
def test_options_without_effect_are_refused(
    archive_dir: Path,
    command: str,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    complaint: str,
) -> None:
    assert main([command, str(archive_dir), str(archive_dir / "out"), *options]) == 2
    assert complaint in capfd.readouterr().err


@pytest.mark.parametrize(
    ("table", "options", "complaint"),
    [
        ("gs://bucket/table", (), "written to local folders and s3:// URLs only"),
        ("hdfs://host/table", (), "written to local folders and s3:// URLs only"),
        ("a%20b", (), "name a table without it"),
        ("s3://bucket/a b/table", (), "do not find files below a name with ' '"),
        ("s3://bucket/é/table", (), "do not find files below a name with 'é'"),
        ("s3://bucket/a#b", (), "do not find files below a name with '#'"),
        ("out", ("--dry-run", "--compact"), "--dry-run cannot be used with --compact or --vacuum"),
        ("out", ("--dry-run", "--vacuum", "1"), "--dry-run cannot be used with --compact"),
    ],
)
def test_what_a_delta_table_cannot_have_is_refused(
    archive_dir: Path,
    capfd: pytest.CaptureFixture[str],
    table: str,
    options: tuple[str, ...],
    complaint: str,
) -> None:
    """That is so before anything is sent to a storage or written."""
    assert main(["table", str(archive_dir), table, *options]) == 2
    assert complaint in capfd.readouterr().err


def test_a_dry_run_ends_as_the_run_would(
    archive_dir: Path,
    command: str,
    tmp_path: Path,
    watch: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The exit code is 3 when a recording would be left out."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    builder = fill(SegmentBuilder(), 5)
    add_recording(archive_dir, builder)
    dry_run = [command, str(archive_dir), str(tmp_path / "out"), "--dry-run", "--json"]
    assert main(dry_run) == 0
    assert watch() == 0
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(1, builder.messages[2].position)
    capfd.readouterr()
    assert main(dry_run) == 3
    shown = json.loads(capfd.readouterr().out)
    assert [row["action"] for row in shown] == ["up to date", "refuse"]
    assert "recording 1: it ends at" in shown[1]["reason"]


@pytest.fixture
def run(
    archive_dir: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Run the command once, without Spark."""
    monkeypatch.setattr(job_module, "SparkTasks", Tasks)
    return lambda *options: main([command, str(archive_dir), str(tmp_path / "out"), *options])


@pytest.mark.parametrize("count", [1, 2])
def test_a_recording_that_is_left_out_is_exit_code_3(
    archive_dir: Path, run: Callable[..., int], count: int
) -> None:
    """It is 3 whether others are converted or not."""
    for _ in range(count):
        add_recording(archive_dir, fill(SegmentBuilder(checksum=crc32), 5))
    path = archive_dir / "0-0.rec"
    data = bytearray(path.read_bytes())
    data[fill(SegmentBuilder(), 5).messages[1].position + 32] ^= 1
    path.write_bytes(data)
    assert run("--checksum", "crc-32") == 3
    assert run("--checksum", "crc-32") == 3


def test_recordings_that_are_up_to_date_are_one_line(
    archive_dir: Path, run: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    """A report and a dry run list them with -v and in JSON only."""
    for _ in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 5))
    assert run() == 0
    assert capfd.readouterr().out.count("converted") == 3
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    for option in ("--dry-run", "--verbose", "--json"):
        capfd.readouterr()
        assert run("--dry-run", option) == 0
        text = capfd.readouterr().out
        assert text.count("up to date") == (1 if option == "--dry-run" else 3), text
        assert ("recordings up to date: 3 " in text) is (option == "--dry-run")
    assert run() == 0
    text = capfd.readouterr().out
    assert (text.count("up to date"), text.count("converted")) == (1, 1)
    assert "recordings up to date: 3 " in text
    assert run("--verbose") == 0
    assert capfd.readouterr().out.count("up to date") == 4
