"""Options of the data source, parsed and checked.

=================  ==================================================================  =========
option             meaning                                                             default
=================  ==================================================================  =========
``path``           the archive directory (the argument of ``load``)                    required
``recordingIds``   recording ids, separated by commas                                  all
``fromPosition``   leave out messages that begin before this position                  start
``toPosition``     leave out messages that begin at this position or later             recorded
``channel``        only recordings whose original channel contains this                all
``streamId``       only recordings of this stream id                                   all
``columns``        names of columns to build, separated by commas                      all
``checksum``       verify frames: ``none``, ``crc-32`` or ``crc-32c``                   ``none``
``mode``           what becomes of messages with a frame that fails its checksum:      FAILFAST
                   ``FAILFAST``, ``DROPMALFORMED`` or ``PERMISSIVE``
``partitionBytes`` bytes of recording that a partition should have                     128 MiB
=================  ==================================================================  =========

An unknown option is refused, for a misspelt filter would silently read everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape.errors import ConfigurationError
from aerotape.replay.damage import Mode, check_mode, parse_mode

if TYPE_CHECKING:
    from aerotape._native import ChecksumName

_T = TypeVar("_T")

COLUMN_TYPES: Final[Mapping[str, str]] = {
    "recording_id": "long",
    "position": "long",
    "end_position": "long",
    "stream_id": "int",
    "session_id": "int",
    "term_id": "int",
    "term_offset": "int",
    "flags": "int",
    "reserved_value": "long",
    "length": "int",
    "payload": "binary",
    "_corrupt": "string",
}
"""All columns in table order, with their Spark types."""

MESSAGE_COLUMNS: Final = tuple(name for name in COLUMN_TYPES if name != "_corrupt")
"""The columns of a table unless it says otherwise; `_corrupt` comes with mode PERMISSIVE."""

DEFAULT_PARTITION_BYTES: Final = 128 * 1024 * 1024

_CHECKSUMS: Final[Mapping[str, ChecksumName]] = {
    "none": "none",
    "crc-32": "crc-32",
    "crc-32c": "crc-32c",
}
_NAMES: Final = (
    "path", "recordingIds", "fromPosition", "toPosition", "channel", "streamId", "columns",
    "checksum", "mode", "partitionBytes",
)  # fmt: skip
_NOT_YET: Final = ("schema", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read of an archive directory, and how.

    Attributes:
        archive_dir: the directory with `archive.catalog` and the segment files.
        recording_ids: only these recordings, all when None; each must exist.
        from_position: as for `aerotape.replay.reader.recording_range`.
        to_position: as for `aerotape.replay.reader.recording_range`.
        channel: only recordings whose original channel contains this.
        stream_id: only recordings of this stream.
        columns: names of columns, in the order wanted.
        checksum: which checksum frames are verified with.
        mode: what becomes of messages with a frame that fails it.
        partition_bytes: bytes of recording a partition should have; a term at least.
    """

    archive_dir: str
    recording_ids: tuple[int, ...] | None = None
    from_position: int | None = None
    to_position: int | None = None
    channel: str | None = None
    stream_id: int | None = None
    columns: tuple[str, ...] = field(default=MESSAGE_COLUMNS)
    checksum: ChecksumName = "none"
    mode: Mode = "FAILFAST"
    partition_bytes: int = DEFAULT_PARTITION_BYTES

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse the data source's options; names in any case.

        Raises:
            ConfigurationError: an option is unknown, missing or has a value that cannot be.
        """
        known = {name.lower(): name for name in _NAMES}
        given: dict[str, str] = {}
        for key, value in options.items():
            if key.lower() in _NOT_YET:
                raise ConfigurationError(
                    f"option {key!r}: payloads are not decoded yet; read the column `payload` "
                    "and decode it with a user-defined function",
                    key,
                )
            if key.lower() not in known:
                close = get_close_matches(key.lower(), known, 1)
                hint = f", do you mean {known[close[0]]}?" if close else ""
                raise ConfigurationError(
                    f"unknown option {key!r}{hint} (there are {', '.join(_NAMES)})", key
                )
            given[known[key.lower()]] = value
        if not given.get("path"):
            raise ConfigurationError(
                "no archive directory: give it to load(), as in "
                'spark.read.format("aerotape").load("/var/lib/aeron-archive")',
                "path",
            )
        from_position = _optional(given, "fromPosition", parse_position)
        to_position = _optional(given, "toPosition", parse_position)
        if from_position is not None and to_position is not None and from_position > to_position:
            raise ConfigurationError(
                f"fromPosition {from_position} is after toPosition {to_position}", "fromPosition"
            )
        checksum = _optional(given, "checksum", parse_checksum) or "none"
        mode = _optional(given, "mode", parse_mode) or "FAILFAST"
        check_mode(mode, checksum)
        usual_columns = tuple(COLUMN_TYPES) if mode == "PERMISSIVE" else MESSAGE_COLUMNS
        return cls(
            archive_dir=_local_path(given["path"]),
            recording_ids=_optional(given, "recordingIds", parse_recording_ids),
            from_position=from_position,
            to_position=to_position,
            channel=given.get("channel"),
            stream_id=_optional(given, "streamId", _integer),
            columns=_optional(given, "columns", parse_columns) or usual_columns,
            checksum=checksum,
            mode=mode,
            partition_bytes=_optional(given, "partitionBytes", parse_partition_bytes)
            or DEFAULT_PARTITION_BYTES,
        )


def _local_path(path: str) -> str:
    """Return a path that means the same in every process of this machine.

    Workers may run in another folder than the driver, and Spark users write ``file:`` URLs with
    one slash, three, or the host's name between them.
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(//[^/]*)?", path)
    if scheme is None:
        return str(Path(path).absolute())
    if scheme[1].lower() != "file" or scheme[2] not in (None, "//", "//localhost"):
        raise ConfigurationError(
            f"path: {path!r} is in no file system of this machine; mount it, or copy the archive "
            "directory to where every worker can read it",
            "path",
        )
    return path[scheme.end() :]


def _optional(given: Mapping[str, str], name: str, parse: Callable[[str, str], _T]) -> _T | None:
    return parse(given[name], name) if name in given else None


def _integer(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{name}: {text!r} is not a whole number", name) from None


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_recording_ids(text: str, name: str) -> tuple[int, ...]:
    """Parse recording ids separated by commas; ascending, each once."""
    ids = sorted({_integer(part, name) for part in _names(text)})
    if not ids:
        raise ConfigurationError(f"{name}: no recording id in {text!r}", name)
    return tuple(ids)


def parse_position(text: str, name: str) -> int:
    """Parse a position in bytes, zero or more."""
    position = _integer(text, name)
    if position < 0:
        raise ConfigurationError(f"{name}: position {position} is negative", name)
    return position


def parse_columns(text: str, name: str) -> tuple[str, ...]:
    """Parse column names separated by commas."""
    columns = tuple(_names(text))
    for column in columns:
        if column not in COLUMN_TYPES:
            raise ConfigurationError(
                f"{name}: unknown column {column!r} (there are {', '.join(COLUMN_TYPES)})", name
            )
    if not columns:
        raise ConfigurationError(f"{name}: no column in {text!r}", name)
    if len(set(columns)) < len(columns):
        raise ConfigurationError(f"{name}: a column is named twice in {text!r}", name)
    return columns


def parse_checksum(text: str, name: str) -> ChecksumName:
    """Parse the name of a checksum."""
    try:
        return _CHECKSUMS[text.lower()]
    except KeyError:
        raise ConfigurationError(
            f"{name}: unknown checksum {text!r} (there are {', '.join(_CHECKSUMS)})", name
        ) from None


_SUFFIXES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_partition_bytes(text: str, name: str) -> int:
    """Parse a number of bytes, at least one, with an optional suffix k, m or g (1024-based)."""
    factor = _SUFFIXES.get(text[-1:].lower(), 1)
    count = _integer(text[:-1] if factor > 1 else text, name)
    if count < 1:
        raise ConfigurationError(f"{name}: {text!r} is not a number of bytes above zero", name)
    return count * factor
