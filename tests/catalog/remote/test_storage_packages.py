"""Exceptions of any kind from storage packages, reported as failures of the storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.location import StorageOptions
from aerotape.catalog.maintenance.dump import read_frames
from aerotape.catalog.remote.object_folder import reach
from aerotape.errors import ConfigurationError, SegmentError, StorageError
from aerotape.replay.offline.directory import open_directory
from aerotape.url_path import UrlPath

pytest.importorskip("fsspec")
pytest.importorskip("pyarrow")

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from aerotape.spark.tables.output import OutputStore

URL = "moody://archive"
SECRET = {"secret": "not-to-be-shown"}


def write(store: OutputStore, name: str, data: bytes) -> None:
    """Write a file of a table's directory."""
    with store.new_file(name) as stream:
        stream.write(data)


class MoodError(Exception):
    """An exception of a package, without a known base class."""


class MoodyFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A storage whose calls fail on request.

    Attributes:
        fails: the name of the call that fails.
        suffix: of the paths for which it fails.
        error: the exception that it raises.
    """

    protocol = "moody"
    fails = ""
    suffix = ""
    error: BaseException = MoodError()

    def __init__(self, secret: str = "", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.strike("connect")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.replace("moody://", "memory://", 1))
        return stripped

    @classmethod
    def strike(cls, call: str, path: str = "") -> None:
        if cls.fails == call and path.endswith(cls.suffix):
            raise cls.error

    def info(self, path: str, **arguments: Any) -> Any:
        self.strike("info")
        return super().info(path, **arguments)

    def ls(self, path: str, *positional: Any, **arguments: Any) -> Any:
        self.strike("list")
        return super().ls(path, *positional, **arguments)

    def find(self, path: str, *positional: Any, **arguments: Any) -> Any:
        self.strike("list")
        return super().find(path, *positional, **arguments)

    def open(self, path: str, mode: str = "rb", **arguments: Any) -> Any:
        self.strike("open")
        file = super().open(path, mode, **arguments)
        for name in ("read", "write"):
            setattr(file, name, self._moody(name, path, getattr(file, name)))
        return file

    def _moody(self, name: str, path: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def moody(*arguments: Any) -> Any:
            self.strike(name, path)
            return call(*arguments)

        return moody

    def rm(self, path: str, *positional: Any, **arguments: Any) -> None:
        self.strike("delete")
        super().rm(path, *positional, **arguments)

    def mv(self, path: str, *positional: Any, **arguments: Any) -> None:
        self.strike("move")
        if self.fails == "move to what is there" and self.exists(positional[0]):
            return  # HDFS over HTTP
        super().mv(path, *positional, **arguments)


@pytest.fixture(autouse=True)
def moody(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[MoodyFileSystem]]:
    fsspec.register_implementation("moody", MoodyFileSystem, clobber=True)
    for name, value in (
        ("fails", ""),
        ("suffix", ""),
        ("error", MoodError("no: not-to-be-shown\nat line 3")),
    ):
        monkeypatch.setattr(MoodyFileSystem, name, value)
    yield MoodyFileSystem
    MoodyFileSystem.store.clear()
    MoodyFileSystem.clear_instance_cache()


def upload(folder: Path) -> None:
    storage = fsspec.filesystem("moody", **SECRET)
    for path in folder.iterdir():
        storage.pipe_file(f"/archive/{path.name}", path.read_bytes())


@pytest.mark.parametrize("fails", ["open", "read", "list"])
def test_a_read_error_has_the_location_and_the_reason(
    tmp_path: Path, moody: type[MoodyFileSystem], fails: str
) -> None:
    """Whichever call fails, a one-line error without secrets says what could not be read, why, and
    what to check."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    upload(tmp_path)
    directory = open_directory(URL, SECRET)
    assert len(directory.recordings()) == 1
    moody.fails = fails
    with pytest.raises(
        StorageError, match=rf"^cannot read {URL}.*: MoodError: no: … \(are endpoint.*\)$"
    ):
        directory.recordings()


def test_a_failure_during_a_scan_is_a_segment_error(
    tmp_path: Path, moody: type[MoodyFileSystem]
) -> None:
    """Messages and frames alike; a file that is deleted before it is read is reported, too."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    upload(tmp_path)
    recording = open_directory(URL, SECRET).recording(0)
    moody.fails = "read"
    with pytest.raises(SegmentError, match=f"cannot read {URL}/0-0.rec: "):
        list(recording.messages())
    with pytest.raises(StorageError, match=f"cannot read {URL}/0-0.rec: "):
        list(read_frames(recording, 0, recording.recorded_position))
    moody.error = FileNotFoundError("gone")
    with pytest.raises(SegmentError, match=f"it does not exist; was it deleted.*{URL}/0-0.rec"):
        list(recording.messages())
    with pytest.raises(SegmentError, match=f"there is no segment file.*{URL}/0-0.rec"):
        list(read_frames(recording, 0, recording.recorded_position))


@pytest.mark.parametrize(
    ("fails", "use"),
    [
        ("move", lambda store: store.move("file", "other")),
        ("list", lambda store: store.files()),
        ("info", lambda store: store.exists("file")),
        ("delete", lambda store: store.delete_file("file")),
    ],
)
def test_a_write_error_has_the_location_and_the_reason(
    moody: type[MoodyFileSystem], fails: str, use: Callable[[OutputStore], object]
) -> None:
    """The same for the directory of a table."""
    store = OutputStore.open("moody://table", StorageOptions.of(SECRET))
    store.make_folder()
    write(store, "file", b"data")
    moody.fails = fails
    with pytest.raises(
        StorageError, match=r"^cannot .* moody://table.*: MoodError: no: … \(are .*\)$"
    ):
        use(store)


def test_a_rename_without_effect_is_detected(moody: type[MoodyFileSystem]) -> None:
    """An error is raised if the package does not report that the name exists."""
    store = OutputStore.open("moody://table", StorageOptions.of(SECRET))
    for name in ("file", "other"):
        write(store, name, name.encode())
    moody.fails = "move to what is there"
    with pytest.raises(StorageError, match=r"^cannot move to moody://table/file: not renamed"):
        store.move("other", "file")


def test_an_unreachable_storage_is_not_an_option_error(moody: type[MoodyFileSystem]) -> None:
    """Some packages connect when they are created; arguments that they reject are a user error."""
    moody.fails = "connect"
    with pytest.raises(StorageError, match=r"^cannot reach moody://far: MoodError: no: .* \(are"):
        open_directory("moody://far/archive", {"secret": "x"})
    with pytest.raises(ConfigurationError, match=r"moody://far: .*argument 'self'"):
        open_directory("moody://far/archive", {"self": "x"})


def test_a_forked_process_drops_no_file_system(moody: type[MoodyFileSystem]) -> None:
    """That of hdfs-native would wait there for threads of its parent."""
    dropped: list[int] = []

    class Watched(MoodyFileSystem):
        protocol = "watched"

        def __del__(self) -> None:
            dropped.append(os.getpid())

    fsspec.register_implementation("watched", Watched, clobber=True)
    reach(UrlPath("watched://archive"), StorageOptions())
    child = os.fork()
    if child == 0:
        os._exit(len(dropped))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_stream_does_not_report_it_as_data_loss(
    tmp_path: Path, moody: type[MoodyFileSystem]
) -> None:
    """A last message that cannot be read does not mean that it was deleted."""
    pytest.importorskip("pyspark")
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from aerotape.spark.data_source import AerotapeDataSource

    add_recording(tmp_path, fill(SegmentBuilder(), 3), live=True)
    upload(tmp_path)
    source = AerotapeDataSource({"path": URL, "storage.secret": SECRET["secret"]})
    reader: Any = source.streamReader(source.schema())
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    moody.fails, moody.suffix = "read", ".rec"
    with pytest.raises(StorageError, match=f"^cannot read {URL}/0-0.rec: MoodError"):
        reader.latestOffset(offset, ReadAllAvailable())
    moody.fails = ""
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset

