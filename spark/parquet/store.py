"""The files of a table that is written: on this machine, in HDFS or in an object store.

All that the Parquet job does to its output goes through here, and so through pyarrow's file
systems, but for what those do not have: making sure that bytes are on the disk, second names of
files, and two folders that change places in one step. These are for local folders only; what
a place can do is asked with `renames_folders` and `can_exchange`.

Paths are relative to the table's folder, with slashes; only what is `beside` it is not below it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import posixpath
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
_PUTTING: Final = frozenset({"s3", "gcs"})
_RENAMING: Final = frozenset({"local", "hdfs"})
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


class OutputStore:
    """A folder for output. Can be pickled; workers get it as it is."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        root: str,
        name: str | None = None,
        options: StorageOptions = NO_OPTIONS,
    ) -> None:
        """Take a folder of a pyarrow file system.

        Args:
            filesystem: where it is.
            root: the folder in that file system; need not exist.
            name: what to call it in reports and errors, `root` when None.
            options: what it is reached with, to be kept out of errors.
        """
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
    def beside(self) -> str | None:
        """Path of a folder beside a local one, on the same disk for all that is known; or None."""
        name = posixpath.basename(self._root)
        return f"../_aerotape-{name}" if self.is_local and name else None

    @property
    def is_object_store(self) -> bool:
        """Whether folders are only names, and files are moved one by one."""
        return str(self._filesystem.type_name) in _OBJECT_STORES

    @property
    def puts_whole(self) -> bool:
        """Whether a file keeps its name until one that replaces it is closed.

        In Azure one that is opened for writing is empty from then on.
        """
        return str(self._filesystem.type_name) in _PUTTING

    @property
    def renames_folders(self) -> bool:
        """Whether a folder with all that is in it can be moved in one step."""
        return str(self._filesystem.type_name) in _RENAMING

    def local_path(self, path: str = "") -> Path:
        """Where a file of a local folder is."""
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
        return {name: info for name, info in self._below(path, recursive=True) if info.is_file}

    def entries(self, path: str = "") -> list[str]:
        """List the names of the files and folders in a folder; none when it does not exist."""
        return sorted(name for name, _ in self._below(path, recursive=False))

    def _below(self, path: str, *, recursive: bool) -> list[tuple[str, Any]]:
        from pyarrow import fs

        base = self._full(path)
        selector = fs.FileSelector(base, allow_not_found=True, recursive=recursive)
        with self._errors("list", path):
            infos = self._filesystem.get_file_info(selector)
        return [(info.path[len(base) :].lstrip("/"), info) for info in infos]

    def read(self, path: str) -> bytes | None:
        """Read a whole file; None when there is none."""
        try:
            with (
                self._errors("read", path),
                self._filesystem.open_input_stream(self._full(path)) as stream,
            ):
                return bytes(stream.read())
        except StorageError:
            if self.exists(path):
                raise
            return None

    # -- changing ----------------------------------------------------------------------------

    def make_folder(self, path: str = "") -> None:
        """Make a folder and those above it; it may exist."""
        with self._errors("create", path):
            self._filesystem.create_dir(self._full(path), recursive=True)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a new file for writing; it is on the disk when the block ends.

        When the block raises, the file is not kept. Until then an object store may show what was
        written, so this is for names that no reader looks at; `write` replaces what they do read.

        Raises:
            OSError: it cannot be written. No StorageError, for what is wrong with a recording is
                one, and tasks tell these apart.
        """
        try:
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
        except BaseException as error:
            # Closing makes an object that was begun visible; it is deleted right after.
            with suppress(Exception):
                stream.close()
            with suppress(Exception):
                self._filesystem.delete_file(self._full(path))
            if isinstance(error, OSError) and error.filename is None:
                # Only the last of several is told of a task.
                raise self._os_error(path, error) from None
            raise

    def write(self, path: str, data: bytes) -> None:
        """Write a small file or replace it; readers see all of the old or all of the new.

        HDFS does not rename to a name that is taken: there, and where renaming fails in what fsspec
        reaches, the old is deleted first.

        Raises:
            StorageError: it cannot be written; what was there is as it was, unless renaming fails
                again after that deletion. Then the new is beside it, as `path` with ``.tmp``.
        """
        if self.puts_whole:
            with self._errors("write", path):
                self._put(path, data)
            return
        aside = f"{path}.tmp"
        with self._errors("write", path), self.new_file(aside) as stream:
            stream.write(data)
        try:
            self.move(aside, path)
        except StorageError:
            # HDFS does not rename to a name that is taken, which not every package for it tells
            # from other failures.
            if self.is_local or self.is_object_store:
                raise
            if not (self.exists(aside) and self.exists(path)):
                raise
            self.delete_file(path)
            self.move(aside, path)

    def _put(self, path: str, data: bytes) -> None:
        """Make an object of some bytes; an upload that fails leaves what has the name.

        Whatever lets go of an upload that has begun closes it, and so publishes what it has by
        then, were it nothing. Therefore it is made in a thread: what a signal raises (SIGTERM,
        Ctrl-C) it raises in the main thread, which waits for the upload to end all the same.
        """
        with ThreadPoolExecutor(1, "aerotape-put") as thread:
            thread.submit(self._upload, path, data).result()

    def _upload(self, path: str, data: bytes) -> None:
        with self._filesystem.open_output_stream(self._full(path)) as stream:
            stream.write(data)

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

    def link(self, source: str, target: str) -> None:
        """Give a file of a local folder a second name."""
        with self._errors("link", target):
            os.link(self._full(source), self._full(target))

    def exchange(self, one: str, other: str) -> None:
        """Let two folders of a local folder change places, in one step."""
        libc = ctypes.CDLL(None, use_errno=True)
        names = [os.fsencode(self._full(path)) for path in (one, other)]
        with self._errors("replace", other):
            if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))

    def can_exchange(self, aside: str, inside: str) -> bool:
        """Whether `link` and `exchange` work between two folders, made for trying it."""
        if not self.is_local:
            return False
        try:
            for folder in (aside, inside):
                self.make_folder(folder)
            self.local_path(f"{aside}/file").touch()
            self.link(f"{aside}/file", f"{inside}/link")
            self.exchange(aside, inside)
            return self.exists(f"{inside}/file")
        except (OSError, AttributeError, StorageError):
            return False
        finally:
            for folder in (aside, inside):
                with suppress(StorageError):
                    self.delete_folder(folder)

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
        try:
            with self._errors("delete", path):
                self._filesystem.delete_file(self._full(path))
        except StorageError:
            if self.exists(path):
                raise

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all that is in it; it need not exist."""
        try:
            with self._errors("delete", path):
                self._filesystem.delete_dir(self._full(path))
        except StorageError:
            if self.exists(path):
                raise

    def delete_folder_if_empty(self, path: str = "") -> None:
        """Delete a folder in which nothing is; in an object store there is none then."""
        if self.is_local:
            with suppress(OSError):
                self.local_path(path).rmdir()
        elif not self.entries(path):
            self.delete_folder(path)

    # -- inside ------------------------------------------------------------------------------

    def _full(self, path: str) -> str:
        if path.startswith("../"):
            return posixpath.normpath(f"{self._root}/{path}")
        return f"{self._root}/{path}" if path else (self._root or "/")

    def _type(self, path: str) -> Any:
        with self._errors("inspect", path):
            return self._filesystem.get_file_info(self._full(path)).type

    @contextmanager
    def _errors(self, what: str, path: str) -> Iterator[None]:
        """Say where something went wrong, and what, in one line."""
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
