"""The files of an archive directory in remote storage: S3, HDFS, GCS, Azure, and others.

Object stores are read through obstore, with the methods of fsspec's file systems (`object_store`),
and other storage through fsspec. Either is imported when first needed.

Storage packages raise any exception, often not an OSError. Every exception of such a call counts as
a failure of the storage; these calls stand alone in their blocks.
"""

from __future__ import annotations

import io
import os
import posixpath
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from aerotape.catalog.location import StorageOptions
from aerotape.catalog.remote.object_store import Bucket, OpenedObject
from aerotape.catalog.remote.store_options import OBJECT_STORES
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BUFFER_LENGTH: Final = 1 << 20
_COPY_LENGTH: Final = 8 << 20
_INTEGERS: Final = ("port", "replication", "buffer_size", "default_block_size")
_TRUTH: Final = {"true": True, "false": False}
_HADOOP: Final = ("hdfs", "viewfs")
_HADOOP_NEEDS: Final = (
    " (`pip install hdfs-native`, or set HADOOP_HOME, JAVA_HOME and CLASSPATH for Hadoop's libhdfs)"
)
ADVICE: Final = (
    "are endpoint, region and credentials right? they come from the environment and from storage "
    "options"
)
"""The settings to check after an error of the storage."""


def reach(path: UrlPath, options: StorageOptions) -> tuple[Any, str]:
    """Return the file system of a URL, a `Bucket` or one of fsspec, and the path within it.

    No request is sent to it yet. It can be pickled.

    Raises:
        ConfigurationError: the scheme is not supported, or an option is wrong.
        StorageError: its package connects at once, and fails.
    """
    scheme, _, rest = str(path).partition("://")
    authority, _, within = rest.partition("/")
    if scheme in OBJECT_STORES:
        bucket = Bucket(scheme, authority, options)
        bucket.check()
        return bucket, within
    place = UrlPath(f"{scheme}://{authority}")
    try:
        import fsspec
    except ImportError as error:
        raise ConfigurationError(f"{place}: {not_installed('fsspec', 'remote')}", "path") from error
    # Without a host it is the file system that Hadoop's configuration names.
    host = "" if authority == "default" and scheme in _HADOOP else authority
    url = f"{scheme}://{host}/{within}"
    try:
        kind = fsspec.get_filesystem_class(scheme)
        file_system = kind(**{**kind._get_kwargs_from_urls(url), **_arguments(options)})
        stripped: str = kind._strip_protocol(url)
        if kind.cachable:
            _kept[id(file_system)] = file_system
    except Exception as error:
        reason = one_line(error, options)
        if scheme in _HADOOP and not find_spec("hdfs_native"):
            reason += _HADOOP_NEEDS
        if isinstance(error, (ImportError, TypeError, ValueError)):
            raise ConfigurationError(f"{place}: {reason}", "path") from None
        # Some connect here.
        raise StorageError(f"cannot reach {place}: {reason} ({ADVICE})", place) from None
    if not stripped.endswith(within):
        raise ConfigurationError(f"{path}: names with '#' or ';' do not work with {scheme}", "path")
    return file_system, stripped


# fsspec drops those that it caches in a process that is forked, also before it executes a program.
# That of hdfs-native would wait there, forever, for threads that only its parent has.
_kept: Final[dict[int, Any]] = {}


def _arguments(options: StorageOptions) -> dict[str, Any]:
    """Return options as arguments for fsspec; those with dots make dictionaries of arguments."""
    arguments: dict[str, Any] = {}
    for option, value in options.items:
        *outer, last = option.split(".")
        inner = arguments
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = int(value) if last in _INTEGERS else _TRUTH.get(value.lower(), value)
    return arguments


@contextmanager
def failures(place: UrlPath, options: StorageOptions) -> Iterator[None]:
    """Turn any exception of a storage, but FileNotFoundError, into a StorageError."""
    try:
        yield
    except (AerotapeError, FileNotFoundError):
        raise
    except Exception as error:
        reason = one_line(error, options)
        raise StorageError(f"cannot read {place}: {reason} ({ADVICE})", place) from None


def one_line(error: Exception, options: StorageOptions) -> str:
    """Describe in one line what a storage has raised, without secrets."""
    line = str(error).strip().partition("\n")[0]
    if line and not isinstance(error, (ImportError, OSError, ValueError, NotImplementedError)):
        # Messages of other packages may mean little without the exception's name.
        line = f"{type(error).__name__}: {line}"
    # A message from outside may quote what was sent.
    return options.redacted(line) or type(error).__name__


class ObjectFile(io.RawIOBase):
    """One file; several threads may `read_at` at once, and one may read it as a stream.

    All methods raise FileNotFoundError, when the file is not there, and StorageError.
    """

    def __init__(self, file: Any, place: UrlPath, options: StorageOptions) -> None:
        """Take an object of a bucket, or an opened file of fsspec; and what errors are about."""
        self._file = file
        self._failures = partial(failures, place, options)
        self._lock = threading.Lock()
        self._length: int | None = None
        self._at = 0

    @property
    def length(self) -> int:
        """Bytes in it when it was first asked for."""
        if self._length is None:
            with self._lock, self._failures():
                if isinstance(self._file, OpenedObject):
                    self._length = self._file.size
                else:
                    self._file.seek(0, os.SEEK_END)
                    self._length = int(self._file.tell())
        return self._length

    def read_at(self, offset: int, length: int) -> bytes:
        """Return a positive number of bytes from `offset` on; fewer at the file's end."""
        with self._failures():
            if isinstance(self._file, OpenedObject):  # at once in several threads
                return self._file.read_range(offset, length)
            with self._lock:
                self._file.seek(offset)
                return bytes(self._file.read(length))

    def readall(self) -> bytes:
        """Return the rest, by one request in an object store."""
        with self._lock, self._failures():
            if not isinstance(self._file, OpenedObject):
                self._file.seek(0)
            data = bytes(self._file.read())[self._at :]
        self._at += len(data)
        return data

    def readinto(self, buffer: Buffer) -> int:
        into = memoryview(buffer)
        length = min(len(into), self.length - self._at)
        data = self.read_at(self._at, length) if length > 0 else b""
        into[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = self.length if whence == os.SEEK_END else self._at if whence == os.SEEK_CUR else 0
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Close it; concurrent reads complete. An error loses nothing."""
        super().close()
        with suppress(Exception), self._lock:
            self._file.close()


class ObjectFolder:
    """A folder in remote storage, read only.

    Attributes:
        path: where it is.
        options: storage options.
    """

    def __init__(self, path: UrlPath, options: StorageOptions) -> None:
        """Open the folder; no request is sent to it yet. Raises what `reach` does."""
        self.path = path
        self.options = options
        self._file_system, self._prefix = reach(path, options)

    def list(self) -> dict[str, int]:
        """Return the names of the files in the folder and their lengths in bytes (StorageError)."""
        return {name: info["size"] for name, info in self._infos("", "file")}

    def folders(self, path: str) -> tuple[str, ...]:
        """Return the names of the folders in a folder below this one (StorageError)."""
        return tuple(name for name, _ in self._infos(path, "directory"))

    def _infos(self, path: str, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        inner = self._within(path)
        with self.failures(path), suppress(FileNotFoundError):
            self._file_system.invalidate_cache()
            for info in self._file_system.ls(inner, detail=True):
                # Of a file, it lists that file.
                if info["type"] == kind and info["name"].strip("/") != inner.strip("/"):
                    yield posixpath.basename(info["name"].rstrip("/")), info

    def open(self, name: str) -> ObjectFile:
        """Open a file, without a request in an object store.

        FileNotFoundError when it is not there, here or at the first read; StorageError.
        """
        with self.failures(name):
            return ObjectFile(
                self._file_system.open(self._within(name), "rb"), self.path / name, self.options
            )

    def read(self, name: str) -> bytes:
        """Return all of a small file (FileNotFoundError when it is not there, StorageError)."""
        with self.open(name) as file:
            return file.readall()

    def open_stream(self, name: str) -> BinaryIO:
        """Open a file to be read from front to back in small reads.

        FileNotFoundError when it is not there, StorageError.
        """
        file = self.open(name)
        _ = file.length
        return io.BufferedReader(file, _BUFFER_LENGTH)

    def copy_to(self, descriptor: int, name: str) -> None:
        """Copy a file into an open local one (StorageError)."""
        try:
            with self.open(name) as file:
                for offset in range(0, file.length, _COPY_LENGTH):
                    os.pwrite(descriptor, file.read_at(offset, _COPY_LENGTH), offset)
        except FileNotFoundError:
            path = self.path / name
            raise StorageError(f"cannot read {path}: it is not there", path) from None

    def failures(self, name: str) -> AbstractContextManager[None]:
        """Turn exceptions of the storage about a file into errors that name it."""
        return failures(self.path / name if name else self.path, self.options)

    def _within(self, name: str) -> str:
        return posixpath.join(self._prefix, name) if name not in ("", ".") else self._prefix
