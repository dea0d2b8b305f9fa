"""Offsets of a streaming query, which Spark stores in the query's checkpoint.

An offset is a JSON object with a format version and, for each recording that was seen, a position
at which a message ends. A recording that is in none is new: it is read from its beginning.

    {"version": 1, "recordings": {"3": {"position": 4096, "last": 4000, "crc32c": -7, "begin": 0}}}

Spark runs a batch again after a failure from nothing but the two offsets around it, so an offset
also tells where reading began when that is not where the offset before left off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aerotape.errors import ConfigurationError

VERSION: Final = 1
_KEYS: Final = ("position", "last", "crc32c", "begin", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one recording has been read. Positions are bytes.

    Attributes:
        position: where reading goes on: the end of a message, or where it began.
        last: where the message that ends at `position` begins; None when there is none.
        crc32c: checksum of that message, by which it is recognised.
        begin: where the batch began that ends at `position`, when that is not the position of the
            offset before: the recording is new, or something of it was lost.
        stop: the recording's stop position, when all messages up to there have been read.
    """

    position: int
    last: int | None = None
    crc32c: int | None = None
    begin: int | None = None
    stop: int | None = None

    def to_json(self) -> dict[str, int]:
        """Return the object for an offset; what is None is left out."""
        values = {name: getattr(self, name) for name in _KEYS}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """An offset of a streaming query.

    Attributes:
        recordings: progress by recording id.
        starts_latest: nothing has been looked at yet, and what is recorded when it is will be
            left out. Which positions these are is for the next offset to say.
    """

    recordings: Mapping[int, Progress] = field(default_factory=dict)
    starts_latest: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what goes into the checkpoint: the same text for an equal offset."""
        if self.starts_latest:
            return {"version": VERSION, "startingPosition": "latest"}
        recordings = {str(id): self.recordings[id].to_json() for id in sorted(self.recordings)}
        return {"version": VERSION, "recordings": recordings}

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """Read an offset from a checkpoint.

        Raises:
            ConfigurationError: it was not written by this data source, or by a newer one.
        """
        version = offset.get("version")
        if type(version) is int and version > VERSION:
            raise ConfigurationError(
                f"the query's checkpoint has offsets of version {version}, this aerotape "
                f"supports version {VERSION}: use the aerotape that wrote it, or a new checkpoint"
            )
        try:
            if version != VERSION:
                raise ValueError
            if offset.get("startingPosition") == "latest":
                return cls(starts_latest=True)
            return cls({int(id): _progress(each) for id, each in offset["recordings"].items()})
        except (KeyError, ValueError, TypeError, AttributeError):
            raise ConfigurationError(
                "the query's checkpoint holds an offset that is not of aerotape: is it the "
                f"checkpoint of another query? ({str(dict(offset))[:100]})"
            ) from None


def _progress(values: Mapping[str, Any]) -> Progress:
    if not all(type(value) is int for value in values.values()):
        raise ValueError
    return Progress(**values)
