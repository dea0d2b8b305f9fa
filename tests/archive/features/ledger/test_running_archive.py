"""Ledgers of an archive that stops, loses its metadata, has users, or a full disk."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders.scoped_store import MESSAGES, build, tree
from support.daemon.archives import serve
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.daemon.recording import wait_until
from support.damage.full_disk_rig import PROPERTIES as SMALL_DISK_PROPERTIES
from support.damage.small_disk import SmallDisk

import aerotape
from aerotape import LedgerError, QualifiedId, StorageError, _native
from aerotape.archive import removal
from aerotape.archive.features.ledger.metadata_store import FILE_NAME, MetadataStore
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.catalog.mark.layout import FILE_NAME as MARK_FILE_NAME
from aerotape.catalog.mark.layout import LOCK_FILE_NAME
from aerotape.client.ledger.requests import await_ledger
from aerotape.codecs.generated.ledger_control import Reach
from aerotape.errors import LedgerClosedError, LedgerFencedError, LedgerPasswordError
from aerotape.replay.offline.directory import open_directory

PROPERTIES = {
    "aeron.archive.segment.file.length": "1m",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.control.channel.enabled": "false",
}


@contextmanager
def running(
    driver: _native.MediaDriver,
    archive_dir: Path,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[aerotape.ArchiveClient]:
    """An archive on a directory, and a client of it."""
    properties = {**PROPERTIES, **(properties or {})}
    with (
        aerotape.Archive.launch(archive_dir, driver.aeron_dir, "external", properties, **options),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
    ):
        yield client


def entries(client: aerotape.ArchiveClient, ledger: QualifiedId) -> list[bytes]:
    """All confirmed entries, without recovery."""
    return [each.payload for each in client.open_ledger_read_only(ledger).read()]


def test_ledgers_survive_restarts(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """Types, entries and states are the same after a restart; an open ledger continues."""
    kinds = ("PD_JOURNAL", "VD_JOURNAL")
    with running(driver, tmp_path) as client:
        writers = [client.create_ledger(kind) for kind in kinds]  # type: ignore[arg-type]
        for writer in writers:
            writer.add_many([b"one", b"two"])
        closed = client.create_ledger("VD_JOURNAL")
        closed.add(b"closed")
        closed.close()
        ids = [writer.qualified_id for writer in writers]
    for added in (b"three", b"four"):
        with running(driver, tmp_path) as client:
            for ledger, kind in zip(ids, kinds, strict=True):
                info = client.ledger_info(ledger)
                assert (info.type, info.state) == (kind, "OPEN")
                writer = client.open_ledger_writer(ledger)
                writer.add(added)
                writer.detach()
            assert entries(client, closed.qualified_id) == [b"closed"]
            with pytest.raises(LedgerClosedError):
                client.open_ledger_writer(closed.qualified_id)
    with running(driver, tmp_path) as client:
        for ledger in ids:
            assert client.open_ledger(ledger).last_add_confirmed == 3
            assert entries(client, ledger) == [b"one", b"two", b"three", b"four"]


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "truncated", "other-table"])
def test_metadata_is_rebuilt(driver: _native.MediaDriver, tmp_path: Path, damage: str) -> None:
    """Without its database an archive knows its ledgers from their recordings and entries.

    The error log says so; a closed ledger stays closed. One that had a password is not opened.
    """
    known: dict[QualifiedId, tuple[str, str]] = {}
    lost: list[QualifiedId] = []
    with running(driver, tmp_path) as client:
        for scope_id in (0, 5):
            for digest in ("CRC32", "CRC32C", "HMAC", "DUMMY"):
                kind = "VD_JOURNAL" if digest == "CRC32" else "PD_JOURNAL"
                ledger = QualifiedId(scope_id, len(known) + 1)
                writer = client.create_ledger(
                    kind,  # type: ignore[arg-type]
                    ledger,
                    digest_type=digest,
                    password=b"secret" if digest == "HMAC" else b"",
                )
                writer.add_many([b"first", b"second"])
                writer.close() if scope_id else writer.detach()
                known[ledger] = (kind, digest)
        deleted = client.create_ledger()
        deleted.add(b"x")
        deleted.close()
        client.delete_ledger(deleted.qualified_id)
    path = tmp_path / FILE_NAME
    if damage == "missing":
        path.unlink()
    elif damage == "other-table":
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x)")
    else:
        content = {"empty": b"", "garbage": bytes(range(256)) * 64}
        path.write_bytes(content.get(damage) or path.read_bytes()[:5_000])
    with running(driver, tmp_path) as client:
        for ledger, expected in known.items():
            info = client.ledger_info(ledger)
            assert (info.type, info.digest_type) == expected
            assert (info.is_closed, info.last_add_confirmed) == (ledger.scope_id == 5, 1)
            assert info.length == len(b"firstsecond")
            if info.digest_type != "HMAC":
                reader = client.open_ledger(ledger, b"any")
                assert [each.payload for each in reader.read()] == [b"first", b"second"]
                continue
            for opening in (client.open_ledger, client.open_ledger_writer):
                for password in (b"secret", b""):
                    with pytest.raises(LedgerPasswordError, match="was lost with the ledgers' met"):
                        opening(ledger, password)
            for password in (b"secret", b""):
                with pytest.raises(LedgerPasswordError):
                    client.open_ledger_read_only(ledger, password)
            client.delete_ledger(ledger)
            with pytest.raises(aerotape.errors.UnknownLedgerError):
                client.ledger_info(ledger)
            lost.append(ledger)
        assert [info.id for info in client.list_ledgers(5)] == [
            each for each in known if each.scope_id == 5 and each not in lost
        ]
        with pytest.raises(aerotape.errors.LedgerClosedError):
            client.open_ledger_writer(ledger)
        with pytest.raises(aerotape.errors.UnknownLedgerError):
            client.ledger_info(deleted.qualified_id)
    texts = [each.text for each in open_directory(tmp_path).mark_file().errors]
    assert any("rebuilt from the recordings of 8 ledgers, 4 of them open" in each for each in texts)
    assert any("it is renamed to" in each for each in texts) == (damage != "missing")
    aside = list(tmp_path.glob(f"{FILE_NAME}.damaged-*"))
    assert len(aside) == (damage != "missing")


def test_metadata_that_was_put_back(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """A ledger that was closed since stays closed; those created since are added if it is said.

    Deleted ones stay deleted.
    """
    with running(driver, tmp_path) as client:
        for ledger in (1, 2, 3):
            client.create_ledger("VD_JOURNAL", ledger).add(b"before")
    older = (tmp_path / FILE_NAME).read_bytes()
    with running(driver, tmp_path) as client:
        for ledger in (1, 2):
            writer = client.open_ledger_writer(ledger)
            writer.add(b"after")
            writer.close() if ledger == 1 else writer.detach()
        client.delete_ledger(3)
        client.create_ledger(qualified_id=4).add(b"created")
        with client.create_ledger(qualified_id=5) as created:
            created.add(b"created, closed")
    (tmp_path / FILE_NAME).write_bytes(older)
    with running(driver, tmp_path) as client:
        states = {each.id.ledger_id: each.state for each in client.list_ledgers()}
        assert states == {1: "CLOSED", 2: "OPEN"}
        with pytest.raises(LedgerClosedError):
            client.open_ledger_writer(1)
        for ledger in (1, 2):
            assert entries(client, QualifiedId(0, ledger)) == [b"before", b"after"]
    texts = [each.text for each in open_directory(tmp_path).mark_file().errors]
    assert any("is closed, as its recording 0 says" in each for each in texts)
    properties = {"aerotape.ledgers.restored": "true"}
    with running(driver, tmp_path, properties) as client:
        states = {each.id.ledger_id: each.state for each in client.list_ledgers()}
        assert states == {1: "CLOSED", 2: "OPEN", 4: "OPEN", 5: "CLOSED"}
        assert entries(client, QualifiedId(0, 4)) == [b"created"]
        assert client.open_ledger_writer(4).add(b"continues") == 1
        assert entries(client, QualifiedId(0, 5)) == [b"created, closed"]
    texts = [each.text for each in open_directory(tmp_path).mark_file().errors]
    assert any("2 ledgers are not listed in ledgers.sqlite" in each for each in texts)


def test_metadata_in_use_is_not_damaged(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """While another process has the database locked requests fail; then all is as before."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(password=b"secret")
        writer.add(b"entry")
        writer.close()
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with running(driver, tmp_path) as client:
        with pytest.raises(aerotape.ArchiveError, match="locked"):
            client.ledger_info(writer.qualified_id)
        with pytest.raises(aerotape.ArchiveError, match="is that of ledger"):
            client.purge_recording(writer._info.recording_id)
        other.close()
        with pytest.raises(LedgerPasswordError):
            client.open_ledger(writer.qualified_id, b"wrong")
        with client.open_ledger(writer.qualified_id, b"secret") as reader:
            assert [each.payload for each in reader.read()] == [b"entry"]
    assert not list(tmp_path.glob(f"{FILE_NAME}.*"))


@pytest.mark.parametrize("others", [[], [8]], ids=["compacted", "not compacted"])
def test_a_deletion_that_was_interrupted(
    driver: _native.MediaDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: list[int],
) -> None:
    """A ledger whose recording is purged, but whose row was not removed, is gone after a restart.

    It can be deleted again before. Other ledgers stay, also when the catalog is compacted.
    """

    def fails(*_: object) -> None:
        raise StorageError(f"cannot write {tmp_path}: database or disk is full", tmp_path)

    with running(driver, tmp_path) as client:
        for ledger in (6, 7, *others):
            with client.create_ledger(qualified_id=ledger) as writer:
                writer.add(b"entry")
        with monkeypatch.context() as patch:
            patch.setattr(MetadataStore, "remove", fails)
            for ledger in (6, 7):
                with pytest.raises(aerotape.ArchiveError, match="disk is full"):
                    client.delete_ledger(ledger)
        client.delete_ledger(6)
        assert [info.id.ledger_id for info in client.list_ledgers()] == [7, *others]
    with running(driver, tmp_path) as client:
        assert [info.id.ledger_id for info in client.list_ledgers()] == others
        for ledger in others:
            assert entries(client, QualifiedId(0, ledger)) == [b"entry"]
    assert len(list(tmp_path.glob("*.rec"))) == len(others)


def test_a_deletion_shows_on_storage_before_files_are_gone(
    driver: _native.MediaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut in between leaves no ledger without files."""
    order: list[str] = []

    def force(archive_dir: Path) -> None:
        files = list(archive_dir.glob("0-*.rec"))
        order.append("forced with files" if files else "forced without files")

    monkeypatch.setattr(removal, "force_catalog", force)
    with running(driver, tmp_path) as client:
        with client.create_ledger(qualified_id=6) as writer:
            writer.add(b"entry")
        client.delete_ledger(6)
        await_true(lambda: not list(tmp_path.glob("0-*.rec")))
    assert order == ["forced with files"]


def test_an_archive_without_ledgers(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """Requests for ledgers and scopes that are not there leave all bytes as they are."""
    directory = build(tmp_path / "archive", archive_id=5, count=2)
    before = tree(directory)
    with running(driver, directory) as client:
        assert list(client.list_ledgers()) == []
        assert list(client.list_recordings(scope_id=7)) == []
        for request in (client.ledger_info, client.sync_ledger, client.open_ledger):
            with pytest.raises(aerotape.errors.UnknownLedgerError):
                request(7)
        with client.replay(0, scope_id=0) as messages:
            assert len(list(messages)) == MESSAGES
        while_running = tree(directory)
    for after in (while_running, tree(directory)):
        # What every archive writes when it starts.
        after.pop(LOCK_FILE_NAME, None)
        after[MARK_FILE_NAME] = before[MARK_FILE_NAME]
        assert after == before


def record_plain(client: aerotape.ArchiveClient, *, beside_ledger: bool) -> None:
    """Make recording 0, always the same one, and perhaps a ledger meanwhile."""
    channel = "aeron:ipc?session-id=7|init-term-id=3|term-id=3|term-offset=0|term-length=64k"
    client.start_recording(channel, 77)
    publication = client.aeron.add_publication(channel, 77)
    publication.wait_connected()
    wait_until(lambda: list(client.list_recordings()) != [], "the recording's start")
    if beside_ledger:
        with client.create_ledger() as writer:
            writer.add(b"entry")
    end = [publication.send(b"%d" % index * 50) for index in range(100)][-1]
    wait_until(lambda: client.max_recorded_position(0) == end, "the recording")
    client.stop_recording(channel, 77)
    publication.close()
    wait_until(lambda: client.stop_position(0) == end, "the recording's end")


def test_plain_recordings_have_nothing_of_ledgers() -> None:
    """Beside a ledger, a recording has the same bytes as in an archive without ledgers."""
    trees, descriptors = [], []
    for beside_ledger in (False, True):
        with serve("aerotape") as served, served.connect() as client:
            record_plain(client, beside_ledger=beside_ledger)
            descriptor = open_directory(served.archive_dir).recording(0).descriptor
            descriptors.append(replace(descriptor, start_timestamp_ms=0, stop_timestamp_ms=0))
            trees.append(tree(served.archive_dir))
    plain, beside = trees
    assert descriptors[0] == descriptors[1]
    assert plain["0-0.rec"] == beside["0-0.rec"]
    assert set(plain) == {
        "0-0.rec", "aerotape-0.time-index", "archive.catalog", MARK_FILE_NAME, LOCK_FILE_NAME,
    }  # fmt: skip
    assert set(beside) - set(plain) == {"1-0.rec", "aerotape-1.time-index", FILE_NAME}


def test_a_lost_recording(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """A ledger without its recording is an error that names both; it can be deleted."""
    with running(driver, tmp_path) as client:
        with client.create_ledger() as writer:
            writer.add(b"x")
        opened = client.create_ledger()
        opened.detach()
        ledger, other = writer.qualified_id, opened.qualified_id
    metadata = (tmp_path / FILE_NAME).read_bytes()
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    (tmp_path / FILE_NAME).write_bytes(metadata)
    with running(driver, tmp_path) as client:
        for lost in (ledger, other):
            with pytest.raises(aerotape.ArchiveError, match="recording"):
                list(client.open_ledger(lost).read())
            client.delete_ledger(lost)
        assert list(client.list_ledgers(ledger.scope_id)) == []


def test_roles(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """A reader may read, a recorder also write; only an administrator deletes."""
    users = tmp_path / "users"
    for role in Role:
        put_user(users, make_user(role.value, role, b"secret", 5_000))
    with aerotape.Archive.launch(
        tmp_path / "archive", driver.aeron_dir, "external", PROPERTIES, users_file=users
    ):

        def client(role: str) -> aerotape.ArchiveClient:
            return aerotape.connect(
                aeron_dir=driver.aeron_dir, credentials=aerotape.UserSecret(role, b"secret")
            )

        with client("read") as reader, client("record") as recorder, client("admin") as admin:
            refused: list[Callable[[], object]] = [
                lambda: reader.declare_ledger(),
                lambda: reader.open_ledger(7),
                lambda: reader.open_ledger_writer(7),
                lambda: reader.sync_ledger(7),
                lambda: reader.delete_ledger(7),
                lambda: recorder.delete_ledger(7),
            ]
            writer = recorder.create_ledger(qualified_id=7)
            writer.add(b"entry")
            writer.detach()
            for request in refused:
                with pytest.raises(aerotape.errors.UnauthorisedError):
                    request()
            assert entries(reader, QualifiedId(0, 7)) == [b"entry"]
            assert [info.id.ledger_id for info in reader.list_ledgers()] == [7]
            assert len(reader.scopes()) == 1
            assert list(reader.list_recordings(scope_id=9)) == []
            with pytest.raises(aerotape.errors.UnknownRecordingError):
                reader.start_replay(0, "aeron:ipc", 5, scope_id=9)
            assert recorder.open_ledger(7).is_closed
            admin.delete_ledger(7)


class ReadsOnly:
    """An authorisation service that knows Aeron's protocol only."""

    def is_authorised(self, protocol_id: int, action_id: int, _: object, __: bytes, /) -> bool:
        return protocol_id == 101


def test_an_authorisation_service(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """Requests for ledgers are of another protocol, which the service may refuse."""
    with running(driver, tmp_path, authorisation_service=ReadsOnly()) as client:
        assert list(client.list_recordings()) == []
        with pytest.raises(aerotape.errors.UnauthorisedError, match="action: create ledger"):
            client.create_ledger()
        with pytest.raises(aerotape.errors.UnauthorisedError):
            list(client.list_ledgers())
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.root
@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_a_full_disk(disk: SmallDisk, aeron_dir: Path, kind: str) -> None:
    """An add that finds no space fails that ledger alone; what was acknowledged stays."""
    archive = AerotapeArchive(disk.path / "archive", aeron_dir, properties=SMALL_DISK_PROPERTIES)
    with archive, aerotape.connect(aeron_dir=aeron_dir) as client:
        other = client.create_ledger(kind, channel="aeron:ipc?term-length=64k")  # type: ignore[arg-type]
        other.add_many([b"%1000d" % index for index in range(10)])
        writer = client.create_ledger(kind, channel="aeron:ipc?term-length=64k")  # type: ignore[arg-type]
        acknowledged = [writer.add(b"%1000d" % index) for index in range(10)]
        disk.fill(leave_bytes=300 << 10)
        with pytest.raises(LedgerError, match="No space left on device"):
            while True:
                acknowledged.append(writer.add(b"%1000d" % len(acknowledged)))
        with pytest.raises(LedgerError, match="No space left on device"):
            writer.add(b"again")
        writer.close()
        assert other.add(b"continues") == 10
        disk.clear()
        for index in range(11, 40):
            assert other.add(b"%1000d" % index) == index
        assert other.sync() == 39
        with client.open_ledger(writer.qualified_id) as reader:
            found = [int(each.payload) for each in reader.read()]
        assert found == list(range(len(found)))
        assert len(acknowledged) <= len(found)
        other.close()
        assert client.ledger_info(other.qualified_id).last_add_confirmed == 39


def test_a_killed_archive(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """A writer of an archive that is killed fails; the ledger continues after the restart."""
    aeron_dir = Path(driver.aeron_dir)
    archive = AerotapeArchive(tmp_path, aeron_dir, driver="external", properties=PROPERTIES)
    with archive, aerotape.connect(aeron_dir=aeron_dir, timeout_ns=2_000_000_000) as client:
        writer = client.create_ledger("VD_JOURNAL")
        writer.add_many([b"one", b"two"])
        archive.kill()
        with pytest.raises(aerotape.AerotapeError):
            while True:
                writer.add(b"lost")
    age_mark_file(tmp_path)
    with running(driver, tmp_path) as client:
        info = client.ledger_info(writer.qualified_id)
        assert (info.state, info.has_writer) == ("OPEN", False)
        found = client.open_ledger(writer.qualified_id)
        payloads = [each.payload for each in found.read()]
        assert payloads[:2] == [b"one", b"two"]
        assert set(payloads[2:]) <= {b"lost"}


def after_a_power_cut(archive_dir: Path, ledger: QualifiedId, position: int) -> None:
    """Note that a ledger was on storage up to a position, in an earlier run of the machine."""
    with sqlite3.connect(archive_dir / FILE_NAME) as connection:
        connection.execute(
            "UPDATE forced SET position = ?, boot = 'earlier' WHERE key = ?", (position, ledger.key)
        )
    connection.close()


def overwrite(path: Path, payload: bytes) -> None:
    """Replace a payload in a segment file by zeros."""
    content = bytearray(path.read_bytes())
    at = content.index(payload)
    content[at : at + len(payload)] = bytes(len(payload))
    path.write_bytes(content)


@pytest.mark.parametrize(("number", "is_power_cut"), [(9, True), (9, False), (7, True), (2, True)])
def test_an_entry_that_lost_its_pages(
    driver: _native.MediaDriver, tmp_path: Path, number: int, is_power_cut: bool
) -> None:
    """After a power cut a ledger ends before last entries that are not whole and were not synced.

    Its state shows that, and a writer cuts it. Any other damage stays, and is reported.
    """
    with running(driver, tmp_path) as client:
        writer = client.create_ledger("VD_JOURNAL")
        for index in range(10):
            writer.add(b"%d" % index * 200)
            if index == 5:
                writer.sync()
                synced = client.ledger_info(writer.qualified_id).confirmed_position
        ledger, recording_id = writer.qualified_id, writer._info.recording_id
        writer.detach()
        end = client.ledger_info(ledger).recorded_position
    overwrite(tmp_path / f"{recording_id}-0.rec", b"%d" % number * 200)
    if is_power_cut:
        after_a_power_cut(tmp_path, ledger, synced)
    with running(driver, tmp_path) as client:
        if number == 9 and is_power_cut:
            info = client.ledger_info(ledger)
            assert (info.last_add_confirmed, info.last_add_pushed) == (8, 8)
            recording = client.list_recording(recording_id)
            assert recording is not None
            assert recording.stop_position == end, "nothing is cut for a question"
            with client.open_ledger_writer(ledger) as again:
                assert again.add(b"again") == 9
            assert entries(client, ledger) == [b"%d" % i * 200 for i in range(9)] + [b"again"]
        else:
            reader = client.open_ledger(ledger)
            assert reader.last_add_confirmed == 9
            with pytest.raises(aerotape.errors.EntryDigestError, match=f"entry {number}"):
                list(reader.read())
            assert len(list(reader.read(number + 1))) == 9 - number


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
@pytest.mark.parametrize("number", [100, 199])
def test_a_flipped_bit_in_a_batch(
    driver: _native.MediaDriver, tmp_path: Path, kind: Any, number: int
) -> None:
    """Although its entries carry nothing of each other, all stay, also after a power cut."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(kind)
        writer.add_many([b"%04d" % index * 50 for index in range(200)])
        assert writer.sync() == 199
        ledger, recording_id = writer.qualified_id, writer._info.recording_id
        writer.detach()
        end = client.ledger_info(ledger).recorded_position
    overwrite(tmp_path / f"{recording_id}-0.rec", b"%04d" % number * 50)
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        stored = connection.execute("SELECT position FROM forced").fetchall()
    connection.close()
    assert stored == [(end,)]
    after_a_power_cut(tmp_path, ledger, end)
    with running(driver, tmp_path) as client:
        assert client.ledger_info(ledger).last_add_confirmed == 199
        reader = client.open_ledger_read_only(ledger)
        with pytest.raises(aerotape.errors.EntryDigestError, match=f"entry {number}"):
            list(reader.read())
        assert len(list(reader.read(number + 1))) == 199 - number
        with client.open_ledger_writer(ledger) as again:
            assert again.add(b"again") == 200


def test_a_deleted_ledger_stays_deleted_in_a_rebuild(
    driver: _native.MediaDriver, tmp_path: Path
) -> None:
    """Its recording is purged, so that nothing shows it any more."""
    with running(driver, tmp_path) as client:
        for ledger in (6, 7):
            with client.create_ledger(qualified_id=ledger) as writer:
                writer.add(b"entry")
        client.delete_ledger(6)
    (tmp_path / FILE_NAME).unlink()
    with running(driver, tmp_path) as client:
        assert [info.id.ledger_id for info in client.list_ledgers()] == [7]


def test_a_wait_of_a_writer_that_has_ended(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """It is refused at any position: another writer's entries may be in the place of its own."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(qualified_id=6)
        writer.add(b"entry")
        ledger, attach_id = writer.qualified_id, writer._writing._correlation_id

        def wait(attach_id: int) -> int:
            return client._run(await_ledger(ledger, 0, Reach.CONFIRMED, 0, attach_id))

        assert wait(attach_id) > 0
        with pytest.raises(LedgerFencedError):
            wait(attach_id + 1)
        writer.detach()
        with pytest.raises(LedgerFencedError):
            wait(attach_id)
        with client.open_ledger_writer(ledger) as second:
            second.add(b"another")
            with pytest.raises(LedgerFencedError):
                wait(attach_id)
