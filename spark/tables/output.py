"""The folder of a table that is written: local, in HDFS or in an object store.

A table job changes its output only through this class: object stores through obstore, and local
folders, HDFS and others through fsspec (`aerotape.catalog.remote.object_folder`), except for what
fsspec does not have locally. Paths are relative to the folder, with slashes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.remote.object_folder import ADVICE, ObjectFile, one_line, reach
from aerotape.catalog.remote.object_store import Bucket
from aerotape.errors import ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.url_path import UrlPath


class OutputStore:
    """A folder for output. Can be pickled; workers get it as it is."""

    def __init__(
        self,
        file_system: Any,
        root: str,
        name: str | None = None,
        options: StorageOptions = NO_OPTIONS,
    ) -> None:
        """Take a folder of what `reach` returns, or a local one without a name.

        Errors show the name, and no value of `options`.
        """
        self._file_system = file_system
        self._options = options
        self._root = root.rstrip("/")
        self.name = name or self._root
        self.is_local = name is None

    @classmethod
    def open(cls, out: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> OutputStore:
        """Find the folder that a path or a URL such as ``s3://bucket/folder`` names.

        Nothing is made.

        Args:
            out: the path or URL.
            options: how the storage of a URL is reached, as for reading from it.

        Raises:
            ConfigurationError: it is no folder, or in no file system that is known here.
            StorageError: the storage cannot be reached, or refuses.
        """
        place = parse_location(out, "OUT")
        if isinstance(place, UrlPath):
            store = cls(*reach(place, options), str(place), options)
        else:
            try:
                from fsspec.implementations.local import LocalFileSystem
            except ImportError as error:
                raise ConfigurationError(f"OUT: {not_installed('fsspec', 'spark')}") from error
            store = cls(LocalFileSystem(), str(place.resolve()))
        if store.exists(""):
            raise ConfigurationError(f"{store.name} is a file: name a folder for the table")
        return store

    @property
    def is_object_store(self) -> bool:
        """Whether folders are only names, and files are moved one by one."""
        return isinstance(self._file_system, Bucket)

    def local_path(self, path: str = "") -> Path:
        """The path of a file of a local folder."""
        return Path(self._full(path))

    # -- looking -----------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Whether there is a file that is not a folder."""
        full = self._full(path)
        with self._errors("inspect", path), suppress(FileNotFoundError):
            return bool(full and self._file_system.info(full)["type"] == "file")
        return False

    def files(self, path: str = "") -> dict[str, Any]:
        """List the files in a folder and its folders: fsspec's descriptions, by path below `path`.

        A folder that does not exist has none.
        """
        base = self._full(path)
        found = {}
        with self._errors("list", path), suppress(FileNotFoundError):
            self._file_system.invalidate_cache()
            found = self._file_system.find(base, detail=True, on_error="raise")
        return {name[len(base) :].lstrip("/"): info for name, info in found.items()}

    @contextmanager
    def open_file(self, path: str) -> Iterator[Any]:
        """Open a file for random reads (StorageError)."""
        import pyarrow

        with self._errors("read", path):
            if self.is_local:
                stream: Any = pyarrow.OSFile(self._full(path))
            else:
                file = self._file_system.open(self._full(path), "rb")
                place = UrlPath(self._where(path))
                stream = ObjectFile(file, place, self._options)
        with stream:
            yield stream

    # -- changing ----------------------------------------------------------------------------

    def make_folder(self, path: str = "") -> None:
        """Make a folder and those above it; it may exist."""
        with self._errors("create", path):
            self._file_system.makedirs(self._full(path), exist_ok=True)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a new file for writing; it is on the disk when the block ends.

        The folders above it are created. When the block raises, there is no new file: in object
        stores it appears only when it is complete, in other storage it is deleted.

        Raises:
            OSError: it cannot be written. Not a StorageError, as faults of a recording are, from
                which tasks distinguish it.
        """
        import pyarrow

        full = self._full(path)
        try:
            self._file_system.makedirs(full.rpartition("/")[0], exist_ok=True)
            if self.is_local:
                stream = file = pyarrow.OSFile(full, "wb")  # it does not hold Python's lock
            else:
                file = self._file_system.open(full, "wb")
                stream = pyarrow.PythonFile(file, "w")  # some packages have no `tell`
        except Exception as error:
            raise self._os_error(path, error) from None
        try:
            yield stream
            try:
                stream.close()
            except Exception as error:
                raise self._os_error(path, error) from None
            if self.is_local:
                with self.local_path(path).open("rb") as written:
                    os.fsync(written.fileno())
        except BaseException:
            with suppress(Exception):
                (file.discard if self.is_object_store else stream.close)()
            if not self.is_object_store:
                with suppress(Exception):
                    self._file_system.rm(full)
            raise

    @contextmanager
    def writing(self, path: str) -> Iterator[None]:
        """Name a new file in an OSError of the block that does not name one."""
        try:
            yield
        except OSError as error:
            if error.filename is not None:
                raise
            # Spark reports only the last of several chained errors of a task.
            raise self._os_error(path, error) from None

    def move(self, source: str, target: str) -> None:
        """Rename a file or a folder; a file takes the place of one that has the name.

        Raises:
            StorageError: it is not renamed. In HDFS it is never when the name is taken.
        """
        with self._errors("move to", target):
            places = self._full(source), self._full(target)
            if self.is_local:
                Path(places[0]).replace(places[1])
                return
            self._file_system.mv(*places, recursive=True)
            if not self.is_object_store and self.exists(source):
                # HDFS says so in an answer, which fsspec does not read.
                raise OSError(errno.EEXIST, "not renamed; does the name exist already?")

    def sync_folder(self, path: str) -> None:
        """Make sure that the names in a local folder are on the disk."""
        if self.is_local:
            with self._errors("sync", path):
                descriptor = os.open(self._full(path), os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def delete_file(self, path: str) -> None:
        """Delete a file; it need not exist."""
        with self._errors("delete", path), suppress(FileNotFoundError):
            self._file_system.rm(self._full(path))

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all that is in it; it need not exist."""
        with self._errors("delete", path), suppress(FileNotFoundError):
            self._file_system.rm(self._full(path), recursive=True)

    # -- inside ------------------------------------------------------------------------------

    def _full(self, path: str) -> str:
        if self.is_object_store and not self._root:
            return path
        return f"{self._root}/{path}" if path else (self._root or "/")

    @contextmanager
    def _errors(self, what: str, path: str) -> Iterator[None]:
        """Raise the error of a call as a StorageError that names the place, in one line."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # as many kinds as there are packages for storages
            where = self._where(path)
            advice = "" if self.is_local else f" ({ADVICE})"
            raise StorageError(
                f"cannot {what} {where}: {self._reason(error)}{advice}", where
            ) from None

    def _os_error(self, path: str, error: Exception) -> OSError:
        """Say of an error in a task where it was; Python's own words then tell it in one line."""
        number = error.errno if isinstance(error, OSError) else None
        return OSError(number or errno.EIO, self._reason(error), self._where(path))

    def _where(self, path: str) -> str:
        return f"{self.name}/{path}" if path else self.name

    def _reason(self, error: Exception) -> str:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            # pyarrow adds where in its code.
            reason = os.strerror(error.errno) if self.is_local else error.strerror
            return self._options.redacted(reason)
        return one_line(error, self._options)
