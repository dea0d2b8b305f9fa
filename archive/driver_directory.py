"""Archive directories in the directory of a media driver, which deletes its own when it starts."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape import _native
from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.errors import ConfigurationError


def is_within(path: Path, aeron_dir: str) -> bool:
    """Whether a path leads through the driver's directory, also by links out of it or into it."""
    driver_dir = os.path.realpath(aeron_dir)
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
    places = {os.path.realpath(absolute)}
    for each in (absolute, *absolute.parents):
        places.add(str(Path(os.path.realpath(each.parent)) / each.name))
    return any(os.path.commonpath([driver_dir, place]) == driver_dir for place in places)


def check_driver_directory(config: ArchiveConfig, aeron_dir: str) -> None:
    """Check that a media driver that starts in a directory deletes no recordings of this archive.

    Raises:
        ConfigurationError: it would; nothing was deleted.
    """
    found = _native.recordings_in(aeron_dir)
    if found is None:
        return
    for name, path in (
        ("aeron.archive.dir", config.archive_dir),
        ("aeron.archive.mark.file.dir", config.mark_file_dir),
    ):
        if path is not None and is_within(path, aeron_dir):
            raise ConfigurationError(
                f"{name}={path} is in aeron.dir={aeron_dir}, which the media driver deletes when "
                f"it starts, and {found} has recordings: set another aeron.dir, or move the "
                "recordings out of it",
                name,
            )
