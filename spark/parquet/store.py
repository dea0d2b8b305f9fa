"""Access to the files of a table: local, in HDFS or in an object store.

The Parquet job accesses its output through this module, which uses pyarrow's file systems. Syncs,
hard links and the exchange of two folders are for local folders only; `renames_folders` and
`can_exchange` return what a storage supports.

Paths are relative to the table's folder, with slashes; only `beside` is outside it.
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
            name: its name in reports and errors, `root` when None.
            options: its storage options, whose values errors must not show.
        """
        self._filesystem = filesystem
        self._options = options
        self._root = root.rstrip("/")
        self.name = name or self._root

    @classmethod
    def open(cls, out: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> OutputStore:
        """Find the folder that a path or a URL such as ``s3://bucket/folder`` names.

        Nothing is created.

        Args:
            out: the path or URL.
            options: storage options of a URL, as for reading.

        Raises:
            ConfigurationError: it is not a folder, or its file system is unknown.
            StorageError: the storage cannot be accessed.
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
        """Whether it is a local folder."""
        return str(self._filesystem.type_name) == "local"

    @property
    def beside(self) -> str | None:
        """Path of a folder next to a local one, probably on the same disk; or None."""
        name = posixpath.basename(self._root)
        return f"../_aerotape-{name}" if self.is_local and name else None

    @property
    def is_object_store(self) -> bool:
        """Whether it is an object store, in which files are moved one by one."""
        return str(self._filesystem.type_name) in _OBJECT_STORES

    @property
    def puts_whole(self) -> bool:
        """Whether a file is replaced only when the new one is closed.

        In Azure a file that is opened for writing is empty at once.
        """
        return str(self._filesystem.type_name) in _PUTTING

    @property
    def renames_folders(self) -> bool:
        """Whether a folder can be renamed with its content."""
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
        """Read a whole file; None when it does not exist."""
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
        """Create a folder and its parents; it may exist."""
        with self._errors("create", path):
            self._filesystem.create_dir(self._full(path), recursive=True)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a new file for writing; it is on the disk when the block ends.

        When the block raises, the file is deleted. Until then an object store may show a part of
        it, so this is for temporary names; use `write` for names that readers use.

        Raises:
            OSError: it cannot be written. Not a StorageError, which tasks raise for a recording.
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
            # Closing makes a partial object visible; it is deleted at once.
            with suppress(Exception):
                stream.close()
            with suppress(Exception):
                self._filesystem.delete_file(self._full(path))
            if isinstance(error, OSError) and error.filename is None:
                # Spark reports only the last error of a chain.
                raise self._os_error(path, error) from None
            raise

    def write(self, path: str, data: bytes) -> None:
        """Write a small file or replace it; readers see all of the old or all of the new.

        HDFS does not rename to an existing name: there, and where a rename by fsspec fails, the old
        file is deleted first.

        Raises:
            StorageError: it cannot be written; the old file is unchanged, unless the rename fails
                again after that deletion. Then the new file is `path` with ``.tmp``.
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
            # HDFS does not rename to an existing name; not every package has an error for that.
            if self.is_local or self.is_object_store:
                raise
            if not (self.exists(aside) and self.exists(path)):
                raise
            self.delete_file(path)
            self.move(aside, path)

    def _put(self, path: str, data: bytes) -> None:
        """Write an object; an upload that fails leaves the old one.

        An exception during an upload closes the stream, which publishes a partial object. So the
        upload runs in a thread: exceptions by signals (SIGTERM, Ctrl-C) are raised in the main
        thread, which waits for the end of the upload.
        """
        with ThreadPoolExecutor(1, "aerotape-put") as thread:
            thread.submit(self._upload, path, data).result()

    def _upload(self, path: str, data: bytes) -> None:
        with self._filesystem.open_output_stream(self._full(path)) as stream:
            stream.write(data)

    def move(self, source: str, target: str) -> None:
        """Rename a file or a folder; a file replaces an existing one.

        Raises:
            StorageError: it is not renamed; in HDFS also because the name exists.
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
                # fsspec ignores the result of HDFS.
                raise OSError(errno.EEXIST, "not renamed; does the name exist already?")

    def link(self, source: str, target: str) -> None:
        """Create a hard link to a file of a local folder."""
        with self._errors("link", target):
            os.link(self._full(source), self._full(target))

    def exchange(self, one: str, other: str) -> None:
        """Exchange two folders of a local folder atomically."""
        libc = ctypes.CDLL(None, use_errno=True)
        names = [os.fsencode(self._full(path)) for path in (one, other)]
        with self._errors("replace", other):
            if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))

    def can_exchange(self, aside: str, inside: str) -> bool:
        """Return whether `link` and `exchange` work between two folders, which are created."""
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
        """Sync a local folder's directory entries."""
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
        """Delete a folder with its content; it need not exist."""
        try:
            with self._errors("delete", path):
                self._filesystem.delete_dir(self._full(path))
        except StorageError:
            if self.exists(path):
                raise

    def delete_folder_if_empty(self, path: str = "") -> None:
        """Delete a folder if it is empty."""
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
        """Convert exceptions to a StorageError with operation, path and reason in one line."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # storage packages have no common base class
            where = self._where(path)
            advice = "" if self.is_local else f" ({ADVICE})"
            raise StorageError(
                f"cannot {what} {where}: {self._reason(error)}{advice}", where
            ) from error

    def _os_error(self, path: str, error: Exception) -> OSError:
        """Return an OSError with the path, whose text is one line."""
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
