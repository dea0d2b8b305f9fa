"""Archive directories in object storage, read without Spark, from a real S3-compatible server."""

from __future__ import annotations

import gc
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders import scoped_store
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32
from support.builders.timed_directory import SECOND, build
from support.spark import object_store
from support.spark.object_store import ObjectStore, Request

from aerotape.catalog.directory import find_ends
from aerotape.catalog.recovery import suspect_marks
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.errors import (
    CatalogError,
    ConfigurationError,
    SegmentError,
    StorageError,
    UnknownRecordingError,
)
from aerotape.replay.offline import remote_scan
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.reader import recording_range

pytest.importorskip("pyarrow")
pytest.importorskip("moto")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture
def prefix(request: pytest.FixtureRequest, store: ObjectStore) -> str:
    """A prefix of the bucket for this test only."""
    store.before = lambda request: None
    name: str = request.node.name
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def both(
    store: ObjectStore, prefix: str, folder: Path, recording_id: int = 0
) -> tuple[Recording, Recording]:
    """Upload a directory and return its local and its remote recording."""
    url = store.upload(folder, prefix)
    remote = open_directory(url, store.options).recording(recording_id)
    store.requests.clear()
    return open_directory(folder).recording(recording_id), remote


def test_the_messages_equal_those_of_a_local_directory(
    store: ObjectStore, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fragments, padding, several segments, a start that is not 0, pieces that split frames,
    verified checksums; as messages and as Arrow."""
    monkeypatch.setattr(remote_scan, "PIECE_LENGTH", 50_000)
    add_recording(tmp_path, fill(SegmentBuilder(checksum=crc32), 200))
    add_recording(tmp_path, fill(SegmentBuilder(checksum=crc32, start_position=98_304), 200, 2))
    for recording_id in (0, 1):
        local, remote = both(store, prefix, tmp_path, recording_id)
        assert remote.recorded_position == local.recorded_position
        assert list(remote.messages(checksum="crc-32")) == list(local.messages())
        assert remote.to_arrow(checksum="crc-32").equals(local.to_arrow())
        messages = list(local.messages())
        part = messages[50].position + 1, messages[150].position
        assert list(remote.messages(*part)) == messages[51:150]


def test_only_the_segments_and_bytes_of_a_range_are_fetched(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """A range within one term of the second segment reads one file, from the start of the term, and
    not the rest of the recording."""
    builder = fill(SegmentBuilder(), 300)
    add_recording(tmp_path, builder)
    _, remote = both(store, prefix, tmp_path)
    begin = builder.segment_length + builder.term_length
    inside = [m for m in builder.messages if begin + 5000 < m.position < begin + 20_000]
    read = list(remote.messages(inside[0].position, inside[-1].position + 1))
    assert [m.position for m in read] == [m.position for m in inside]
    gets = store.gets()
    assert {r.key.rpartition("/")[2] for r in gets} == {f"0-{builder.segment_length}.rec"}
    assert min(r.first for r in gets) == builder.term_length
    assert sum(r.length for r in gets) <= inside[-1].position + 1 - begin + (128 << 10)


def test_prefetching_is_bounded(
    store: ObjectStore, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first batch only a few pieces of dozens were requested, and an abandoned scan
    leaves no thread."""
    monkeypatch.setattr(remote_scan, "PIECE_LENGTH", 10_000)
    add_recording(tmp_path, fill(SegmentBuilder(), 300))
    local, remote = both(store, prefix, tmp_path)
    assert local.recorded_position > 50 * 10_000
    scan = recording_range(remote).scan(["position"], batch_rows=1)
    assert scan.next_batch() is not None
    assert len(store.gets()) <= remote_scan.PIECES_AHEAD + 2
    del scan
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("aerotape-fetch"):
            thread.join(60)
            assert not thread.is_alive()


def ends(builder: SegmentBuilder) -> list[int]:
    return [*builder.frames, builder.position]


def test_the_end_without_a_stop_position_equals_the_local_one(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """Cut anywhere: nothing written, within a term, at its end, at the end of a segment, with an
    empty segment after it. The end is found in few reads, without reading the segment."""
    rng = random.Random(3)
    folders = []
    for start in (0, 65_536 + 96):
        builder = fill(SegmentBuilder(start_position=start, segment_length=1 << 20), 250)
        builder.pad_term()
        at_terms = [p for p in ends(builder) if p % builder.term_length == 0]
        for end in {start, *rng.sample(ends(builder), 3), at_terms[0], at_terms[-1]}:
            cut = SegmentBuilder(start_position=start, segment_length=1 << 20)
            cut.frames = {p: f for p, f in builder.frames.items() if p < end}
            folder = tmp_path / f"{start}-{end}"
            folder.mkdir()
            add_recording(folder, cut, live=True)
            if end == at_terms[-1]:
                base = cut.segment_base(end - 1) + cut.segment_length
                (folder / f"0-{base}.rec").write_bytes(bytes(cut.segment_length))
            folders.append((folder, end))
    for folder, end in folders:
        local, remote = both(store, f"{prefix}/{folder.name}", folder)
        assert remote.recorded_position == local.recorded_position
        if end != at_terms[-1]:
            assert remote.recorded_position == end
        assert len(store.gets()) <= 12
        assert sum(r.length for r in store.gets()) < 100_000
        assert list(remote.messages()) == list(local.messages())


def test_ends_of_many_recordings_are_found_concurrently(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """Recordings without a stop position are read concurrently; an error of one is raised for that
    one only."""
    for count in range(8):
        add_recording(tmp_path, fill(SegmentBuilder(), 5 + count), live=count != 3)
    url = store.upload(tmp_path, prefix)
    recordings = open_directory(url, store.options).recordings()
    # Each waits for the others: one after the other, none would complete.
    waiting = threading.Barrier(7, timeout=60)

    def wait(request: Request) -> None:
        if request.method == "HEAD":
            waiting.wait()

    store.before = wait
    find_ends(recordings)
    store.before = lambda request: None
    store.requests.clear()
    found = [recording.recorded_position for recording in recordings]
    assert found == [each.recorded_position for each in open_directory(tmp_path).recordings()]
    assert store.requests == []

    again = open_directory(url, store.options).recordings()
    store.delete(prefix, "5-0.rec")
    find_ends(again)
    assert again[6].recorded_position == found[6]
    with pytest.raises(StorageError, match=r"5-0.rec: it is gone since the directory was listed"):
        _ = again[5].recorded_position


def test_a_torn_tail_is_handled_as_in_a_local_directory(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """A last frame whose end was not written to disk is not included."""
    builder = fill(SegmentBuilder(mtu_length=16_384), 30)
    last = builder.message(b"x" * 12_000)
    add_recording(tmp_path, builder, live=True)
    path = builder.segment_path(tmp_path, last.position)
    data = bytearray(path.read_bytes())
    torn = (last.position - builder.segment_base(last.position) + 4096) // 4096 * 4096
    data[torn:] = bytes(len(data) - torn)
    path.write_bytes(data)
    local, remote = both(store, prefix, tmp_path)
    assert remote.recorded_position == local.recorded_position == last.position


def test_an_incomplete_copy_is_reported(store: ObjectStore, prefix: str, tmp_path: Path) -> None:
    """A remote catalog and a segment that is missing, truncated or older than the catalog: all
    messages preceding it are read, then an error reports the file and the likely cause."""
    builder = fill(SegmentBuilder(), 200)
    add_recording(tmp_path, builder)
    _, remote = both(store, prefix, tmp_path)
    second = builder.segment_length
    path = tmp_path / f"0-{second}.rec"
    whole = path.read_bytes()
    before = [m.position for m in builder.messages if m.position < second]

    def read() -> tuple[list[int], str]:
        positions: list[int] = []
        with pytest.raises(SegmentError) as raised:
            iterate(remote, positions)
        assert str(raised.value.path) == f"s3://{object_store.BUCKET}/{prefix}/0-{second}.rec"
        return positions, str(raised.value)

    store.delete(prefix, path.name)
    positions, message = read()
    assert positions == before
    assert "it does not exist; was it deleted, or is the copy incomplete?" in message

    path.write_bytes(whole[:10_000])
    store.upload(tmp_path, prefix)
    positions, message = read()
    assert positions[: len(before)] == before
    assert "segment file ends at offset 10000" in message

    path.write_bytes(whole[:10_016].ljust(len(whole), b"\0"))
    store.upload(tmp_path, prefix)
    assert "no frame here: frame length 0" in read()[1]


def iterate(recording: Recording, positions: list[int]) -> None:
    """Note the position of each message, until the error."""
    for message in recording.messages():
        positions.append(message.position)


def test_a_file_that_is_deleted_while_it_is_read_is_reported(
    store: ObjectStore, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is deleted between two reads from it."""
    monkeypatch.setattr(remote_scan, "PIECE_LENGTH", 20_000)
    monkeypatch.setattr(remote_scan, "PIECES_AHEAD", 1)
    builder = fill(SegmentBuilder(), 100)
    add_recording(tmp_path, builder)
    _, remote = both(store, prefix, tmp_path)

    def delete(request: Request) -> None:
        if request.first >= 40_000:
            store.before = lambda request: None
            store.client.delete_object(Bucket=object_store.BUCKET, Key=f"{prefix}/0-0.rec")

    store.before = delete
    positions: list[int] = []
    gone = rf"it does not exist; was it deleted, .*s3://.*/{prefix}/0-0.rec"
    with pytest.raises(SegmentError, match=gone):
        iterate(remote, positions)
    assert 40_000 > positions[-1] > 20_000


def test_files_are_read_without_requests_for_their_length(
    store: ObjectStore, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for each small recording, beside those for the catalog and the list of files,
    with credentials as options or in the environment."""
    for seed in range(6):
        add_recording(tmp_path, fill(SegmentBuilder(), 5, seed=seed))
    url = store.upload(tmp_path, prefix)

    def read(options: dict[str, str]) -> Counter[str]:
        store.requests.clear()
        rows = [list(each.messages()) for each in open_directory(url, options).recordings()]
        assert rows == [list(each.messages()) for each in open_directory(tmp_path).recordings()]
        return Counter(request.method for request in store.requests)

    assert read(store.options) == {"GET": 3 + 6}
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    assert read({}) == {"GET": 3 + 6}


def test_wrong_locations_and_credentials_have_distinct_errors(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """A missing directory, server, scheme or recording is a one-line error without a secret."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    url = store.upload(tmp_path, prefix)
    with pytest.raises(CatalogError, match=f"no catalog at {url}/none/archive.catalog"):
        open_directory(f"{url}/none", store.options)
    with pytest.raises(UnknownRecordingError, match=f"no recording with id 7 .*{url}"):
        open_directory(url, store.options).recording(7)
    with pytest.raises(ConfigurationError, match="nosuch://b"):
        open_directory("nosuch://b/a")
    gone = {**store.options, "endpoint": "http://127.0.0.1:9", "connect_timeout": "1"}
    with pytest.raises(StorageError, match=r"cannot read s3://.*are endpoint, region") as raised:
        open_directory(url, gone)
    assert store.options["secret_access_key"] not in str(raised.value)


def test_connection_settings_come_from_the_environment(
    store: ObjectStore, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoint and credentials come from the variables of the AWS tools; options override them."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    url = store.upload(tmp_path, prefix)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    with store.strict():
        assert len(open_directory(url).recordings()) == 1
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-right-one")
        with pytest.raises(
            StorageError, match=rf"cannot read {url}/archive.catalog: SignatureDoesNotMatch"
        ):
            open_directory(url)


def test_marks_of_suspect_recordings_are_read(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    """A recording that is marked in the local directory is marked in the remote copy."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    note = SuspectNote("suspect torn tail", "it may be torn", 64, 1_700_000_000_000)
    suspect_marks.add_notes(tmp_path, 0, [note])
    _, remote = both(store, prefix, tmp_path)
    assert remote.suspect_notes == [note]


def test_other_schemes_go_through_fsspec(tmp_path: Path) -> None:
    """fsspec handles schemes that obstore does not: in this test its file system in memory."""
    fsspec = pytest.importorskip("fsspec")
    builder = fill(SegmentBuilder(), 100)
    builder.frame(b"the rest never came", flags=BEGIN)
    add_recording(tmp_path, builder, live=True)
    memory = fsspec.filesystem("memory")
    for path in tmp_path.iterdir():
        memory.pipe_file(f"/fsspec-test/{path.name}", path.read_bytes())
    remote = open_directory("memory://fsspec-test").recording(0)
    local = open_directory(tmp_path).recording(0)
    assert remote.recorded_position == local.recorded_position
    assert list(remote.messages()) == list(local.messages())
    with pytest.raises(CatalogError, match="no catalog at memory://elsewhere"):
        open_directory("memory://elsewhere")


def test_times_are_looked_up_in_the_copy_of_a_time_index(
    store: ObjectStore, prefix: str, tmp_path: Path
) -> None:
    built = build(tmp_path / "archive")
    local, remote = both(store, prefix, built.archive_dir)
    assert remote.time_index.points == local.time_index.points == built.points
    begin = built.time_of(built.stream.messages[50].position)
    times = {"from_time": begin, "to_time": begin + SECOND}
    store.requests.clear()
    found = [message.position for message in remote.messages(None, None, "none", **times)]
    assert found == [message.position for message in local.messages(None, None, "none", **times)]
    assert 10 <= len(found) < 20
    columns = ["position", "recorded_time"]
    assert remote.to_arrow(columns=columns).equals(local.to_arrow(columns=columns))
    built.path.write_bytes(b"nonsense")
    _, remote = both(store, prefix, built.archive_dir)
    assert "aerotape-0.time-index is damaged" in remote.time_index.problem
    store.delete(prefix, built.path.name)
    remote = open_directory(f"s3://{object_store.BUCKET}/{prefix}", store.options).recording(0)
    store.requests.clear()
    assert list(remote.time_index_parts()) == []
    assert store.requests == []


def test_recordings_by_scope(store: ObjectStore, prefix: str, tmp_path: Path) -> None:
    """A store is read by scope from a copy too; its own scope is that of the copied mark file."""
    local = scoped_store.build(tmp_path / "store", archive_id=5)
    scoped_store.do_import(local, scoped_store.build(tmp_path / "six", archive_id=6, count=2), 6)
    url = store.upload(local, prefix)
    remote = open_directory(url, store.options)
    assert remote.scopes() == open_directory(local).scopes() == [5, 6]
    for scope_id in (5, 6):
        copies = remote.scope(scope_id).recordings()
        originals = open_directory(local).scope(scope_id).recordings()
        assert [each.qualified_id for each in copies] == [each.qualified_id for each in originals]
        for copy, original in zip(copies, originals, strict=True):
            columns = ["qualified_name", "scope_id", "position", "payload"]
            assert copy.to_arrow(columns=columns).equals(original.to_arrow(columns=columns))
    with pytest.raises(UnknownRecordingError):
        remote.scope(6).recording(2)
