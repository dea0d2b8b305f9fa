"""The folder of a table that is written: local, in HDFS or in an object store.

A table job changes its output only through this class, and so through pyarrow's file systems,
except for forcing local files to the disk. Paths are relative to the folder, with slashes.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.remote.object_folder import ADVICE, one_line, reach
from aerotape.errors import ConfigurationError, StorageError
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from pyarrow import fs

_DETAIL: Final = re.compile(r"\[errno \d+\] (.+)")
_OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})


class OutputStore:
    """A folder for output. Can be pickled; workers get it as it is."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        root: str,
        name: str | None = None,
        options: StorageOptions = NO_OPTIONS,
    ) -> None:
        """Take a folder of a pyarrow file system; errors show `name`, and no value of `options`."""
        self._filesystem = filesystem
        self._options = options
        self._root = root.rstrip("/")
        self.name = name or self._root

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
        from pyarrow import fs

        place = parse_location(out, "OUT")
        if isinstance(place, UrlPath):
            filesystem, path = reach(place, options)
            store = cls(filesystem, path, str(place), options)
        else:
            store = cls(fs.LocalFileSystem(), str(place.resolve()))
        if store._type("") == fs.FileType.File:
            raise ConfigurationError(f"{store.name} is a file: name a folder for the table")
        return store

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return str(self._filesystem.type_name) == "local"

    @property
    def is_object_store(self) -> bool:
        """Whether folders are only names, and files are moved one by one."""
        return str(self._filesystem.type_name) in _OBJECT_STORES

    def local_path(self, path: str = "") -> Path:
        """The path of a file of a local folder."""
        return Path(self._full(path))

    # -- looking -----------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        from pyarrow import fs

        return bool(self._type(path) != fs.FileType.NotFound)

    def files(self, path: str = "") -> dict[str, Any]:
        """List the files in a folder and its folders: pyarrow's FileInfo, by path below `path`.

        A folder that does not exist has none.
        """
        from pyarrow import fs

        base = self._full(path)
        selector = fs.FileSelector(base, allow_not_found=True, recursive=True)
        with self._errors("list", path):
            infos = self._filesystem.get_file_info(selector)
        return {info.path[len(base) :].lstrip("/"): info for info in infos if info.is_file}

    @contextmanager
    def open_file(self, path: str) -> Iterator[Any]:
        """Open a file for random reads (StorageError)."""
        with self._errors("read", path):
            stream = self._filesystem.open_input_file(self._full(path))
        with stream:
            yield stream

    # -- changing ----------------------------------------------------------------------------

    def make_folder(self, path: str = "") -> None:
        """Make a folder and those above it; it may exist."""
        with self._errors("create", path):
            self._filesystem.create_dir(self._full(path), recursive=True)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a new file for writing; it is on the disk when the block ends.

        The folders above it are created. When the block raises, the file is deleted.

        Raises:
            OSError: it cannot be written. Not a StorageError, as faults of a recording are, from
                which tasks distinguish it.
        """
        try:
            if not self.is_object_store:
                parent = self._full(path).rpartition("/")[0]
                self._filesystem.create_dir(parent, recursive=True)
            stream = self._filesystem.open_output_stream(self._full(path))
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
            # Closing makes an object that was begun visible; it is deleted right after.
            with suppress(Exception):
                stream.close()
            with suppress(Exception):
                self._filesystem.delete_file(self._full(path))
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
            try:
                self._filesystem.move(*places)
            except NotImplementedError:  # Azure without hierarchical namespaces: by a copy
                if not self.is_object_store:
                    raise
                self._filesystem.copy_file(*places)
                self._filesystem.delete_file(places[0])
            if not (self.is_local or self.is_object_store) and self.exists(source):
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
        self._delete(path, self._filesystem.delete_file)

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all that is in it; it need not exist."""
        self._delete(path, self._filesystem.delete_dir)

    # -- inside ------------------------------------------------------------------------------

    def _delete(self, path: str, delete: Callable[[str], None]) -> None:
        try:
            with self._errors("delete", path):
                delete(self._full(path))
        except StorageError:
            if self.exists(path):
                raise

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else (self._root or "/")

    def _type(self, path: str) -> Any:
        with self._errors("inspect", path):
            return self._filesystem.get_file_info(self._full(path)).type

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
            ) from error

    def _os_error(self, path: str, error: Exception) -> OSError:
        """Say of an error in a task where it was; Python's own words then tell it in one line."""
        number = error.errno if isinstance(error, OSError) else None
        return OSError(number or errno.EIO, self._reason(error), self._where(path))

    def _where(self, path: str) -> str:
        return f"{self.name}/{path}" if path else self.name

    def _reason(self, error: Exception) -> str:
        found = _DETAIL.search(str(error))
        reason = found[1] if found else None
        if reason is None and isinstance(error, OSError):
            reason = error.strerror
        return self._options.redacted(reason or one_line(error, self._options))
