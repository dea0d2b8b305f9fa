"""The text of an error as clients see it: files by their names, not by where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# Not those of URLs, nor what follows a name or number.
_PATH: Final = re.compile(r"""(?<![\w.:/~?&-])/(?:[^/\s'"`:;,()]+/)*([^/\s'"`:;,()]+)""")


def error_text(error: BaseException, directory: Path, others: Iterable[str] = ()) -> str:
    """Return the text of an error without paths.

    Args:
        error: the error; its `path` is replaced by the name of that file.
        directory: of the archive; it is replaced by its name, and left out before names of files.
        others: further directories, which are replaced by their names.
    """
    text, path = str(error), str(getattr(error, "path", ""))
    if path.startswith("/"):
        text = text.replace(path, Path(path).name)
    text = text.replace(f"{directory}/", "").replace(str(directory), directory.name)
    return without_directories(text, others)


def without_directories(text: str, directories: Iterable[str] = ()) -> str:
    """Return a text in which files and directories have just their names.

    Args:
        text: the text; an absolute path in it ends at a space, unless it is in a directory that
            is given.
        directories: absolute paths; others are ignored.
    """
    for each in directories:
        if each.startswith("/") and Path(each).name:
            text = text.replace(each, Path(each).name)
    return _PATH.sub(r"\1", text)
