"""Parsing and checking of the data source's options, which docs/spark.md describes.

An unknown option is an error, because a misspelt filter would silently read everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape.catalog.location import (
    NO_OPTIONS,
    StorageOptions,
    absolute_location,
)
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.columns.names import (
    SCOPE_NAMES,
    added_names,
    check_columns,
    known_columns,
    table_columns,
)
from aerotape.replay.offline.columns.typed import typed_columns
from aerotape.replay.offline.selection import OPTIONS, Selection, parse_texts
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.directory import ArchiveDirectory

_T = TypeVar("_T")

DEFAULT_PARTITION_BYTES: Final = 128 * 1024 * 1024


def spell(name: str) -> str:
    """Return the data source's name of an option: ``fromPosition`` of ``from_position``."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_SELECTING: Final = {spell(name): name for name in OPTIONS}
_NAMES: Final = ("path", *_SELECTING, "partitionBytes")
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
class ReadOptions(Selection):
    """Selection of messages in an archive directory, and how they are read.

    Attributes:
        archive_dir: the directory with `archive.catalog` and the segment files: an absolute path,
            or a URL.
        payloads: the typed columns, if any, and which messages are rows.
        partition_bytes: target size of a partition in bytes of recording; at least a term.
        storage: options of remote storage.
    """

    archive_dir: str
    columns: Sequence[str] = field(default=table_columns("FAILFAST"))
    payloads: TypedColumns | None = None
    partition_bytes: int = DEFAULT_PARTITION_BYTES
    storage: StorageOptions = NO_OPTIONS

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
        texts = {name: given[spelled] for spelled, name in _SELECTING.items() if spelled in given}
        return cls.of_selection(
            Selection.of(parse_texts(texts, spell), spell),
            given["path"],
            StorageOptions.of(storage),
            optional(given, "partitionBytes", parse_partition_bytes) or DEFAULT_PARTITION_BYTES,
        )

    @classmethod
    def of_selection(
        cls, selection: Selection, path: str, storage: StorageOptions, partition_bytes: int
    ) -> ReadOptions:
        """Create the options for a selection; reads its SBE schema, if any.

        Args:
            selection: the selection.
            path: the archive directory.
            storage: options of remote storage.
            partition_bytes: as the attribute.

        Raises:
            ConfigurationError: a column is unknown, or the path or the schema cannot be used.
            CodecError: the file is not an SBE schema, or has no such template.
        """
        payloads = typed_columns(selection, storage, "spark")
        columns = selection.columns
        if columns is None:
            columns = table_columns(selection.mode, payloads)
            if selection.scope_ids is not None:
                columns += tuple(name for name in added_names(payloads) if name in SCOPE_NAMES)
        check_columns(columns, known_columns(payloads))
        return cls(
            archive_dir=absolute_location(path),
            payloads=payloads,
            partition_bytes=partition_bytes,
            storage=storage,
            **(selection.values | {"columns": columns}),
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
