"""The files of an archive directory in remote storage: S3, HDFS, GCS, Azure, and others.

They are read through Arrow's file systems, which release the interpreter lock and find credentials
in the usual places (environment, profiles, instance roles). Schemes that Arrow does not support are
read through fsspec. Either is imported when first needed.

Storage packages raise any exception, often not an OSError. Every exception of such a call counts as
a failure of the storage; these calls stand alone in their blocks.
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
from aerotape.catalog.remote.object_store import S3Object, object_store
from aerotape.errors import ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import fs
    from typing_extensions import Buffer

_S3: Final = ("s3", "s3a", "s3n")
_S3_URLS: Final = tuple(f"{scheme}://" for scheme in _S3)
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
"""The settings to check after an error of the storage."""
_HADOOP_NEEDS: Final = (
    " (Arrow's HadoopFileSystem needs Hadoop's libhdfs and Java: are HADOOP_HOME, JAVA_HOME and "
    "CLASSPATH set? or do without: `pip install hdfs-native`)"
)


class ObjectFile:
    """One opened file; several threads may read from it at once."""

    def __init__(
        self, folder: ObjectFolder, name: str, file: pyarrow.NativeFile | S3Object
    ) -> None:
        self._folder = folder
        self._name = name
        self._file = file

    @property
    def length(self) -> int:
        """Bytes in it (StorageError)."""
        with self._folder.failures(self._name):
            return int(self._file.size())

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; fewer at the file's end.

        FileNotFoundError when it is not there, if it was opened without a request; StorageError.
        """
        with self._folder.failures(self._name, or_missing=isinstance(self._file, S3Object)):
            data: bytes = self._file.read_at(length, offset)
            return data

    def close(self) -> None:
        """Close it; concurrent reads complete. An error loses nothing."""
        with suppress(Exception):
            self._file.close()


class _RawFile(io.RawIOBase):
    """An opened file with a read position."""

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
    """Return the file system of a URL, and the path within it.

    No request is sent yet.

    Raises:
        ConfigurationError: the scheme is not supported, or an option is wrong.
        StorageError: its package connects at once, and fails.
    """
    scheme, _, rest = str(path).partition("://")
    authority = rest.partition("/")[0]
    return _file_system(scheme, authority, options, _environment()), _path_within(scheme, rest)


def _environment() -> tuple[tuple[str, str], ...]:
    """Return variables with credentials: other ones need another file system."""
    return tuple(item for item in os.environ.items() if item[0].startswith(_VARIABLES))


class ObjectFolder:
    """A folder in remote storage, read only.

    Attributes:
        path: where it is.
        options: storage options.
    """

    def __init__(self, path: UrlPath, options: StorageOptions) -> None:
        """Open the folder; no request is sent yet. Raises what `reach` does."""
        self.path = path
        self.options = options
        self._file_system, self._prefix = reach(path, options)
        self._is_s3 = str(path).startswith(_S3_URLS)

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

    def folders(self, path: str) -> tuple[str, ...]:
        """Return the names of the folders in a folder below this one (StorageError)."""
        from pyarrow import fs

        inner = self._prefix if path == "." else f"{self._prefix}/{path}"
        selector = fs.FileSelector(inner, allow_not_found=True)
        with self.failures(path):
            found = self._file_system.get_file_info(selector)
        return tuple(
            PurePosixPath(info.path).name for info in found if info.type == fs.FileType.Directory
        )

    def open(self, name: str) -> ObjectFile:
        """Open a file (FileNotFoundError when it is not there, StorageError)."""
        path = f"{self._prefix}/{name}"
        try:
            file = self._file_system.open_input_file(path)
        except FileNotFoundError:
            if str(self._file_system.type_name).startswith("py::"):
                # fsspec raises it for any failure of the lookup; this call raises the real one.
                with self.failures(name):
                    self._file_system.get_file_info(path)
            raise
        except Exception as error:
            raise self._failure(name, error) from None
        return ObjectFile(self, name, file)

    def open_ranges(self, name: str) -> ObjectFile:
        """Open a file to read parts of it, without a request where that is possible.

        FileNotFoundError when it is not there, here or at the first read; StorageError.
        """
        found = self._object(name)
        return self.open(name) if found is None else ObjectFile(self, name, found)

    def _object(self, name: str) -> S3Object | None:
        if not self._is_s3:
            return None
        bucket, _, key = f"{self._prefix}/{name}".partition("/")
        store = object_store(bucket, self.options, _environment())
        return None if store is None else S3Object(store, key)

    def read(self, name: str) -> bytes:
        """Return all of a small file (FileNotFoundError when it is not there, StorageError)."""
        if (found := self._object(name)) is not None:
            with self.failures(name, or_missing=True):
                return found.read()
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
        """Copy a file into an open local one (StorageError)."""
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
    def failures(self, name: str, *, or_missing: bool = False) -> Iterator[None]:
        """Convert any exception of a file system, but FileNotFoundError if so, to StorageError."""
        try:
            yield
        except Exception as error:
            if or_missing and isinstance(error, FileNotFoundError):
                raise
            raise self._failure(name, error) from None

    def _failure(self, name: str, error: Exception) -> StorageError:
        place = self.path / name if name else self.path
        return StorageError(
            f"cannot read {place}: {one_line(error, self.options)} ({ADVICE})", place
        )


def one_line(error: Exception, options: StorageOptions) -> str:
    """Describe in one line what a file system has raised, without secrets."""
    line = str(error).strip().partition("\n")[0]
    if line and not isinstance(error, (OSError, ValueError, NotImplementedError)):
        # Messages of other packages may mean little without the exception's name.
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
        # It names the argument that is wrong.
        reason = str(error).replace(f"{name}.__init__() ", "")
        raise ConfigurationError(
            f"storage options are the arguments of pyarrow's {name}: {reason}", "storage"
        ) from None
    except Exception as error:
        if scheme in _HADOOP and find_spec("hdfs_native"):
            # An fsspec file system for HDFS that needs neither Hadoop's library nor Java.
            return _fsspec(f"{scheme}://{authority}", dict(options.items), options)
        needs = _HADOOP_NEEDS if scheme in _HADOOP else ""
        raise ConfigurationError(
            f"{scheme}://{authority}: {one_line(error, options)}{needs}", "path"
        ) from None


def _find_s3(fs: Any, bucket: str, given: dict[str, Any]) -> None:
    """Add the server or region of a bucket; where neither is given, query AWS."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        # Arrow itself looks at them for URLs only, not where it is given anything else.
        if os.environ.get(name):
            given.setdefault("endpoint_override", os.environ[name])
    is_known = "region" in given or "endpoint_override" in given
    if is_known or "AWS_REGION" in os.environ or "AWS_DEFAULT_REGION" in os.environ:
        return
    # Where AWS does not know the bucket, the first request reports it better.
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

    from aerotape.catalog.remote.arrow_handler import DatedHandler

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
        # The file system parses what precedes the path: host, port, user.
        arguments = {**kind._get_kwargs_from_urls(f"{place}/"), **arguments}
        return PyFileSystem(DatedHandler(kind(**arguments)))
    except (ImportError, TypeError, ValueError) as error:
        reason = options.redacted(str(error).strip().partition("\n")[0])
        raise ConfigurationError(f"{place}: {reason}", "path") from None
    except Exception as error:
        # Some connect here.
        raise StorageError(
            f"cannot reach {place}: {one_line(error, options)} ({ADVICE})", place
        ) from None


def _path_within(scheme: str, rest: str) -> str:
    """Return the path of a folder within its file system."""
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
