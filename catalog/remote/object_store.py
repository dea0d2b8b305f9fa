"""Buckets of S3 and Google Cloud Storage, and containers of Azure, through the package obstore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from aerotape.catalog.location import StorageOptions
from aerotape.catalog.remote.store_options import advice_on_profiles, make_store
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.formatting import not_installed

_VARIABLES: Final = ("AWS_", "GOOGLE_", "AZURE_", "AZURITE_")
_CODE: Final = re.compile(r"<Code>([^<]*)</Code>(?:.*?<Message>([^<\n]*))?", re.S)
_CAUSE: Final = re.compile(r'(?:message|error): "([^"]*)"|\b(TimedOut)\b')
_METADATA: Final = re.compile(r"/latest/(api|meta-data)/|/computeMetadata/|/metadata/identity")
_QUERY: Final = re.compile(r"\?\S*")
_PAST_END: Final = re.compile("InvalidRange|Range Not Satisfiable")
_NO_BUCKET: Final = re.compile("NoSuchBucket|ContainerNotFound")


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket or container, with the methods of fsspec's file systems that are used here.

    It can be pickled: another process finds its own credentials. Paths are keys of objects. Each
    call is a request, or a few, and nothing is open in between.

    All methods raise FileNotFoundError; OSError, with one line of text; ConfigurationError for
    wrong options; StorageError in a process that was forked after its parent has used obstore.
    """

    scheme: str
    authority: str
    options: StorageOptions

    def check(self) -> None:
        """Find credentials, server and region."""
        with self.store():
            pass

    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
        """List the objects and folders in a folder."""
        with self.store() as store:
            found = store.list_with_delimiter(path or None)
        folders = [{"name": each, "type": "directory"} for each in found["common_prefixes"]]
        return [*folders, *({**_info(each), "type": "file"} for each in found["objects"])]

    def find(self, path: str, detail: bool = True, on_error: str = "raise") -> dict[str, Any]:
        """List all objects below a folder, by key."""
        with self.store() as store:
            found = map(_info, store.list(path or None).collect())
        return {each["name"]: each for each in found if each["type"] == "file"}

    def info(self, path: str) -> dict[str, Any]:
        """Describe an object."""
        with self.store() as store:
            return _info(store.head(path))

    def open(self, path: str, mode: str) -> OpenedObject | Upload:
        """Return an object to read from (``rb``), or a stream to a new one."""
        return OpenedObject(self, path) if mode == "rb" else Upload(self, path)

    def mv(self, source: str, target: str, recursive: bool = False) -> None:
        """Copy an object and delete it; it takes the place of one that has the name."""
        with self.store() as store:
            store.rename(source, target)

    def rm(self, path: str, recursive: bool = False) -> None:
        """Delete an object, or all those below a folder."""
        with self.store() as store:
            below = store.list(path).collect() if recursive else ()
            store.delete([each["path"] for each in below] if recursive else path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing: folders are parts of names."""

    def invalidate_cache(self) -> None: ...

    @contextmanager
    def store(self) -> Iterator[Any]:
        """Yield obstore's store, and convert what it raises."""
        if _first_process() != os.getpid():
            raise StorageError(
                f"cannot read {self.scheme}://{self.authority}: this process was forked after "
                "object stores were read, and has no threads of obstore; let multiprocessing "
                "start processes by `forkserver` or `spawn`"
            )
        try:
            yield _store(self.scheme, self.authority, self.options, _environment())
        except AerotapeError:
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and not _NO_BUCKET.search(str(error)):
                raise
            raise OSError(f"{_reason(error)}{advice_on_profiles(self.scheme)}") from None


class OpenedObject:
    """An object of a bucket. Several threads may read from it at once."""

    def __init__(self, bucket: Bucket, path: str) -> None:
        self._bucket = bucket
        self._path = path

    @property
    def size(self) -> int:
        return int(self._bucket.info(self._path)["size"])

    def read(self) -> bytes:
        with self._bucket.store() as store:
            return bytes(store.get(self._path).bytes())

    def read_range(self, offset: int, length: int) -> bytes:
        """Request a range; it has fewer bytes at the end."""
        try:
            with self._bucket.store() as store:
                return bytes(store.get_range(self._path, start=offset, length=length))
        except OSError as error:
            if _PAST_END.search(str(error)):
                return b""
            raise

    def close(self) -> None: ...


class Upload:
    """A stream to an object, which appears when it is closed."""

    closed = False

    def __init__(self, bucket: Bucket, path: str) -> None:
        import obstore

        self._bucket = bucket
        with bucket.store() as store:
            self._writer = obstore.open_writer(store, path)

    def write(self, data: Any) -> int:
        """Write a copy of bytes; obstore sends them later."""
        chunk = bytes(data)
        with self._bucket.store():
            self._writer.write(chunk)
        return len(chunk)

    def flush(self) -> None: ...

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with self._bucket.store():
                self._writer.close()

    def discard(self) -> None:
        """End it without an object, unless it is closed."""
        if not self.closed:
            self.closed = True
            self._writer.__exit__(Exception, None, None)


def _info(meta: Any) -> dict[str, Any]:
    """Describe an object as fsspec does; an empty one may be the mark of a folder."""
    kind = "file" if meta["size"] else "other"
    time = meta["last_modified"].timestamp()
    return {"name": meta["path"], "size": meta["size"], "type": kind, "mtime": time}


def _environment() -> tuple[tuple[str, str], ...]:
    """Return variables with credentials: with other ones a store is another one."""
    return tuple(item for item in os.environ.items() if item[0].startswith(_VARIABLES))


@lru_cache
def _first_process() -> int:
    """Return the id of the first process to use obstore, among this one and its ancestors."""
    # In a process that is forked later, obstore waits for threads that only its parent has.
    return os.getpid()


@lru_cache(maxsize=32)
def _store(
    scheme: str, authority: str, options: StorageOptions, environment: tuple[tuple[str, str], ...]
) -> Any:
    """Return obstore's store of a bucket; one for a process, since each has connections."""
    place = f"{scheme}://{authority}"
    try:
        return make_store(scheme, authority, options)
    except ImportError as error:
        raise ConfigurationError(f"{place}: {not_installed('obstore', 'remote')}") from error
    except ConfigurationError:
        raise
    except Exception as error:
        reason = options.redacted(_reason(error))
        raise ConfigurationError(f"{place}: storage options: {reason}", "storage") from None


def _reason(error: Exception) -> str:
    """Describe an error of obstore in one line: the server's answer, or what it came from."""
    text = str(error)
    if found := _CODE.search(text):
        return ": ".join(filter(None, found.groups()))
    line = _QUERY.sub("", text.strip().partition("\n")[0]).rstrip(" .:") or type(error).__name__
    found = _CAUSE.search(text)
    cause = (found[1] or "timed out") if found else ""
    if cause not in line:
        line = f"{line}: {cause}"
    return f"no credentials were found, not even a role: {line}" if _METADATA.search(line) else line
