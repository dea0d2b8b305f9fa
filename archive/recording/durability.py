"""Durability of a recording that differs from the archive's sync level, and forcing it to storage.

Whatever starts a recording names it: a client by the parameter ``aerotape-durability=pd`` of the
channel, and an extension by an argument of `Recordings.start`. The parameter stays in the original
channel in the catalog, where an extend request finds it, also after a restart. The media driver
does not see it: the stripped channel, which the archive subscribes to, does not contain it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from aerotape.catalog.durability import force_names
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment_files import list_segment_files, open_regular_file
from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError, StorageError

PARAMETER: Final = "aerotape-durability"
"""The parameter of a channel that names the durability of its recordings: pd, or absent."""
OnSynced = Callable[[int, "str | None"], None]
"""Called once: the durable position in bytes, and why the recording failed or None."""


@dataclass(frozen=True)
class Durability:
    """When the recorder makes a recording durable, and the key of the counter that shows it.

    The position counter of the recording is at what has been written, and a second counter, the
    confirmed position (`CounterType.LEDGER_CONFIRMED`), at what is durable.

    Attributes:
        sync: "pd": all that is written, continuously; "vd": on request, and at the end.
        key: 16 bytes for the counter's key and label: the qualified id of a ledger, or the MD5 of
            the alias of the channel.
    """

    sync: Literal["pd", "vd"]
    key: bytes


def durability_of(channel: str) -> Durability | None:
    """Return the durability that a channel names, None without one.

    Raises:
        ConfigurationError: not a channel URI, or not a durability.
    """
    if PARAMETER not in channel:
        return None
    uri = ChannelUri.parse(channel)
    value = uri.get(PARAMETER)
    if value is None:
        return None
    if value != "pd":
        raise ConfigurationError(
            f"{PARAMETER}={value!r} in channel={channel} must be pd", PARAMETER
        )
    return persistent(uri.get("alias") or "")


def persistent(alias: str) -> Durability:
    """Return the durability of a recording whose channel has an alias: all that is written."""
    # Loads slowly, and most archives have no such recording.
    from hashlib import md5

    return Durability("pd", md5(alias.encode(), usedforsecurity=False).digest())


def force_segments(archive_dir: Path, recording_id: int) -> None:
    """Force the segment files of a stopped recording and their names to storage.

    After a crash of the archive its last bytes may be in the page cache only.

    Raises:
        StorageError: that has failed.
    """
    for segment in list_segment_files(archive_dir, recording_id):
        try:
            with open_regular_file(segment.path) as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(
                f"cannot sync segment file {segment.path}: {error.strerror}", segment.path
            ) from error
    force_names(archive_dir)


def force_catalog(archive_dir: Path) -> None:
    """Force the catalog and the names of the directory's files to storage (StorageError)."""
    path = archive_dir / CATALOG_FILE_NAME
    try:
        with open(path, "rb", buffering=0, opener=open_no_follow) as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot force {path} to storage: {error.strerror}", path) from error
    force_names(archive_dir)


def force_recording(archive_dir: Path, recording_id: int) -> None:
    """Force the segment files of a stopped recording to storage, then the catalog (StorageError).

    A file without changes costs next to nothing.
    """
    force_segments(archive_dir, recording_id)
    force_catalog(archive_dir)
