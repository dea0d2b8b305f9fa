"""The formats of journals: what each release of Zeebe writes."""

from __future__ import annotations

from typing import Final, NamedTuple

from aerotape.codecs.runtime import HEADER
from aerotape.errors import ConfigurationError


class JournalFormat(NamedTuple):
    """The versions of the format that a release writes.

    Attributes:
        name: the first release that writes it.
        descriptor_version: the first byte of a segment file.
        journal_version: schema version of records and descriptors.
        raft_version: schema version of raft entries.
    """

    name: str
    descriptor_version: int
    journal_version: int
    raft_version: int


FORMATS: Final = {
    each.name: each
    for each in (
        JournalFormat("1.0", 1, 1, 1),
        JournalFormat("8.2", 2, 1, 1),
        JournalFormat("8.3", 2, 2, 2),
    )
}
LATEST: Final = FORMATS["8.3"]


def journal_format(name: str) -> JournalFormat:
    """Return a format by its name (ConfigurationError)."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ConfigurationError(
            f"unknown journal format {name!r}: expected one of {', '.join(FORMATS)}", "format"
        ) from None


def with_version(message: bytes, version: int, block_length: int | None = None) -> bytes:
    """Return an encoded message with another schema version, and block length, in its header."""
    block, template_id, schema_id, _ = HEADER.unpack_from(message)
    block = block if block_length is None else block_length
    return HEADER.pack(block, template_id, schema_id, version) + message[HEADER.size :]
