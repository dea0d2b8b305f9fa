"""Stores that are opened for reading are never created or changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from support.entity.logged import TOPIC, append, apply, logged
from support.stores.postgresql import PostgresqlServer

from aerotape.entity.records import Pointer
from aerotape.entity.stores import base
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.url import open_store
from aerotape.errors import EntityStoreError

ID = "order-7"
NOBODY = 65_534
Open = Callable[..., str]


def fill(url: str, *numbers: int) -> None:
    """Store events, as a replicator that ends then."""
    with open_store(url, writable=True) as store, store.replicating():
        apply(store, logged([append(ID, number) for number in numbers], 64 * numbers[0]))


def events(store: EntityStore) -> list[int]:
    return [each.seq_nr for each in store.events(TOPIC, ID)]


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@contextmanager
def user(uid: int) -> Iterator[None]:
    """Access files as this user; only for root."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_missing_store_is_refused(store_url: Open) -> None:
    """A namespace that does not exist is refused, also the second time: the first created none."""
    url = store_url()
    for _ in range(2):
        with pytest.raises(EntityStoreError, match=r"check the URL, or start a replicator first"):
            open_store(url)
    fill(url, 1)
    with open_store(url) as store:
        assert events(store) == [1]


def test_a_reader_writes_nothing(store_url: Open) -> None:
    """All methods that write are refused, and change nothing."""
    url = store_url()
    fill(url, 1)
    with open_store(url) as store:
        for write in (
            lambda: store.apply(TOPIC, 0, {}, Pointer(640, 704)),
            lambda: store.load(TOPIC, [], {0: Pointer(640, 704)}),
            lambda: store.try_lock(base.REPLICATOR_LOCK),
            lambda: store.unlock(base.REPLICATOR_LOCK),
            store.renew_lock,
            store.replicating().__enter__,
        ):
            with pytest.raises(EntityStoreError, match="opened for reading"):
                write()
        assert store.pointer(TOPIC, 0) == Pointer(64, 128)
    with open_store(url, writable=True) as store, store.replicating():
        pass


def test_a_reader_during_replication(store_url: Open) -> None:
    """A reader sees what is replicated while it is open, whether replicators come or go."""
    url = store_url()
    fill(url, 1)
    with open_store(url) as early:
        assert events(early) == [1]
        with open_store(url, writable=True) as store, store.replicating(), open_store(url) as late:
            apply(store, logged([append(ID, 2)], 640))
            assert events(early) == events(late) == [1, 2]
            apply(store, logged([append(ID, 3)], 6400))
            assert events(early) == events(late) == [1, 2, 3]
        fill(url, 200)
        assert events(early) == [1, 2, 3, 200]
        fill(url, 201)
        assert events(early) == [1, 2, 3, 200, 201]


def test_files_that_are_not_stores(tmp_path: Path) -> None:
    """A path without a store, and another file, stay as they are."""
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("not a database" * 100)
    before = files(tmp_path)
    for name in ("none.db", "other.db", "empty", "no/folder/x.db", ""):
        with pytest.raises(EntityStoreError, match="has no tables of namespace journal: check"):
            open_store(f"sqlite:{tmp_path / name}")
    with pytest.raises(EntityStoreError, match="file is not a database"):
        open_store(f"sqlite:{tmp_path / 'text'}")
    assert files(tmp_path) == before


def test_reading_leaves_no_files(tmp_path: Path) -> None:
    """A reader of a file that no replicator has open creates no write-ahead log."""
    url = f"sqlite:{tmp_path / 'a ?#%.db'}".replace("?", "")
    fill(url, 1, 2)
    before = files(tmp_path)
    with open_store(url) as store:
        assert events(store) == [1, 2]
        assert files(tmp_path) == before
    assert files(tmp_path) == before


def test_a_file_that_is_replaced_or_removed(tmp_path: Path) -> None:
    """A reader opens another file at the path; without one, it is an error each time."""
    url, copy = f"sqlite:{tmp_path / 'x.db'}", tmp_path / "copy"
    fill(url, 1)
    shutil.copy(tmp_path / "x.db", copy)
    fill(url, 2)
    with open_store(url) as store:
        assert events(store) == [1, 2]
        copy.rename(tmp_path / "x.db")
        assert events(store) == [1]
        (tmp_path / "x.db").unlink()
        for _ in range(2):
            with pytest.raises(EntityStoreError, match="start a replicator first"):
                events(store)


@pytest.mark.root
def test_a_folder_without_write_permission() -> None:
    """A user that may only read the folder reads a closed store, and one that is replicated to."""
    folder = Path(tempfile.mkdtemp(prefix="aerotape-read-only-"))
    url = f"sqlite:{folder / 'x.db'}"
    try:
        fill(url, 1)
        folder.chmod(0o555)
        with user(NOBODY):
            early = open_store(url)
            assert events(early) == [1]
            for name in ("none.db", "no/x.db"):
                with pytest.raises(EntityStoreError, match="start a replicator first"):
                    open_store(f"sqlite:{folder / name}")
        with early, open_store(url, writable=True) as store, store.replicating():
            apply(store, logged([append(ID, 2)], 640))
            with user(NOBODY), open_store(url) as late:
                assert events(early) == events(late) == [1, 2]
        folder.chmod(0o700)
        with user(NOBODY), pytest.raises(EntityStoreError, match="Permission denied"):
            open_store(url)
    finally:
        shutil.rmtree(folder)


def test_a_role_that_may_only_select(postgresql_server: PostgresqlServer) -> None:
    """Reading needs USAGE of the schema and SELECT, and works where transactions are read-only."""
    url = f"{postgresql_server.url}?namespace=readable"
    fill(url, 1, 2)
    with psycopg.connect(postgresql_server.url, autocommit=True) as connection:
        for sql in (
            "CREATE ROLE reader LOGIN",
            "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC",
            "GRANT USAGE ON SCHEMA readable TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA readable TO reader",
        ):
            connection.execute(sql)
    as_reader = url.replace("tests@", "reader@")
    for options in ("", "&options=-c%20default_transaction_read_only=on"):
        with open_store(f"{as_reader}{options}") as store:
            assert events(store) == [1, 2]
            assert store.view(TOPIC, 0, ID)[0] == Pointer(128, 192)
    with pytest.raises(EntityStoreError, match="permission denied"):
        open_store(as_reader, writable=True).close()


def test_a_standby(postgresql_server: PostgresqlServer) -> None:
    """A reader works on a hot standby."""
    url = f"{postgresql_server.url}?namespace=standby"
    fill(url, 1, 2)
    with (
        postgresql_server.standby() as standby,
        open_store(url.replace(postgresql_server.url, standby.url)) as store,
    ):
        assert events(store) == [1, 2]
