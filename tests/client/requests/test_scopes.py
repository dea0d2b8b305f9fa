"""Recordings of other archives, listed and replayed through the archive that has imported them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.scoped_store import MESSAGES, build, do_import, payloads, tree
from support.daemon.served import launch
from support.jvm.java import JavaArchive

import aerotape
from aerotape import _native, errors
from aerotape.protocol import NULL_VALUE
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

HIGH = (1 << 64) - 2
OWN = 5


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with own recording 0, and three recordings of either of two other archives."""
    folder = tmp_path_factory.mktemp("scopes")
    store = build(folder / "store", archive_id=OWN)
    do_import(store, build(folder / "six", archive_id=6, count=3), 6)
    do_import(store, build(folder / "high", archive_id=7, count=3), HIGH)
    return store


@pytest.fixture
def client(
    store: Path, driver: _native.MediaDriver, aeron_dir: Path
) -> Iterator[aerotape.ArchiveClient]:
    with (
        launch(store, aeron_dir, {"aeron.archive.id": str(OWN)}),
        aerotape.connect(aeron_dir=aeron_dir, timeout_ns=60_000_000_000) as connected,
    ):
        yield connected


def replayed(client: aerotape.ArchiveClient, id: int, scope_id: int | None) -> list[bytes]:
    with client.replay(id, scope_id=scope_id) as messages:
        return [bytes(message.payload) for message in messages]


def taken(subscription: aerotape.Subscription) -> list[aerotape.Message]:
    """Return all messages of a recording that is replayed to a subscription."""
    messages: list[aerotape.Message] = []
    deadline_s = time.monotonic() + 30
    while len(messages) < MESSAGES and time.monotonic() < deadline_s:
        messages += subscription.poll(timeout_ns=100_000_000)
    return messages


def test_recordings_of_a_scope_are_listed_and_replayed(
    client: aerotape.ArchiveClient, store: Path
) -> None:
    """Each scope has its own recording 0; scopes never mix."""
    directory = open_directory(store)
    seen = set()
    for scope_id in (None, 0, OWN, 6, HIGH):
        stored = directory.scope(scope_id or 0).recordings()
        listed = list(client.list_recordings(scope_id=scope_id))
        assert listed == [each.descriptor for each in stored]
        for recording in stored:
            expected = payloads(recording)
            assert len(expected) == MESSAGES
            assert replayed(client, recording.recording_id, scope_id) == expected
            seen.add(b"".join(expected))
    assert len(seen) == 7
    assert list(client.list_recordings(scope_id=99)) == []
    assert [each.recording_id for each in client.list_recordings(1, 1, scope_id=6)] == [1]
    assert client.list_recording(3, scope_id=6) is None
    found = client.list_recording(2, scope_id=-2)
    assert found == directory.scope(HIGH).recording(2).descriptor
    # As unsigned, it is the same scope.
    assert client.list_recording(2, scope_id=HIGH) == found


def test_a_replay_of_a_part(client: aerotape.ArchiveClient, store: Path) -> None:
    """Position and length are those of the imported recording."""
    recording = open_directory(store).scope(6).recording(1)
    messages = list(recording.messages())
    begin, end = messages[3].position, messages[7].end_position
    with client.replay(1, begin, end - begin, scope_id=6) as replay:
        assert [bytes(each.payload) for each in replay] == [each.payload for each in messages[3:8]]


def test_a_replay_to_a_channel_of_the_caller(
    client: aerotape.ArchiveClient, store: Path, aeron_dir: Path
) -> None:
    """`start_replay` has scopes too; a replay over a response channel as well."""
    recording = open_directory(store).scope(6).recording(2)
    ipc = "aeron:ipc?control-mode=response"
    with aerotape.Aeron(aeron_dir) as aeron:
        subscription = aeron.add_subscription("aeron:ipc", 77)
        client.start_replay(2, "aeron:ipc", 77, scope_id=6)
        received = [each.payload for each in taken(subscription)]
        assert received == payloads(recording)
        subscription = aeron.add_subscription(ipc, 78)
        id = subscription.registration_id
        client.start_replay(2, ipc, 78, scope_id=6, subscription_id=id)
        assert [each.payload for each in taken(subscription)] == received
    with client.replay(2, scope_id=6, channel=ipc) as messages:
        assert [bytes(message.payload) for message in messages] == received


def test_the_scopes_of_an_archive(client: aerotape.ArchiveClient, store: Path) -> None:
    """Its own, those of imported recordings and of ledgers; unsigned and ascending."""
    assert client.scopes() == open_directory(store).scopes() == [OWN, 6, HIGH]
    made = [QualifiedId(scope_id, 3) for scope_id in (HIGH + 1, 1 << 63, 6, 0)]
    for each in made:
        client.declare_ledger(qualified_id=each)
    assert client.scopes() == [OWN, 6, 1 << 63, HIGH, HIGH + 1]
    for each in made:
        client.delete_ledger(each)


def test_refused_replays(client: aerotape.ArchiveClient) -> None:
    """What was not imported is unknown; a counter and a scope exclude each other."""
    for id, scope_id in ((3, 6), (0, 99)):
        with pytest.raises(errors.UnknownRecordingError):
            replayed(client, id, scope_id)
    with pytest.raises(errors.ConfigurationError, match="no counter limits its replay"):
        client.replay(0, scope_id=6, limit_counter_id=1)
    with pytest.raises(errors.ConfigurationError, match="does not fit in 64 bits"):
        client.replay(0, scope_id=1 << 64)


def test_no_ledger_gets_the_id_of_an_imported_recording(client: aerotape.ArchiveClient) -> None:
    """Other ids of the scope are free."""
    with pytest.raises(errors.LedgerExistsError, match="is the id of an imported recording"):
        client.create_ledger(qualified_id=QualifiedId(6, 0))
    client.create_ledger(qualified_id=QualifiedId(6, 1_000)).close()
    client.delete_ledger(QualifiedId(6, 1_000))


def test_own_requests_do_not_touch_replays_of_other_scopes(
    client: aerotape.ArchiveClient, store: Path
) -> None:
    """Stopping all replays of recording 0 stops none of recording 0 of another scope."""
    expected = payloads(open_directory(store).scope(6).recording(0))
    with client.replay(0, scope_id=6) as messages:
        first = bytes(next(messages).payload)
        client.stop_all_replays(0)
        rest = [bytes(message.payload) for message in messages]
    assert [first, *rest] == expected


def test_a_damaged_import_is_left_out_of_a_listing(
    tmp_path: Path, driver: _native.MediaDriver, aeron_dir: Path
) -> None:
    """The archive lists the others, logs the damage, and refuses the replay."""
    store = build(tmp_path / "store", archive_id=OWN)
    done = do_import(store, build(tmp_path / "six", archive_id=6, count=3), 6)
    (done[1].directory / "archive.catalog").write_bytes(b"no catalog")
    with launch(store, aeron_dir), aerotape.connect(aeron_dir=aeron_dir) as client:
        assert [each.recording_id for each in client.list_recordings(scope_id=6)] == [0, 2]
        with pytest.raises(errors.UnknownRecordingError):
            replayed(client, 1, 6)
    logged = open_directory(store).mark_file().errors
    assert any("imported recording not listed" in each.text for each in logged)
    with pytest.raises(errors.CatalogError):
        open_directory(store).scope(6).recordings()


@pytest.mark.jvm
def test_aerons_protocol_has_no_other_scope(tmp_path: Path, aeron_dir: Path) -> None:
    """With the Java archive, its own scope is listed; another one is refused with ILLEGAL_OP
    before anything is sent, so that the archive logs no error."""
    store = build(tmp_path / "archive", archive_id=OWN)
    # The Java archive ignores imported recordings, and leaves them as they are.
    do_import(store, build(tmp_path / "six", archive_id=6), 6)
    imported = tree(store / "00000000")
    shutil.rmtree(aeron_dir, ignore_errors=True)
    properties = {"aeron.archive.id": str(OWN)}
    with (
        JavaArchive(tmp_path / "archive", aeron_dir, properties=properties) as archive,
        archive.connect() as client,
    ):
        assert client.get_archive_id() == OWN != NULL_VALUE
        for scope_id in (None, 0, OWN):
            assert [each.recording_id for each in client.list_recordings(scope_id=scope_id)] == [0]
            assert len(replayed(client, 0, scope_id)) == MESSAGES
        for request in (
            lambda: list(client.list_recordings(scope_id=6)),
            lambda: client.list_recording(0, scope_id=6),
            lambda: client.replay(0, scope_id=6),
            lambda: client.start_replay(0, "aeron:ipc", 5, scope_id=6),
            lambda: client.scopes(),
            lambda: client.create_ledger(),
            lambda: list(client.list_ledgers()),
        ):
            with pytest.raises(
                errors.IllegalOperationError, match="ILLEGAL_OP: the archive speaks only"
            ):
                request()
        assert client.list_recording(0) is not None
    assert open_directory(store).mark_file().errors == []
    assert tree(store / "00000000") == imported
