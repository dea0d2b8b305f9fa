"""Files of an archive directory opened for writing, never through a symbolic link.

An archive often runs as another user than those who may write to its directory. A symbolic link
that one of them creates there must not redirect a write. Reading through links is allowed.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

FILE_MODE = 0o640
"""Access to new files of an archive directory, of which the umask may take more away."""
DIRECTORY_MODE = 0o750
"""Access to new directories, of which the umask may take more away."""


def open_no_follow(path: str | os.PathLike[str], flags: int = os.O_RDWR) -> int:
    """Open a file, which is not a symbolic link, and return its descriptor.

    It serves as the `opener` of `open` too. A pipe of that name is not waited for.

    Args:
        path: the file.
        flags: as for `os.open`; a file that they create has mode 0640, less the umask.

    Raises:
        OSError: it cannot be opened; of a link `strerror` says that it is one.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP and Path(path).is_symlink():
            raise _link_error(Path(path), "regular file") from None
        raise


def check_directory(path: Path) -> None:
    """Refuse a directory to write in that is a symbolic link (OSError)."""
    if path.is_symlink():
        raise _link_error(path, "directory")


def check_file(path: Path) -> None:
    """Refuse a file to write to that is a symbolic link, where a library opens it (OSError)."""
    if path.is_symlink():
        raise _link_error(path, "regular file")


def _link_error(path: Path, kind: str) -> OSError:
    return OSError(
        errno.ELOOP,
        f"{path.name} is a symbolic link, not a {kind}, and nothing is written through it: remove "
        "it, or put what it leads to in its place",
        str(path),
    )
