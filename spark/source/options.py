"""Parsing and checking of the data source's options, which docs/spark.md describes.

An unknown option is an error, because a misspelt filter would silently read everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from aerotape.catalog.layout import ChecksumName
from aerotape.catalog.location import (
    NO_OPTIONS,
    StorageOptions,
    absolute_location,
)
from aerotape.catalog.scope_layout import unsigned
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import MAX_UNSIGNED
from aerotape.replay.offline.columns.names import (
    COLUMN_TYPES,
    SCOPE_NAMES,
    added_names,
    check_columns,
    table_columns,
)
from aerotape.replay.offline.read_mode import Mode, check_mode, parse_mode
from aerotape.times import ALL_TIMES, TimeRange, parse_time
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.directory import ArchiveDirectory
    from aerotape.replay.offline.seek import SeekTarget

_T = TypeVar("_T")
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")

DEFAULT_PARTITION_BYTES: Final = 128 * 1024 * 1024

_NAMES: Final = (
    "path", "recordingIds", "fromPosition", "toPosition", "fromTime", "toTime", "channel",
    "fromIndex", "fromAsqn", "streamId", "columns", "checksum", "mode", "schema", "template",
    "others", "types", "enums", "sets", "payload", "partitionBytes", "scopeIds",
)  # fmt: skip
_ABOUT_SCHEMA: Final = ("template", "others", "types", "enums", "sets")
STORAGE_PREFIX: Final = "storage."
STREAM_NAMES: Final = (
    "startingPosition", "maxBytesPerTrigger", "maxMessagesPerTrigger", "failOnDataLoss",
)  # fmt: skip
"""Options of streaming queries (`aerotape.spark.streaming.options`), which batch queries refuse."""

# The properties of a table that Spark reserves: `TableCatalog.PROP_…`.
_RESERVED: Final = (
    "collation", "comment", "external", "is_managed_location", "location", "owner", "provider",
    "table_type",
)  # fmt: skip
# A property that every table has, and the prefix under which Spark repeats the statement's OPTIONS.
_OF_TABLES: Final = "owner"
_TABLE_OPTION: Final = "option."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Selection of messages in an archive directory, and how they are read.

    Attributes:
        archive_dir: the directory with `archive.catalog` and the segment files: an absolute path,
            or a URL.
        recording_ids: only these recordings, all when None; each must exist.
        from_position: as for `aerotape.replay.offline.reader.recording_range`.
        to_position: as for `aerotape.replay.offline.reader.recording_range`.
        times: as for `aerotape.replay.offline.reader.recording_range`.
        seek: as for `aerotape.replay.offline.reader.recording_range`.
        channel: only recordings whose original channel contains this.
        stream_id: only recordings of this stream.
        columns: names of columns, in output order.
        checksum: the checksum to verify frames with.
        mode: treatment of messages with a frame that fails it, and of payloads that do not match
            their schema.
        payloads: the typed columns, if any, and which messages are rows.
        partition_bytes: target size of a partition in bytes of recording; at least a term.
        storage: options of remote storage.
        scope_ids: only recordings of these scopes, unsigned, all if empty; when None those of the
            directory's archive.
    """

    archive_dir: str
    recording_ids: tuple[int, ...] | None = None
    from_position: int | None = None
    to_position: int | None = None
    times: TimeRange = ALL_TIMES
    seek: SeekTarget | None = None
    channel: str | None = None
    stream_id: int | None = None
    columns: tuple[str, ...] = field(default=table_columns("FAILFAST"))
    checksum: ChecksumName = "none"
    mode: Mode = "FAILFAST"
    payloads: TypedColumns | None = None
    partition_bytes: int = DEFAULT_PARTITION_BYTES
    storage: StorageOptions = NO_OPTIONS
    scope_ids: tuple[int, ...] | None = None

    def open_directory(self) -> ArchiveDirectory:
        """Open the archive directory (CatalogError, ConfigurationError, StorageError)."""
        from aerotape.replay.offline.directory import open_directory

        return open_directory(self.archive_dir, self.storage)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse the data source's options; names in any case. Reads the SBE schema, if any.

        Raises:
            ConfigurationError: an option is unknown, missing or has an invalid value.
            CodecError: the file is not an SBE schema, or has no such template.
        """
        given = given_options(options)
        storage = {
            name.removeprefix(STORAGE_PREFIX): given.pop(name)
            for name in list(given)
            if name.startswith(STORAGE_PREFIX)
        }
        if not given.get("path"):
            raise ConfigurationError(
                "no archive directory: give it to load(), as in "
                'spark.read.format("aerotape").load("/var/lib/aeron-archive"), or to CREATE TABLE '
                "without a list of columns, as in USING aerotape OPTIONS (path "
                "'/var/lib/aeron-archive')",
                "path",
            )
        from_position = optional(given, "fromPosition", integer)
        to_position = optional(given, "toPosition", integer)
        if from_position is not None and to_position is not None and from_position > to_position:
            raise ConfigurationError(
                f"fromPosition {from_position} is after toPosition {to_position}", "fromPosition"
            )
        checksum = parse_word(given.get("checksum", "none"), "checksum", get_args(ChecksumName))
        mode = optional(given, "mode", parse_mode) or "FAILFAST"
        payloads = parse_payloads(given, StorageOptions.of(storage))
        check_mode(mode, checksum, decodes=payloads is not None)
        scope_ids = optional(given, "scopeIds", parse_scope_ids)
        added = added_names(payloads)
        if "columns" in given:
            typed = () if payloads is None else payloads.names
            known = (*COLUMN_TYPES, *added, *typed)
            columns = tuple(_names(given["columns"]))
            check_columns(columns, known, "columns")
        else:
            columns = table_columns(mode, payloads)
            if scope_ids is not None:
                columns = (*columns, *(name for name in added if name in SCOPE_NAMES))
        return cls(
            archive_dir=absolute_location(given["path"]),
            recording_ids=optional(given, "recordingIds", parse_recording_ids),
            from_position=from_position,
            to_position=to_position,
            times=TimeRange(
                optional(given, "fromTime", parse_time), optional(given, "toTime", parse_time)
            ),
            seek=_parse_seek(given),
            channel=given.get("channel"),
            stream_id=optional(given, "streamId", _INT32),
            columns=columns,
            checksum=checksum,
            mode=mode,
            payloads=payloads,
            partition_bytes=optional(given, "partitionBytes", parse_partition_bytes)
            or DEFAULT_PARTITION_BYTES,
            storage=StorageOptions.of(storage),
            scope_ids=scope_ids,
        )


def is_table(options: Mapping[str, str]) -> bool:
    """Return whether the options are the properties of a table."""
    return any(key.lower() == _OF_TABLES for key in options)


def given_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the user's options of those that Spark passes, by their documented names.

    Of a table Spark passes all properties: the reserved ones, each of the OPTIONS, which it repeats
    as `option.NAME`, and TBLPROPERTIES, which are arbitrary.

    Raises:
        ConfigurationError: an option is unknown.
    """
    known = {name.lower(): name for name in (*_NAMES, *STREAM_NAMES)}
    given: dict[str, str] = {}
    lower = {key.lower() for key in options}
    for key, value in options.items():
        name = key.lower()
        if name.startswith(STORAGE_PREFIX):
            given[STORAGE_PREFIX + key[len(STORAGE_PREFIX) :]] = value
        elif name in known:
            given[known[name]] = value
        elif name in _RESERVED or (_OF_TABLES in lower and _TABLE_OPTION + name not in lower):
            continue
        elif name == "paths":  # Spark's option for a list given to load()
            raise ConfigurationError("load() takes one archive directory, not several", "path")
        else:
            close = get_close_matches(name, known, 1)
            hint = f", do you mean {known[close[0]]}?" if close else ""
            raise ConfigurationError(
                f"unknown option {key!r}{hint} (known: {', '.join(known.values())})", key
            )
    return given


def optional(given: Mapping[str, str], name: str, parse: Callable[[str, str], _T]) -> _T | None:
    """Parse an option; None when it is not given."""
    return parse(given[name], name) if name in given else None


def integer(text: str, name: str, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """Parse a whole number of a range."""
    # `int` accepts underscores, and fails at some thousand digits.
    number = int(text) if _INTEGER.fullmatch(text.strip()) else None
    if number is None or not least <= number <= most:
        raise ConfigurationError(
            f"{name}: {text!r} is not a whole number from {least} to {most}", name
        )
    return number


_INT32: Final = partial(integer, least=-(1 << 31), most=(1 << 31) - 1)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_recording_ids(text: str, name: str) -> tuple[int, ...]:
    """Parse recording ids separated by commas; ascending, each once."""
    ids = sorted({integer(part, name) for part in _names(text)})
    if not ids:
        raise ConfigurationError(f"{name}: no recording id in {text!r}", name)
    return tuple(ids)


def parse_scope_ids(text: str, name: str) -> tuple[int, ...]:
    """Parse scope ids separated by commas, unsigned or in two's complement; `all` is ()."""
    if text.strip().lower() == "all":
        return ()
    given = [integer(part, name, -(1 << 63), MAX_UNSIGNED) for part in _names(text)]
    ids = tuple(sorted({unsigned(each, name) for each in given}))
    if not ids:
        raise ConfigurationError(f"{name}: no scope id in {text!r}; all scopes are `all`", name)
    return ids


def _parse_seek(given: Mapping[str, str]) -> SeekTarget | None:
    """Parse the record of a raft journal to begin at; None for all."""
    index = optional(given, "fromIndex", integer)
    asqn = optional(given, "fromAsqn", integer)
    if index is None and asqn is None:
        return None
    if index is not None and asqn is not None:
        raise ConfigurationError("fromIndex and fromAsqn exclude each other: give one", "fromIndex")
    from aerotape.replay.offline.seek import SeekTarget

    return SeekTarget(index, asqn)


def parse_payloads(
    given: Mapping[str, str], storage: StorageOptions = NO_OPTIONS
) -> TypedColumns | None:
    """Read the SBE schema that the options name; raises as `ReadOptions.parse`."""
    if "payload" in given:
        for name in ("schema", *_ABOUT_SCHEMA):
            if name in given:
                raise ConfigurationError(
                    f"{name}: the option payload selects columns of its own; give one of them", name
                )
        from aerotape.replay.offline.columns.raft import raft_columns

        return raft_columns(given["payload"])
    if "schema" not in given:
        for name in _ABOUT_SCHEMA:
            if name in given:
                raise ConfigurationError(
                    f"{name}: this option is for decoded payloads; give the option schema too, an "
                    "SBE schema (XML or .sbeir)",
                    name,
                )
        return None
    from aerotape.codecs.payload_plan import EnumColumns, SetColumns, Types
    from aerotape.replay.offline.columns.payloads import OTHERS, PayloadColumns

    template: str | int | None = given.get("template")
    if isinstance(template, str) and template[:1].isdigit():  # a name of SBE begins with a letter
        template = integer(template, "template")
    return PayloadColumns.of(
        given["schema"],
        template,
        others=parse_word(given.get("others", "drop"), "others", OTHERS),
        types=parse_word(given.get("types", "semantic"), "types", get_args(Types)),
        enums=parse_word(given.get("enums", "name"), "enums", get_args(EnumColumns)),
        sets=parse_word(given.get("sets", "struct"), "sets", get_args(SetColumns)),
        target="spark",
        storage=storage,
    )


def parse_word(text: str, name: str, words: Sequence[_T]) -> _T:
    """Parse one of several words, in any case."""
    for word in words:
        if text.lower() == word:
            return word
    raise ConfigurationError(
        f"{name}: {text!r} is not one of {', '.join(str(word) for word in words)}", name
    )


def parse_partition_bytes(text: str, name: str) -> int:
    """Parse a number of bytes, at least one, with an optional suffix k, m or g (1024-based)."""
    with suppress(ConfigurationError):
        if size := parse_size(name, text):
            return size
    raise ConfigurationError(
        f"{name}: {text!r} is not a positive number of bytes: expected a form such as 4096, 64k, "
        "128m or 1g",
        name,
    )
