"""Recordings of a running archive, Java's or ours, replicated into a store under a scope."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.builders.scoped_store import build, do_import
from support.daemon.archives import KINDS, ServedArchive, serve
from support.daemon.command_line import aerotape as command
from support.daemon.recording import Made, recorded, start_recording, stop, wait_until
from support.jvm.java import archive_tool
from support.model.messages import message

import aerotape
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.metadata_store import MetadataStore, ledgers_of
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.scopes.importing import RecordingImport
from aerotape.catalog.segment_files import list_segment_files
from aerotape.client.replay.requests import start_replay
from aerotape.client.store_replication import replicate_archive
from aerotape.errors import ConfigurationError, StorageError, UnknownRecordingError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

OWN, SCOPE = 5, 7


def no_ledger(id: QualifiedId) -> bool:
    return False


@pytest.fixture(params=KINDS, scope="module")
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    with serve(request.param, {"aeron.archive.id": "9"}) as served:
        yield served


@pytest.fixture
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    with archive.connect() as connected:
        yield connected


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return build(tmp_path / "store", archive_id=OWN)


def replicate(client: aerotape.ArchiveClient, store: Path, *made: Made) -> list[RecordingImport]:
    ids = [each.recording_id for each in made]
    with ledgers_of(store) as is_ledger:
        return list(replicate_archive(client, store, SCOPE, recording_ids=ids, is_ledger=is_ledger))


def check(archive: ServedArchive, store: Path, made: Made, end: int) -> Path:
    """The store has the recording's bytes up to a position; return the directory."""
    recording = open_directory(store).scope(SCOPE).recording(made.recording_id)
    expected = [each[:2] for each in made.sent if each[1] <= end]
    found = list(recording.messages())
    assert [(each.payload, each.end_position) for each in found] == expected
    assert {each.session_id for each in found} <= {made.session_id}
    assert recording.descriptor.stop_position == end
    path = recording.archive_dir
    assert isinstance(path, Path)
    length = recording.descriptor.segment_file_length
    for segment in recording.segment_files():
        used = min(end - segment.base_position, length)
        source = archive.archive_dir / segment.path.name
        assert segment.path.read_bytes()[:used] == source.read_bytes()[:used]
    return path


def test_a_recording_is_replicated_and_continued(
    archive: ServedArchive, client: aerotape.ArchiveClient, store: Path
) -> None:
    """Byte for byte, up to where a live recording is; the next call adds the rest."""
    before = start_recording(client, count=100)
    done = replicate(client, store, before)
    assert [(each.result, each.length, each.error) for each in done] == [
        ("replicated", before.end, "")
    ]
    check(archive, store, before, before.end)
    before.send(message(before.stream_id, index, 0, 6000) for index in range(100, 300))
    wait_until(
        lambda: client.recording_position(before.recording_id) == before.end, "the recording"
    )
    stop(client, before)
    other = recorded(client, 20)
    assert [each.result for each in replicate(client, store, before, other)] == ["replicated"] * 2
    folder = check(archive, store, before, before.end)
    check(archive, store, other, other.end)
    assert [each.result for each in replicate(client, store, before, other)] == ["present"] * 2
    assert open_directory(folder).own_scope_id() == SCOPE
    if archive.kind == "java":
        verified = archive_tool(folder, "verify", "-a", answers="y\n")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        state = archive_tool(folder, "describe-all").stdout
        assert "VALID" in state, state


def test_the_archive_of_the_store_serves_what_is_replicated(client: aerotape.ArchiveClient) -> None:
    """While it runs: at once, and more after the next call."""
    made = start_recording(client, count=50)
    with serve("aerotape") as served, served.connect() as other:
        for count in (50, 80):
            made.send(
                message(made.stream_id, each, 0, 6000) for each in range(len(made.sent), count)
            )
            wait_until(
                lambda: client.recording_position(made.recording_id) == made.end, "the recording"
            )
            replicate(client, served.archive_dir, made)
            with other.replay(made.recording_id, scope_id=SCOPE) as messages:
                assert [each.payload for each in messages] == [each[0] for each in made.sent]
        assert SCOPE in other.scopes()
    stop(client, made)


def test_an_empty_recording_and_one_without_its_beginning(
    archive: ServedArchive, client: aerotape.ArchiveClient, store: Path
) -> None:
    """The first is a recording without messages; the second begins where the archive's does."""
    empty = stop(client, start_recording(client))
    purged = recorded(client, 200)
    [descriptor] = client.list_recordings(purged.recording_id, 1)
    start = descriptor.segment_file_length
    client.purge_segments(purged.recording_id, start)
    assert [each.error for each in replicate(client, store, empty, purged)] == ["", ""]
    scope = open_directory(store).scope(SCOPE)
    assert list(scope.recording(empty.recording_id).messages()) == []
    recording = scope.recording(purged.recording_id)
    assert recording.descriptor.start_position == start
    assert [each.payload for each in recording.messages()] == [
        payload for payload, end, _ in purged.sent if end > start
    ][-sum(1 for _ in recording.messages()) :]


def test_what_does_not_continue_the_store_is_left_out(
    client: aerotape.ArchiveClient, store: Path, tmp_path: Path
) -> None:
    """Another recording under the id, a gap, an end after the archive's, the id of a ledger."""
    made, another = recorded(client, 200), recorded(client, 5)
    replicate(client, store, made)
    directory = open_directory(store).scope(SCOPE).recording(made.recording_id).archive_dir
    with Catalog.open(Path(directory)) as catalog:
        catalog.set_stop_position(made.recording_id, made.end + 1024)
    [done] = replicate(client, store, made)
    assert f"up to position {made.end + 1024}, the archive from 0 to {made.end}" in done.error
    with Catalog.open(Path(directory)) as catalog:
        catalog.set_stop_position(made.recording_id, 0)
    [descriptor] = client.list_recordings(made.recording_id, 1)
    client.purge_segments(made.recording_id, descriptor.segment_file_length)
    [done] = replicate(client, store, made)
    assert "up to position 0, the archive from" in done.error
    shutil.rmtree(store / "00000000")
    other = tmp_path / "other"
    do_import(store, build(other, archive_id=6, count=made.recording_id + 1), SCOPE)
    [done] = replicate(client, store, made)
    assert done.result == "left out"
    assert "holds another recording" in done.error
    with closing(MetadataStore.create(store)) as ledgers:
        ledgers.add(LedgerMetadata(QualifiedId(SCOPE, another.recording_id)))
    [done] = replicate(client, store, another)
    assert "is the id of a ledger" in done.error


def test_a_replay_that_ends_early_is_continued(
    archive: ServedArchive,
    client: aerotape.ArchiveClient,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What has arrived is there; the outcome names the position. What follows it is replaced."""
    made = recorded(client, 300)
    half = made.sent[150][1]
    monkeypatch.setattr(
        "aerotape.client.store_replication.start_replay",
        lambda *args, length, **options: start_replay(*args, length=half, **options),
    )
    [done] = replicate(client, store, made)
    assert f"ended at position {half} of {made.end}" in done.error
    folder = check(archive, store, made, half)
    monkeypatch.undo()
    # As a call that was killed leaves it.
    last = list_segment_files(folder, made.recording_id)[-1]
    with last.path.open("r+b") as file:
        file.seek(half - last.base_position)
        file.write(b"?" * 32)
    [done] = replicate(client, store, made)
    assert (done.result, done.error) == ("replicated", "")
    check(archive, store, made, made.end)


def test_refused_replications(client: aerotape.ArchiveClient, store: Path) -> None:
    """Before anything is written."""
    with pytest.raises(ConfigurationError, match=f"scope id {OWN} is that of the recordings of"):
        next(replicate_archive(client, store, OWN, is_ledger=no_ledger))
    with pytest.raises(UnknownRecordingError, match="no recording 999"):
        next(replicate_archive(client, store, SCOPE, recording_ids=[999], is_ledger=no_ledger))
    channel = "aeron:udp?control-mode=response|control=localhost:0"
    with pytest.raises(ConfigurationError, match="cannot be replicated over the response channel"):
        next(replicate_archive(client, store, SCOPE, replay_channel=channel, is_ledger=no_ledger))
    running = replicate_archive(client, store, SCOPE, is_ledger=no_ledger)
    next(running)
    with pytest.raises(StorageError, match="another import"):
        next(replicate_archive(client, store, SCOPE, is_ledger=no_ledger))
    list(running)


def test_the_command(archive: ServedArchive, client: aerotape.ArchiveClient, store: Path) -> None:
    """The scope is the archive's id unless one is given; --json has a line for each recording."""
    made = recorded(client, 10)
    connection = ("--aeron-dir", archive.aeron_dir, "--control-channel", archive.control_channel)
    id = ("--recording-id", made.recording_id)
    arguments = ("ledger", "replicate-archive", "--archive-dir", store, *connection)
    row = command(*arguments, *id, "--json").json
    assert (row["scope_id"], row["result"], row["length"]) == ("9", "replicated", made.end)
    assert open_directory(store).scopes() == [OWN, 9]
    assert "present" in command(*arguments, *id).out
    for wrong in (OWN, "x"):
        refused = command(*arguments, "--ledger-scope-id", wrong, expect=2)
        [line] = refused.err.splitlines()[-1:]
        assert "scope" in line
    rows = [json.loads(each) for each in command(*arguments, "--json").out.splitlines()]
    assert [int(each["ledger_id"]) for each in rows] == list(range(made.recording_id + 1))
