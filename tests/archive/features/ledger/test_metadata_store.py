"""The metadata of ledgers: stored durably, in the order of ids, and immutable where it must be."""

from __future__ import annotations

import os
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from aerotape.archive.features.ledger.entry_lookup import EntryMark
from aerotape.archive.features.ledger.metadata import LedgerMetadata, check_quorums
from aerotape.archive.features.ledger.metadata_rebuild import open_store
from aerotape.archive.features.ledger.metadata_store import (
    FILE_NAME,
    JOURNAL_NAME,
    DamagedMetadataError,
    MetadataStore,
)
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.codecs.generated.ledger_control import DigestType, LedgerState, LedgerType
from aerotape.errors import (
    ConfigurationError,
    LedgerClosedError,
    LedgerExistsError,
    StorageError,
    UnknownLedgerError,
)
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

FIRST = LedgerMetadata(
    QualifiedId(0xF47AC10B58CC4372, 0xA5670E02B2C3D479),
    LedgerType.VD_JOURNAL,
    DigestType.HMAC,
    1_234,
    b"hash",
    3,
    2,
    MemberRecord(
        own="aeron:udp?endpoint=c:1",
        groups=(("aeron:udp?endpoint=c:1", "aeron:udp?endpoint=a:1"),) * 2,
        version=((3, "aeron:udp?endpoint=a:1"), 1),
        promised=(4, "aeron:udp?endpoint=a:1"),
        adopted=(3, "aeron:udp?endpoint=a:1"),
        history=(((3, "aeron:udp?endpoint=a:1"), 64),),
        forgets=True,
        boot="b",
        is_decided=True,
    ),
)


def stored_by(mirrors: int) -> MemberRecord:
    others = (f"aeron:udp?endpoint=a:{each}" for each in range(mirrors))
    return MemberRecord(groups=(("", *others),))


def test_what_is_stored_is_read_back(tmp_path: Path) -> None:
    """All metadata survives closing the database, changes too."""
    store = MetadataStore.create(tmp_path)
    store.add(FIRST)
    store.close()
    store = MetadataStore.open(tmp_path)
    assert store.get(FIRST.ledger) == FIRST
    store.set_recording(FIRST.ledger, 7)
    store.set_closed(FIRST.ledger, EntryMark(4_096, 41, 1_000))
    store.close()
    store = MetadataStore.open(tmp_path)
    assert store.get(FIRST.ledger) == replace(
        FIRST,
        state=LedgerState.CLOSED,
        recording_id=7,
        last_entry_id=41,
        length=1_000,
        end_position=4_096,
    )
    store.remove(FIRST.ledger)
    with pytest.raises(UnknownLedgerError, match="f47ac10b58cc4372a5670e02b2c3d479"):
        store.get(FIRST.ledger)
    store.close()


def test_other_users_cannot_read_it(tmp_path: Path) -> None:
    """As the other files of the archive: it has hashes of passwords."""
    before = os.umask(0)
    try:
        MetadataStore.create(tmp_path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o640


def test_a_file_that_was_removed_is_named(tmp_path: Path) -> None:
    """A change of the database that was removed while it was open reports that."""
    store = MetadataStore.create(tmp_path)
    (tmp_path / FILE_NAME).unlink()
    with pytest.raises(StorageError, match="the file was removed: restart the archive"):
        store.add(FIRST)
    store.close()


def test_an_id_is_used_once(tmp_path: Path) -> None:
    """A second ledger with an id is refused, and the first one stays."""
    store = MetadataStore.create(tmp_path, [FIRST])
    with pytest.raises(LedgerExistsError) as caught:
        store.add(LedgerMetadata(FIRST.ledger))
    assert caught.value.ledger == FIRST.ledger
    assert store.get(FIRST.ledger) == FIRST
    store.close()


def test_a_promise_is_never_lowered(tmp_path: Path) -> None:
    """Nor does anything of a lower epoch change what is stored."""
    store = MetadataStore.create(tmp_path, [FIRST])
    ledger, own = FIRST.ledger, FIRST.member_record.own
    assert store.promise(ledger, (3, "z"), own) == FIRST.member_record
    promised = store.promise(ledger, (5, own), "another")
    assert promised == replace(FIRST.member_record, promised=(5, own))
    with pytest.raises(LedgerClosedError, match="another leader"):
        store.set_member_record(ledger, FIRST.member_record)
    assert store.get(ledger) == replace(FIRST, member_record=promised)
    store.close()


def test_what_may_be_lost_is_noted_for_ledgers_with_mirrors(tmp_path: Path) -> None:
    """The others need no archive to agree with."""
    alone = LedgerMetadata(QualifiedId(0, 1))
    kept = LedgerMetadata(QualifiedId(0, 2), member_record=stored_by(1))
    store = MetadataStore.create(tmp_path, [alone, kept])
    store.forget()
    assert not store.get(alone.ledger).member_record.forgets
    assert store.get(kept.ledger).member_record == replace(kept.member_record, forgets=True)
    store.close()


@pytest.mark.parametrize("column", ["type", "digest_type", "key"])
def test_a_type_never_changes(tmp_path: Path, column: str) -> None:
    """Not even with direct access to the database."""
    MetadataStore.create(tmp_path, [FIRST]).close()
    with (
        sqlite3.connect(tmp_path / FILE_NAME) as connection,
        pytest.raises(sqlite3.IntegrityError, match="never change"),
    ):
        connection.execute(f"UPDATE ledgers SET {column} = 'PD_JOURNAL'")


def test_keys_are_in_the_unsigned_order_of_ids(tmp_path: Path) -> None:
    """Keys are 16 big-endian bytes; a listing has one scope, ascending, page by page."""
    ids = [
        QualifiedId(0, 7),
        QualifiedId(0, (1 << 63) - 1),
        QualifiedId(1, 0),
        QualifiedId(1, 7),
        QualifiedId(1, 1 << 63),
        QualifiedId(1, MAX_UNSIGNED),
        QualifiedId(1 << 63, 7),
        QualifiedId(MAX_UNSIGNED, MAX_UNSIGNED),
    ]
    store = MetadataStore.create(tmp_path, map(LedgerMetadata, reversed(ids)))
    for scope_id in (0, 1, 2, 1 << 63, MAX_UNSIGNED):
        expected = [each for each in ids if each.scope_id == scope_id]
        assert [each.ledger for each in store.list_scope(scope_id, 0, 100)] == expected
    page = store.list_scope(1, 7, 2)
    assert [each.ledger.ledger_id for each in page] == [7, 1 << 63]
    store.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        keys = [key for (key,) in connection.execute("SELECT key FROM ledgers ORDER BY key")]
    assert keys == [each.key for each in sorted(ids)]


@pytest.mark.parametrize("content", [b"", b"not a database", bytes(8192)])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A database that is empty, or none, is an error that names the file."""
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(StorageError, match=FILE_NAME):
        MetadataStore.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "is_damage"), [(b"", True), (b"not a database", True), (None, False)]
)
def test_only_proven_damage_is_damage(
    tmp_path: Path, content: bytes | None, is_damage: bool
) -> None:
    """A file that is not a database is damaged, a database of another version is not."""
    MetadataStore.create(tmp_path).close()
    if content is None:
        with sqlite3.connect(tmp_path / FILE_NAME) as connection:
            connection.execute("PRAGMA user_version=3")
    else:
        (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(StorageError) as caught:
        MetadataStore.open(tmp_path)
    assert isinstance(caught.value, DamagedMetadataError) == is_damage


def test_a_read_error_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the operating system cannot read now is an error, and the file stays."""
    MetadataStore.create(tmp_path, [FIRST]).close()

    def failing(*_: object, **__: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", failing)
        with pytest.raises(StorageError, match="disk I/O error"):
            open_store(tmp_path, create=True)
    store = open_store(tmp_path, create=False)
    assert store is not None
    assert store.get(FIRST.ledger) == FIRST
    store.close()


@pytest.mark.parametrize("name", [FILE_NAME, JOURNAL_NAME])
@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, exists: bool) -> None:
    """A database or journal that is a symbolic link is refused, and what it leads to stays."""
    directory, target = tmp_path / "archive", tmp_path / "target"
    directory.mkdir()
    MetadataStore.create(directory, [FIRST]).close()
    if exists:
        target.write_bytes((directory / FILE_NAME).read_bytes() if name == FILE_NAME else b"mine")
    (directory / name).unlink(missing_ok=True)
    (directory / name).symlink_to(target)
    before = target.read_bytes() if exists else None
    for opening in (MetadataStore.open, MetadataStore.create):
        with pytest.raises(StorageError, match="is a symbolic link"):
            opening(directory)
    assert (target.read_bytes() if target.exists() else None) == before


def test_a_directory_without_access(tmp_path: Path) -> None:
    """A database that cannot be created is an error, and leaves no file."""
    with pytest.raises(StorageError, match="cannot create"):
        MetadataStore.create(tmp_path / "missing")


@pytest.mark.parametrize(
    ("write", "acknowledge", "mirrors", "kind", "text"),
    [
        (0, 0, 0, LedgerType.PD_JOURNAL, "quorum 0"),
        (1, 2, 1, LedgerType.PD_JOURNAL, "ack quorum 2"),
        (3, 2, 1, LedgerType.PD_JOURNAL, "2 archives"),
        (2, 1, 2, LedgerType.VD_JOURNAL, "striped"),
    ],
)
def test_quorums_that_make_no_sense(
    write: int, acknowledge: int, mirrors: int, kind: LedgerType, text: str
) -> None:
    """Quorums beyond the archives, and a striped ledger with volatile durability, are refused."""
    metadata = replace(
        FIRST,
        type=kind,
        write_quorum=write,
        ack_quorum=acknowledge,
        member_record=stored_by(mirrors),
    )
    with pytest.raises(ConfigurationError, match=text):
        check_quorums(metadata)


def test_quorums_that_are_accepted() -> None:
    """A durable ledger may be striped; one with volatile durability uses all archives."""
    three = replace(FIRST, member_record=stored_by(2))
    check_quorums(three)
    check_quorums(replace(three, type=LedgerType.PD_JOURNAL, write_quorum=2))


def test_a_mirror_that_is_named_twice() -> None:
    """It would count twice."""
    member_record = MemberRecord(groups=(("", "aeron:ipc", "aeron:ipc"),))
    with pytest.raises(ConfigurationError, match="mirror aeron:ipc is named twice"):
        check_quorums(replace(FIRST, member_record=member_record))
