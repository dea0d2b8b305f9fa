"""Offsets of a streaming query, which Spark stores in the query's checkpoint.

An offset is a JSON object with a format version and, for each recording that was seen, a position
at which a message ends. A recording that is not in the offset is new: it is read from its start.
An imported recording has, in place of its id, its qualified id as a decimal number.

    {"version": 1, "recordings": {"3": {"position": 4096, "last": 4000, "crc32c": -7, "begin": 0}}}

The attributes are those of `ReadProgress`, without those that are None; `last` is where the message
that ends at `position` begins, and `crc32c` its checksum. After a failure Spark repeats a batch
from the two offsets around it alone, so `begin` is the position where the batch began, if that is
not the position of the previous offset: the recording is new, or a part of it was lost. Offsets of
earlier versions have no `identity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aerotape.errors import ConfigurationError
from aerotape.replay.offline.read_progress import LastRead, ReadProgress

VERSION: Final = 1
_KEYS: Final = ("position", "last", "crc32c", "begin", "stop", "identity")


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """An offset of a streaming query.

    Attributes:
        recordings: progress by the key of the recording (`StoredRecording.key`).
        starts_latest: an initial offset without positions: the next offset has those where
            recordings end, and what is recorded before them is not read.
    """

    recordings: Mapping[int, ReadProgress] = field(default_factory=dict)
    starts_latest: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object for the checkpoint: the same text for an equal offset."""
        if self.starts_latest:
            return {"version": VERSION, "startingPosition": "latest"}
        recordings = {str(id): _to_json(self.recordings[id]) for id in sorted(self.recordings)}
        return {"version": VERSION, "recordings": recordings}

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """Read an offset from a checkpoint.

        Raises:
            ConfigurationError: it was written by another data source, or a newer version.
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


def _to_json(progress: ReadProgress) -> dict[str, int]:
    last = progress.last
    values = (
        progress.position,
        None if last is None else last.position,
        None if last is None else last.crc32c,
        progress.begin,
        progress.stop,
        progress.identity,
    )
    pairs = zip(_KEYS, values, strict=True)
    return {name: value for name, value in pairs if value is not None}


def _progress(values: Mapping[str, Any]) -> ReadProgress:
    if values.keys() - _KEYS or not all(type(value) is int for value in values.values()):
        raise ValueError
    position, last, crc32c, begin, stop, identity = map(values.get, _KEYS)
    if position is None:
        raise ValueError
    return ReadProgress(
        position=position,
        begin=begin,
        last=None if last is None else LastRead(last, position, crc32c),
        identity=identity,
        stop=stop,
    )
