"""`aerotape tool` on a directory in object storage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders import offline_directory
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import tool
from support.spark import object_store
from support.spark.object_store import ObjectStore

pytest.importorskip("pyarrow")
pytest.importorskip("moto")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of all states: one without stop position, one without files."""
    return offline_directory.build(tmp_path_factory.mktemp("tool") / "archive")


@pytest.fixture
def url(store: ObjectStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store.upload(folder, "tool")


@pytest.mark.parametrize(
    "command",
    [
        "describe-all", "describe 0", "count-entries", "verify --dry-run", "verify -a --dry-run",
        "verify 3 -a --dry-run", "verify 0 -checksum crc-32 --dry-run", "dump 3", "stats",
        "stats 3", "stats 0 --from-position 65536 --to-position 140000", "time-index",
    ],
)  # fmt: skip
def test_reading_commands_print_the_same_as_for_a_local_copy(
    url: str, folder: Path, command: str
) -> None:
    """The same JSON and exit code; reported files have the URLs of the storage."""

    def printed(place: str) -> tuple[int, Any]:
        done = tool(place, *command.split(), "--json", expect=None)
        text = done.out.replace(place, "PLACE")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return done.code, lines or json.loads(text)

    code, report = printed(url)
    expected_code, expected = printed(str(folder))
    if command == "describe-all":
        [report], [expected] = report, expected
        assert report.pop("mark_file") is None
        assert expected.pop("mark_file") is not None
    if command.startswith("verify"):
        # The entries that it would mark: none in remote storage.
        assert [row.pop("marked") for row in report] == [None] * len(report)
        # Without checksums there is nothing to mark.
        assert any([row.pop("marked") for row in expected]) == ("-checksum" not in command)
    assert (code, report) == (expected_code, expected)


def test_statistics_skip_many_damaged_segments(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through many segments without a frame, one of them missing, as for a local copy."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "archive"
    folder.mkdir()
    stream = SegmentBuilder(segment_length=65_536)
    while stream.position < 12 * stream.segment_length:
        stream.message(bytes(range(1, 200)) * 10)
    add_recording(folder, stream)
    for number in (*range(1, 5), *range(6, 11)):
        (folder / f"0-{number * stream.segment_length}.rec").write_bytes(b"\xee" * 65_536)
    (folder / f"0-{7 * stream.segment_length}.rec").unlink()
    url = store.upload(folder, "gaps")
    monkeypatch.setattr("aerotape.replay.statistics.compute._SLICE_BYTES", 65_536)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = []
    for place in (url, str(folder)):
        said.append(tool(place, "stats", "0", "--json", expect=3).json)
    assert said[0] == said[1]
    assert said[0]["messages"] > 60
    assert [path.name for path in tmp_path.iterdir()] == ["archive"], "no copy is left"


@pytest.mark.parametrize(
    "command",
    ["pid", "errors", "mark-invalid 0", "compact", "checksum crc-32", "time-index --rebuild"],
)
def test_other_commands_are_refused(store: ObjectStore, url: str, command: str) -> None:
    """The error is one line, and no request reaches the storage."""
    error = tool(url, *command.split(), expect=2).err
    refused = "--rebuild" if "--rebuild" in command else command.split()[0]
    assert f"{refused} works on local directories only; copy {url}" in error
    assert "Traceback" not in error
    assert store.requests == []
