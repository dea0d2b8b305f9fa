"""The files of an archive directory in a storage elsewhere: S3, HDFS, GCS, Azure, and others.

They are reached through Arrow's file systems, which read without the interpreter lock and know the
usual places for credentials (environment, profiles, instance roles). For schemes that Arrow does
not know there is fsspec. Either is imported when first needed.

Packages of storages raise what they like, often nothing that is an OSError. Whatever comes out of a
call of theirs is a failure of the storage here; such calls stand alone in their blocks.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from aerotape.catalog.location import StorageOptions
from aerotape.errors import ConfigurationError, StorageError
from aerotape.text import not_installed
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import fs
    from typing_extensions import Buffer

_S3: Final = ("s3", "s3a", "s3n")
_GCS: Final = ("gs", "gcs")
_AZURE: Final = ("abfs", "abfss")
_HADOOP: Final = ("hdfs", "viewfs")
_DEFAULT_HDFS_PORT: Final = "8020"
_BUFFER_LENGTH: Final = 1 << 20
_COPY_LENGTH: Final = 8 << 20
_VARIABLES: Final = ("AWS_", "GOOGLE_", "AZURE_", "HADOOP_")
ADVICE: Final = (
    "are endpoint, region and credentials right? they come from the environment and from storage "
    "options"
)
"""What to look at when a storage fails."""
_HADOOP_NEEDS: Final = (
    " (Arrow's HadoopFileSystem needs Hadoop's libhdfs and Java: are HADOOP_HOME, JAVA_HOME and "
    "CLASSPATH set? or do without: `pip install hdfs-native`)"
)


class ObjectFile:
    """One opened file; several threads may read from it at once."""

    def __init__(self, folder: ObjectFolder, name: str, file: pyarrow.NativeFile) -> None:
        self._folder = folder
        self._name = name
        self._file = file

    @property
    def length(self) -> int:
        """Bytes in it (StorageError)."""
        with self._folder.failures(self._name):
            return int(self._file.size())

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; fewer at the file's end (StorageError)."""
        with self._folder.failures(self._name):
            data: bytes = self._file.read_at(length, offset)
            return data

    def close(self) -> None:
        """Close it. What is being read meanwhile is read to its end."""
        # There is nothing left to be lost.
        with suppress(Exception):
            self._file.close()


class _RawFile(io.RawIOBase):
    """An opened file with a place to read on from."""

    def __init__(self, file: ObjectFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = self._at if whence == os.SEEK_CUR else 0
        self._at = (self._file.length if whence == os.SEEK_END else base) + offset
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        into = memoryview(buffer)
        data = self._file.read(self._at, len(into))
        into[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def reach(path: UrlPath, options: StorageOptions) -> tuple[fs.FileSystem, str]:
    """Return the file system that a URL is in, and the path by which that knows it.

    No request is sent yet.

    Raises:
        ConfigurationError: there is no way to such a storage, or an option cannot be.
        StorageError: its package connects at once, and cannot.
    """
    scheme, _, rest = str(path).partition("://")
    authority = rest.partition("/")[0]
    # Where credentials come from the environment, others there mean another file system.
    environment = tuple(item for item in os.environ.items() if item[0].startswith(_VARIABLES))
    return _file_system(scheme, authority, options, environment), _path_within(scheme, rest)


class ObjectFolder:
    """A folder in a storage elsewhere, read only.

    Attributes:
        path: where it is.
        options: how it is reached.
    """

    def __init__(self, path: UrlPath, options: StorageOptions) -> None:
        """Open the folder; no request is sent yet. Raises what `reach` does."""
        self.path = path
        self.options = options
        self._file_system, self._prefix = reach(path, options)

    def list(self) -> dict[str, int]:
        """Return the names of the files in the folder and their lengths in bytes (StorageError)."""
        from pyarrow import fs

        selector = fs.FileSelector(self._prefix, allow_not_found=True)
        with self.failures(""):
            found = self._file_system.get_file_info(selector)
        return {
            PurePosixPath(info.path).name: info.size
            for info in found
            if info.type == fs.FileType.File
        }

    def open(self, name: str) -> ObjectFile:
        """Open a file (FileNotFoundError when it is not there, StorageError)."""
        path = f"{self._prefix}/{name}"
        try:
            file = self._file_system.open_input_file(path)
        except FileNotFoundError:
            if str(self._file_system.type_name).startswith("py::"):
                # In fsspec that may be any failure to look for it; asked for that, it says which.
                with self.failures(name):
                    self._file_system.get_file_info(path)
            raise
        except Exception as error:
            raise self._failure(name, error) from None
        return ObjectFile(self, name, file)

    def read(self, name: str) -> bytes:
        """Return all of a small file (FileNotFoundError when it is not there, StorageError)."""
        file = self.open(name)
        try:
            return file.read(0, file.length)
        finally:
            file.close()

    def open_stream(self, name: str) -> BinaryIO:
        """Open a file to be read from front to back in small reads.

        FileNotFoundError when it is not there, StorageError.
        """
        return io.BufferedReader(_RawFile(self.open(name)), _BUFFER_LENGTH)

    def copy_to(self, descriptor: int, name: str) -> None:
        """Copy a file into an open one of this machine (StorageError)."""
        try:
            file = self.open(name)
        except FileNotFoundError:
            path = self.path / name
            raise StorageError(f"cannot read {path}: it is not there", path) from None
        offset = 0
        while data := file.read(offset, _COPY_LENGTH):
            os.pwrite(descriptor, data, offset)
            offset += len(data)
        file.close()

    @contextmanager
    def failures(self, name: str) -> Iterator[None]:
        """Turn whatever a file system raises into StorageError."""
        try:
            yield
        except Exception as error:
            raise self._failure(name, error) from None

    def _failure(self, name: str, error: Exception) -> StorageError:
        place = self.path / name if name else self.path
        return StorageError(f"cannot read {place}: {told(error, self.options)} ({ADVICE})", place)


def told(error: Exception, options: StorageOptions) -> str:
    """Say in one line what a file system has raised, without what shall not be shown."""
    line = str(error).strip().partition("\n")[0]
    if line and not isinstance(error, (OSError, ValueError, NotImplementedError)):
        # Others than Arrow's and Python's own may say little without their names.
        line = f"{type(error).__name__}: {line}"
    # A message from outside may quote what was sent.
    return options.redacted(line) or type(error).__name__


@lru_cache(maxsize=32)
def _file_system(
    scheme: str, authority: str, options: StorageOptions, environment: tuple[tuple[str, str], ...]
) -> fs.FileSystem:
    """Return the file system of a storage; one for a process, since each has connections."""
    try:
        from pyarrow import fs
    except ImportError as error:
        raise ConfigurationError(f"{scheme}: {not_installed('pyarrow', 'spark')}") from error
    given: dict[str, Any] = dict(options.items)
    if scheme in _S3:
        _find_s3(fs, authority, given)
        name = "S3FileSystem"
    elif scheme in _GCS:
        name = "GcsFileSystem"
    elif scheme in _AZURE:
        # abfs://container@account.dfs.core.windows.net/path
        given.setdefault("account_name", authority.rpartition("@")[2].partition(".")[0])
        name = "AzureFileSystem"
    elif scheme in _HADOOP:
        host, _, port = authority.partition(":")
        given["host"] = host if host == "default" else f"{scheme}://{host}"
        given.setdefault("port", port or ("0" if host == "default" else _DEFAULT_HDFS_PORT))
        name = "HadoopFileSystem"
    else:
        return _fsspec(f"{scheme}://{authority}", given, options)
    make = _maker(fs, name)
    arguments = {option: _value(option, value) for option, value in given.items()}
    try:
        return make(**arguments)
    except TypeError as error:
        # It names the argument, which is all that can be wrong here.
        reason = str(error).replace(f"{name}.__init__() ", "")
        raise ConfigurationError(
            f"storage options are the arguments of pyarrow's {name}: {reason}", "storage"
        ) from None
    except Exception as error:
        if scheme in _HADOOP and find_spec("hdfs_native"):
            # It speaks HDFS without Hadoop's library and Java, as a file system of fsspec.
            return _fsspec(f"{scheme}://{authority}", dict(options.items), options)
        needs = _HADOOP_NEEDS if scheme in _HADOOP else ""
        raise ConfigurationError(
            f"{scheme}://{authority}: {told(error, options)}{needs}", "path"
        ) from None


def _find_s3(fs: Any, bucket: str, given: dict[str, Any]) -> None:
    """Say which server or region has a bucket; what nothing tells, AWS is asked for."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        # Arrow itself looks at them for URLs only, not where it is given anything else.
        if os.environ.get(name):
            given.setdefault("endpoint_override", os.environ[name])
    told = "region" in given or "endpoint_override" in given
    if told or "AWS_REGION" in os.environ or "AWS_DEFAULT_REGION" in os.environ:
        return
    # Where AWS does not know the bucket, the first request says so better.
    with suppress(Exception):
        given["region"] = fs.resolve_s3_region(bucket)


def _maker(fs: Any, name: str) -> Callable[..., fs.FileSystem]:
    make: Callable[..., fs.FileSystem]
    try:
        make = getattr(fs, name)
    except (ImportError, AttributeError):
        raise ConfigurationError(
            f"this pyarrow was built without {name}; install one from PyPI or conda-forge"
        ) from None
    return make


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))


_NUMBERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "retry_time_limit": _seconds, "request_timeout": float, "connect_timeout": float,
    "load_frequency": int,
    "port": int, "replication": int, "buffer_size": int, "default_block_size": int,
}  # fmt: skip
_TRUTH: Final = {"true": True, "false": False}


def _value(option: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if option in _NUMBERS:
        try:
            return _NUMBERS[option](value)
        except ValueError:
            raise ConfigurationError(
                f"storage.{option}: {value!r} is not a number", f"storage.{option}"
            ) from None
    return _TRUTH.get(value.lower(), value)


def _fsspec(place: str, given: dict[str, Any], options: StorageOptions) -> fs.FileSystem:
    """Return a file system of fsspec; options with dots make dictionaries of arguments.

    Args:
        place: the URL up to its path.
        given: the options.
        options: the same, to keep their values out of messages.
    """
    from pyarrow.fs import PyFileSystem

    from aerotape.catalog.dated_files import DatedHandler

    try:
        import fsspec
    except ImportError:
        raise ConfigurationError(f"{place}: {not_installed('fsspec', 'spark')}", "path") from None
    arguments: dict[str, Any] = {}
    for option, value in given.items():
        *outer, last = option.split(".")
        inner = arguments
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = _value(last, value)
    try:
        kind = fsspec.get_filesystem_class(place.partition("://")[0])
        # What is before the path (host, port, user) is the file system's to understand.
        arguments = {**kind._get_kwargs_from_urls(f"{place}/"), **arguments}
        return PyFileSystem(DatedHandler(kind(**arguments)))
    except (ImportError, TypeError, ValueError) as error:
        reason = options.redacted(str(error).strip().partition("\n")[0])
        raise ConfigurationError(f"{place}: {reason}", "path") from None
    except Exception as error:
        # Some connect here.
        raise StorageError(
            f"cannot reach {place}: {told(error, options)} ({ADVICE})", place
        ) from None


def _path_within(scheme: str, rest: str) -> str:
    """Return the path that a file system knows a folder by."""
    authority, _, path = rest.partition("/")
    if scheme in (*_S3, *_GCS):
        return rest
    if scheme in _AZURE:
        return f"{authority.partition('@')[0]}/{path}"
    if scheme in _HADOOP:
        return f"/{path}"
    import fsspec

    stripped: str = fsspec.get_filesystem_class(scheme)._strip_protocol(f"{scheme}://{rest}")
    return stripped
