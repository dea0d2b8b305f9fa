"""The metadata that a broker stores beside the segments of a journal, in ``<name>.meta``.

It is a version, 1, and a Meta message, with the last index that is on disk. Zeebe 8.2 and later
store it after each flush, and before they truncate the journal; Zeebe 1.0 stores the index that it
has flushed and committed. Records up to it must be in the journal.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from aerotape.catalog.durability import write_at
from aerotape.catalog.no_follow import open_no_follow
from aerotape.codecs.generated import raft_entry as messages
from aerotape.codecs.runtime import HEADER_LENGTH, decode_message
from aerotape.errors import CodecError, CorruptJournalError, StorageError

_META_LENGTH: Final = 4096
_META_VERSION: Final = 1
_FLUSHED_INDEX: Final = struct.Struct("<Q")
# After the version, the message's header and the term.
_FLUSHED_INDEX_OFFSET: Final = 1 + HEADER_LENGTH + 8


def meta_path(directory: Path, name: str) -> Path:
    """Return the path of the metadata of a journal."""
    return directory / f"{name}.meta"


def last_flushed_index(directory: Path, name: str) -> int:
    """Return the index up to which a broker has flushed a journal; 0 if it is not known.

    Raises:
        CorruptJournalError: the metadata is not valid.
        StorageError: it cannot be read.
    """
    path = meta_path(directory, name)
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as opened:
            content = opened.read(_META_LENGTH)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", path) from None
    if not any(content):  # created, and not written yet
        return 0
    try:
        if content[0] != _META_VERSION:
            raise CodecError(f"the version is {content[0]}, expected {_META_VERSION}")
        meta = decode_message(
            memoryview(content)[1:],
            messages.SCHEMA_ID,
            "raft metadata",
            {messages.Meta.TEMPLATE_ID: messages.Meta},
        )
    except CodecError as error:
        raise CorruptJournalError(f"{path}: {error}", path, 0) from None
    assert isinstance(meta, messages.Meta)
    return meta.flushed_index or 0


def lower_flushed_index(directory: Path, name: str, index: int) -> None:
    """Store an index in a broker's metadata, and force it to storage, if the one there is higher.

    Raises:
        CorruptJournalError: the metadata is not valid.
        StorageError: it cannot be read.
        OSError: it cannot be written.
    """
    if last_flushed_index(directory, name) <= index:
        return
    number = open_no_follow(meta_path(directory, name), os.O_RDWR)
    try:
        write_at(number, _FLUSHED_INDEX.pack(index), _FLUSHED_INDEX_OFFSET)
        os.fdatasync(number)
    finally:
        os.close(number)
