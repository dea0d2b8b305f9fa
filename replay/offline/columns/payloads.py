"""Typed columns of a table of messages: the fields of payloads, decoded by their SBE schema.

A column has the name of its field. Names of the table's own columns are reserved, in any case
because SQL does not distinguish `Length` from `length`: such a field gets the prefix ``sbe_``,
independently of the selected columns, so that a name has one meaning in all queries. So does a
field whose name differs from that of one before it only in case.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from aerotape import _native
from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.codecs.payload_plan import distinct_names
from aerotape.codecs.payloads import (
    DecodedMessages,
    PayloadSchema,
    escaped_text,
)
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.schema_options import with_options
from aerotape.errors import CodecError, ConfigurationError

if TYPE_CHECKING:
    import pyarrow

    from aerotape.codecs.payload_plan import Target
    from aerotape.replay.offline.read_mode import Mode
    from aerotape.replay.offline.selection import Others, Selection

_MALFORMED: Final[Mapping[Mode, Literal["fail", "drop", "null"]]] = {
    "FAILFAST": "fail",
    "DROPMALFORMED": "drop",
    "PERMISSIVE": "null",
}


class Decoder(Protocol):
    """Decodes payloads into some of the typed columns, as `PayloadSchema` does."""

    def decode_messages(
        self,
        payloads: pyarrow.Array,
        *,
        malformed: Literal["fail", "drop", "null"],
        keep_others: bool,
    ) -> DecodedMessages: ...


class TypedColumns(Protocol):
    """Typed columns of a table and the selection of its messages; can be pickled."""

    @property
    def others(self) -> Others: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def arrow_schema(self) -> pyarrow.Schema: ...

    def source(self, name: str) -> str:
        """Return the name that a column has in the batches of the decoder."""
        ...

    def decoder(self, chosen: frozenset[str]) -> Decoder:
        """Return the decoder of at least these columns, by their names in its batches."""
        ...


@dataclass(frozen=True)
class PayloadColumns:
    """Typed columns of a table and the selection of its messages; can be pickled.

    Attributes:
        schema: the decoder of payloads, without an error column.
        others: treatment of messages of other templates and schemas.
    """

    schema: PayloadSchema
    others: Others = "drop"

    @classmethod
    def of(
        cls,
        selection: Selection,
        schema: PayloadSchema | str | Path,
        *,
        target: Target = "arrow",
        storage: StorageOptions = NO_OPTIONS,
    ) -> PayloadColumns:
        """Build the columns from a schema.

        Args:
            selection: its options of payloads. Without a template every
                message of the schema is a struct column, and the column `template` has its name.
            schema: path or URL of the file, XML or `.sbeir`; or a schema that was read already.
            target: whose types the columns have, of a schema that was not read already.
            storage: options of the remote storage of a URL.

        Raises:
            CodecError: the file is not an SBE schema, or has no such template.
            ConfigurationError: the file cannot be read, or the schema has an error column.
            StorageError: the remote storage cannot be reached, or refuses access.
        """
        if not isinstance(schema, PayloadSchema):
            columns = PayloadSchema.from_schema(
                with_options(
                    load_schema(schema, storage=storage),
                    selection.timestamps,
                    selection.text_encoding,
                ),
                selection.template,
                types=selection.types,
                enums=selection.enums,
                sets=selection.sets,
                target=target,
            )
            return cls(columns, selection.others)
        if schema.error_column is not None:
            raise ConfigurationError(
                "schema: a table reports malformed payloads in the column `_corrupt`, in mode "
                "PERMISSIVE; read the schema without error_column",
                "schema",
            )
        return cls(schema, selection.others)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the schema."""
        return tuple(self._sources)

    @cached_property
    def arrow_schema(self) -> pyarrow.Schema:
        """The columns under their names in the table."""
        import pyarrow

        fields = self.schema.arrow_schema
        return pyarrow.schema(
            [fields.field(source).with_name(name) for name, source in self._sources.items()]
        )

    def source(self, name: str) -> str:
        """Return the name that a column of the table has in the schema."""
        return self._sources[name]

    def decoder(self, chosen: frozenset[str]) -> Decoder:
        """Return the decoder of these columns."""
        return self.schema.choose(chosen)

    @cached_property
    def _sources(self) -> dict[str, str]:
        names = self.schema.arrow_schema.names
        # Without a template the first column is not a message's; a message may have its name.
        own = [] if self.schema.plan.flat else names[:1]
        distinct = distinct_names(names[len(own) :], (*_native.SCAN_COLUMNS, *own))
        return dict(zip((*own, *distinct), names, strict=True))


class PayloadReader:
    """Converts batches of a scan to batches of a table with typed columns."""

    def __init__(self, payloads: TypedColumns, columns: Sequence[str], mode: Mode) -> None:
        """Prepare for any number of recordings; `columns` include those of the scan."""
        self._columns = tuple(columns)
        self._own = [name for name in columns if name in _native.SCAN_COLUMNS]
        self._sources = {name: payloads.source(name) for name in columns if name not in self._own}
        self._schema = payloads.decoder(frozenset(self._sources.values()))
        self._typed = payloads.arrow_schema
        self._mode = mode
        self._keep_others = payloads.others == "null"
        self.scan_columns: tuple[str, ...] = tuple(
            name
            for name in _native.SCAN_COLUMNS
            if name in self._own or name in ("position", "payload")
        )
        """Columns that the scan must build: payloads to decode, positions for errors."""

    def arrow_schema(self, scanned: pyarrow.Schema) -> pyarrow.Schema:
        """Return the schema of the table, from that of the scan."""
        import pyarrow

        return pyarrow.schema(
            [
                self._typed.field(name) if name in self._sources else scanned.field(name)
                for name in self._columns
            ]
        )

    def read(
        self, recording_id: int, batches: Iterator[pyarrow.RecordBatch]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Decode a recording, batch after batch with the scan's columns.

        Raises:
            CodecError: in mode FAILFAST, a payload does not match its schema; the error names
                recording and position. Rows before it are yielded first.

        At its end there is a warning for each column in which texts had bytes that are not UTF-8.
        """
        escaped: Counter[str] = Counter()
        for scanned in batches:
            decoded = self._schema.decode_messages(
                scanned.column("payload"),
                malformed=_MALFORMED[self._mode],
                keep_others=self._keep_others,
            )
            problems = {
                row: f"recording {recording_id}, position {scanned.column('position')[row]}: the "
                f"payload does not match its schema: {text}"
                for row, text in decoded.problems
            }
            if decoded.batch.num_rows:
                yield self._rows(scanned, decoded, problems)
            if problems and self._mode == "FAILFAST":
                raise CodecError(next(iter(problems.values())))
            escaped.update(decoded.escaped)
        for name, texts in escaped.items():
            warnings.warn(
                f"recording {recording_id}: {escaped_text(name, texts)}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _rows(
        self, scanned: pyarrow.RecordBatch, decoded: DecodedMessages, problems: dict[int, str]
    ) -> pyarrow.RecordBatch:
        import pyarrow

        own = scanned.select(self._own)
        if self._mode == "PERMISSIVE" and "_corrupt" in self._own:
            own = _with_problems(own, problems)
        if decoded.kept is not None and self._own:
            own = own.take(decoded.kept)
        else:
            own = own.slice(0, decoded.batch.num_rows)
        arrays = [
            decoded.batch.column(self._sources[name]) if name in self._sources else own.column(name)
            for name in self._columns
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self.arrow_schema(scanned.schema))


def _with_problems(rows: pyarrow.RecordBatch, problems: dict[int, str]) -> pyarrow.RecordBatch:
    """Add the errors of payloads to the column that has those of frames."""
    import pyarrow

    if not problems:
        return rows
    errors = rows.column("_corrupt").to_pylist()
    for row, text in problems.items():
        errors[row] = text
    index = rows.schema.get_field_index("_corrupt")
    return rows.set_column(index, "_corrupt", pyarrow.array(errors, pyarrow.string()))
