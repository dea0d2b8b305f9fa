"""The lock of a table: one job at a time writes to it.

In a local folder, or a mounted one with locks, a job holds an advisory lock on ``_aerotape/lock``,
which the system releases when the process ends. Object stores and HDFS have no locks. There a job
writes a lease, a file in ``_aerotape/locks``, and replaces it regularly; an old one is of a job
that was killed. Each job first writes its lease and then lists others, so of two that start
together at least one is refused. Ages are differences between the store's times, not those of
machines.
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
"""Folder in a table that readers ignore, as all names with an underscore."""

_LOCK_FILE: Final = f"{WORK_DIR}/lock"
_LEASES_DIR: Final = f"{WORK_DIR}/locks"
_LEASE_NS: Final = 120 * 1_000_000_000
_RENEW_S: Final = 20.0
_LATE_S: Final = 3 * _RENEW_S


class TableLock:
    """The lock that a job holds while it changes a table."""

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
        # Deleted before it is released: `_acquire` detects that it has locked a deleted file.
        with suppress(OSError):
            path.unlink()
        store.delete_folder_if_empty(WORK_DIR)
        os.close(descriptor)


def _acquire(store: OutputStore, path: Path) -> int:
    while True:
        store.make_folder(WORK_DIR)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:  # the last holder has just deleted it
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
    """A lease: a file in an object store that is renewed while a job runs.

    A renewal writes another file and then deletes the old one, so a renewal that fails leaves the
    lease valid. A job that takes a table over lists leases again after it has deleted old ones, so
    of a concurrent renewal and takeover one detects the other.
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
        self._renewal = threading.Thread(target=self._keep_alive, name="table-lease", daemon=True)

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
            # The next commit must not last longer than the lease.
            if time.monotonic() - self._renewed > _LATE_S:
                self._renew()
            if self._is_lost or not self._store.exists(self._path):
                raise TableInUseError(
                    f"another job took over {self._store.name} while this one was suspended: this "
                    "one commits nothing more",
                    self._store.name,
                )

    def _others(self) -> list[str]:
        """Return expired leases of other jobs (TableInUseError when one has not expired)."""
        infos = self._store.files(_LEASES_DIR)
        now_ns: Any = infos[self._name].mtime_ns if self._name in infos else None
        others = [name for name in infos if not name.startswith(self._id)]
        for name in others:
            # Without times a lease does not expire.
            written_ns = infos[name].mtime_ns
            is_dated = None not in (written_ns, now_ns)
            if not is_dated or written_ns > now_ns - _LEASE_NS:
                holder = self._store.read(f"{_LEASES_DIR}/{name}")
                killed = f"wait {_LEASE_NS // 10**9} s" if is_dated else f"delete {name} there"
                raise _in_use(
                    self._store, holder, f"wait until it ends; if it was killed, {killed}"
                )
        return others

    @property
    def _path(self) -> str:
        return f"{_LEASES_DIR}/{self._name}"

    def _keep_alive(self) -> None:
        while not self._ended.wait(_RENEW_S):
            # `check` raises if the lease could not be renewed for too long.
            with suppress(StorageError), self._renewing:
                self._renew()

    def _renew(self) -> None:
        """Replace the lease by a new file, or detect that it was lost (StorageError)."""
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
            # It may exist nevertheless; the old lease is still valid.
            with suppress(StorageError):
                self._store.delete_file(younger)
            raise
        if not self._is_lost:
            self._name, self._renewed = name, begun
        # A file that remains is deleted by `release`.
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
