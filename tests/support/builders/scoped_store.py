"""Archive directories to import, and a store that imports them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aerotape.catalog.scopes.importing import RecordingImport, import_archive
from aerotape.replay.offline.directory import open_directory
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import leave
from support.builders.segment_builder import SegmentBuilder

MESSAGES = 40


def build(directory: Path, archive_id: int, count: int = 1, **changes: Any) -> Path:
    """Write the directory of a stopped archive with `count` recordings; return its path.

    Messages differ between archives with different ids, and between recordings.
    """
    directory.mkdir()
    for number in range(count):
        stream = SegmentBuilder(**changes)
        add_recording(directory, fill(stream, MESSAGES, seed=archive_id % 1_000 * 10 + number))
    leave(directory, archive_id=archive_id)
    return directory


def do_import(store: Path, source: Path, scope_id: int, **options: Any) -> list[RecordingImport]:
    """Import a directory into a store; return the outcomes."""
    return list(import_archive(store, open_directory(source), scope_id, **options))


def payloads(recording: Any) -> list[bytes]:
    """Return the payloads of a recording of an opened directory."""
    return [message.payload for message in recording.messages()]


def tree(directory: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory, by relative path."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
