"""The location of an archive directory: a local directory, or a URL of remote storage.

Users give both as strings. Other processes get a string that means the same in each of them
(`absolute_location`): an absolute path, or a URL in the canonical form of its `UrlPath`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aerotape.errors import ConfigurationError
from aerotape.url_path import UrlPath

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://([^/]*))?")
# A user, a host or bucket, and a port: after a colon nothing else.
_AUTHORITY = re.compile(r"(?:[^:]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^:]*)(?::[0-9]*)?")
_HADOOP = ("hdfs", "viewfs")
# The part after the two slashes of a URL, by its scheme.
_FORMS = {
    **dict.fromkeys(("s3", "s3a", "s3n", "gs", "gcs"), "BUCKET/FOLDER"),
    **dict.fromkeys(("abfs", "abfss"), "CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"),
    "az": "CONTAINER/FOLDER",
    "file": "/FOLDER",
}


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Options of a remote storage: endpoint, credentials and others. Values are never printed.

    Attributes:
        items: name and value of each option.
    """

    items: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StorageOptions:
        """Create them from a mapping, sorted, so that equal options compare equal."""
        return cls(tuple(sorted(options.items())))

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(name for name, _ in self.items)})"

    def redacted(self, text: str) -> str:
        """Remove the values of options from a message of another package."""
        for name, value in self.items:
            if len(value) > 3 and re.search("key|secret|token|pass|auth|proxy", name, re.I):
                text = text.replace(value, "…")
        return text


NO_OPTIONS = StorageOptions()


def parse_location(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Parse a path or URL: a local path as it was written, or a `UrlPath`.

    Spark users write ``file:`` URLs with one slash, three, or the host's name between them.

    Args:
        path: as a user gave it.
        name: of the option or argument, for the error.

    Raises:
        ConfigurationError: it is empty, or a URL without a bucket, host or path, a ``file:`` URL
            of another machine, or holds what belongs into storage options.
    """
    if isinstance(path, UrlPath):
        return path
    text = os.fspath(path)
    if not text:  # a variable that is not set; not the folder that one happens to be in
        raise ConfigurationError(f"{name}: an empty path names no folder", name)
    match = _URL.match(text)
    if match is None:
        return Path(text)
    scheme, authority = match[1].lower(), match[2]
    if scheme == "file":
        if authority not in (None, "", "localhost"):
            raise ConfigurationError(
                f"{name}: {text!r} names a file of another machine; mount it here and name its "
                "path, or use a storage that all workers can reach",
                name,
            )
        rest = text[match.end() :]
        _require_place(scheme, rest, text, name)
        return Path(rest)
    rest = f"{authority or ''}{text[match.end() :]}"
    if not authority and scheme in _HADOOP:
        # Of the file system that Hadoop's configuration names.
        rest = f"default{text[match.end() :]}"
    rest = rest.lstrip("/")
    _refuse_options(scheme, rest, name)
    # Without a bucket the first folder would be taken for it.
    _require_place(scheme, rest if authority or scheme not in _FORMS else "", text, name)
    return UrlPath(f"{scheme}://{rest}")


def _require_place(scheme: str, rest: str, text: str, name: str) -> None:
    """Refuse a URL without the bucket, host or path, as from an unset variable."""
    if rest:
        return
    form = _FORMS.get(scheme, "HOST/FOLDER")
    missing = form.partition("/")[0].partition("@")[0].lower() or "path"
    raise ConfigurationError(f"{name}: {text!r} names no {missing}; write {scheme}://{form}", name)


def _refuse_options(scheme: str, rest: str, name: str) -> None:
    """Refuse a URL with a password or a query; locations are printed, so these are not."""
    if not _AUTHORITY.fullmatch(rest.partition("/")[0]):
        found = "what looks like a user's password"
    elif "?" in rest:
        found = "options after a question mark"
    else:
        return
    raise ConfigurationError(
        f"{name}: the {scheme} URL holds {found}; give storage options instead (storage.NAME of "
        "the data source, --storage NAME=VALUE of commands) or set the environment",
        name,
    )


def absolute_location(path: str | os.PathLike[str], name: str = "path") -> str:
    """Parse a path or URL for processes that run in other folders too.

    Takes the arguments and raises the errors of `parse_location`.
    """
    location = parse_location(path, name)
    return str(location if isinstance(location, UrlPath) else location.absolute())


def why_no_directory(path: Path) -> str | None:
    """Return the reason why a path is not a local directory, None when it is one."""
    if path.is_dir():
        return None
    return f"{'not a directory' if path.exists() else 'no such directory'}: {path}"


def why_no_file(archive_dir: Path, path: Path, what: str) -> str:
    """Return the reason why `path`, the `what` of an archive directory, is not a file."""
    return why_no_directory(archive_dir) or f"no {what} at {path}: is this an archive directory?"


def require_local(path: Path, what: str) -> None:
    """Refuse a directory in remote storage: `what` only works locally (ConfigurationError)."""
    if isinstance(path, UrlPath):
        raise ConfigurationError(
            f"{what} works on local directories only; copy {path} to one first", "path"
        )
