"""The text of an error as clients see it: files by their names, not by where they are."""

from __future__ import annotations

from pathlib import Path


def error_text(error: BaseException, directory: Path) -> str:
    """Return the text of an error without paths.

    Args:
        error: the error; its `path` is replaced by the name of that file.
        directory: of the archive; it is replaced by its name, and left out before names of files.
    """
    text, path = str(error), str(getattr(error, "path", ""))
    if path.startswith("/"):
        text = text.replace(path, Path(path).name)
    return text.replace(f"{directory}/", "").replace(str(directory), directory.name)
