"""One job at a time writes to a table.

In a local folder (a mounted one too, where locks work) a job holds an advisory lock on
``_aerotape/lock``; the system drops it when the process ends, however it ends. Object stores and
HDFS have no locks. There a job keeps a file of its own in ``_aerotape/locks`` and puts a younger
one in its place again and again; one that has grown old was left by a job that is gone. Each job
first writes its file and then looks for others, so of two that start together at least one is
refused. Ages are differences between the store's own times: clocks of machines do not matter.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from aerotape.errors import StorageError, TableInUseError
from aerotape.spark.parquet.store import OutputStore

WORK_DIR: Final = "_aerotape"
"""Folder in a table for what readers shall not see; they pass over names with an underscore."""

_LOCK_FILE: Final = f"{WORK_DIR}/lock"
_LEASES_DIR: Final = f"{WORK_DIR}/locks"
_LEASE_NS: Final = 120 * 1_000_000_000
_RENEW_S: Final = 20.0
_LATE_S: Final = 3 * _RENEW_S


class TableLock:
    """What a job holds while it may change a table."""

    def check(self) -> None:
        """Raise TableInUseError when it was lost."""


@contextmanager
def locked(store: OutputStore) -> Iterator[TableLock]:
    """Hold the lock of a table.

    Raises:
        TableInUseError: another job has it.
        StorageError: the table's folder cannot be written.
    """
    with _file_lock(store) if store.is_local else _lease(store) as lock:
        yield lock


def _holder() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _in_use(store: OutputStore, holder: bytes | None, advice: str) -> TableInUseError:
    pid, who = 0, "another job"
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(holder or b"")
        pid = int(found["pid"])
        who = f"another job (process {pid} on {found['host']}, since {found['since']})"
    return TableInUseError(f"{who} is writing to {store.name}: {advice}", store.name, pid)


@contextmanager
def _file_lock(store: OutputStore) -> Iterator[TableLock]:
    path = store.local_path(_LOCK_FILE)
    descriptor = _acquire(store, path)
    try:
        try:
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(_holder()).encode(), 0)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}", path) from error
        yield TableLock()
    finally:
        # Gone before it is free: who waits at the old file finds that it is not the one any more.
        with suppress(OSError):
            path.unlink()
        store.delete_folder_if_empty(WORK_DIR)
        os.close(descriptor)


def _acquire(store: OutputStore, path: Path) -> int:
    while True:
        store.make_folder(WORK_DIR)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:  # the last holder has just cleared up
            continue
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}", path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise _in_use(store, holder, "wait until it ends, or stop it") from None
        except OSError as error:
            os.close(descriptor)
            raise StorageError(f"cannot lock {path}: {error.strerror}", path) from error
        os.close(descriptor)


class _Lease(TableLock):
    """A file in an object store that says: a job is at work.

    It is never written again: a renewal writes another one and then deletes it, so a renewal that
    fails leaves it as it was. Who takes a table over looks once more after having deleted what is
    old; of a renewal and a takeover that meet one sees the other.
    """

    def __init__(self, store: OutputStore) -> None:
        self._store = store
        self._id = uuid.uuid4().hex
        self._tries = 0
        self._name = f"{self._id}-0.json"
        self._data = json.dumps(_holder()).encode()
        self._renewing = threading.Lock()
        self._renewed = time.monotonic()
        self._is_lost = False
        self._ended = threading.Event()
        self._renewal = threading.Thread(target=self._go_on, name="table-lease", daemon=True)

    def acquire(self) -> None:
        self._store.make_folder(_LEASES_DIR)
        self._store.write(self._path, self._data)
        try:
            while old := self._others():
                for name in old:
                    self._store.delete_file(f"{_LEASES_DIR}/{name}")
        except BaseException:
            with suppress(StorageError):
                self._store.delete_file(self._path)
            raise
        self._renewal.start()

    def release(self) -> None:
        self._ended.set()
        self._renewal.join()
        for name in self._store.files(_LEASES_DIR):
            if name.startswith(self._id):
                self._store.delete_file(f"{_LEASES_DIR}/{name}")

    def check(self) -> None:
        with self._renewing:
            # What is done next shall not outlast it.
            if time.monotonic() - self._renewed > _LATE_S:
                self._renew()
            if self._is_lost or not self._store.exists(self._path):
                raise TableInUseError(
                    f"another job took over {self._store.name} while this one was suspended: this "
                    "one commits nothing more",
                    self._store.name,
                )

    def _others(self) -> list[str]:
        """Return the leases of jobs that are gone (TableInUseError when there is another one)."""
        infos = self._store.files(_LEASES_DIR)
        now_ns: Any = infos[self._name].mtime_ns if self._name in infos else None
        others = [name for name in infos if not name.startswith(self._id)]
        for name in others:
            # A storage that does not tell times cannot say that a job is gone, either.
            written_ns = infos[name].mtime_ns
            is_dated = None not in (written_ns, now_ns)
            if not is_dated or written_ns > now_ns - _LEASE_NS:
                holder = self._store.read(f"{_LEASES_DIR}/{name}")
                killed = f"{_LEASE_NS // 10**9} s" if is_dated else f"delete {name} there"
                raise _in_use(
                    self._store, holder, f"wait until it ends; if it was killed, {killed}"
                )
        return others

    @property
    def _path(self) -> str:
        return f"{_LEASES_DIR}/{self._name}"

    def _go_on(self) -> None:
        while not self._ended.wait(_RENEW_S):
            # A store out of reach for a while is the job's to complain about.
            with suppress(StorageError), self._renewing:
                self._renew()

    def _renew(self) -> None:
        """Put a younger file in place of the lease, or find that it was lost (StorageError)."""
        if self._is_lost:
            return
        begun, old = time.monotonic(), self._path
        self._tries += 1
        name = f"{self._id}-{self._tries}.json"
        younger = f"{_LEASES_DIR}/{name}"
        try:
            self._store.write(younger, self._data)
            self._is_lost = not self._store.exists(old)
        except StorageError:
            # It may be there all the same; the lease is the old one.
            with suppress(StorageError):
                self._store.delete_file(younger)
            raise
        if not self._is_lost:
            self._name, self._renewed = name, begun
        # What stays is deleted at the end.
        with suppress(StorageError):
            self._store.delete_file(younger if self._is_lost else old)


@contextmanager
def _lease(store: OutputStore) -> Iterator[TableLock]:
    lease = _Lease(store)
    lease.acquire()
    try:
        yield lease
    finally:
        with suppress(StorageError):
            lease.release()
            store.delete_folder_if_empty(_LEASES_DIR)
            store.delete_folder_if_empty(WORK_DIR)
