r"""Decode SBE payloads into Arrow columns, by the schema that they were encoded with.

    schema = PayloadSchema.from_file("orders.xml", "NewOrder")
    for batch in recording.to_batches(columns=["position", "payload"]):
        orders = schema.decode(batch)

Columns of the constructs of a schema:

=========================  ====================================================================
SBE                        column
=========================  ====================================================================
int8 … int64               int8 … int64
uint8, uint16, uint32      int16, int32, int64, as Spark has no unsigned numbers
uint64                     uint64; for Spark decimal(20, 0)
float, double              float32, float64
char, array of char        string, up to the first NUL
array of uint8             binary; string if it has a character encoding
other arrays               list
enum                       string, the value's name; with ``enums="number"`` its number
set                        struct of booleans; with ``sets="number"`` its number
mantissa and exponent      decimal
UTCTimestamp               timestamp in UTC, of microseconds or nanoseconds; for Spark nanoseconds
                           remain the number
LocalMktDate, UTCDateOnly  date
other composite            struct
group                      list of structs, nested groups within
variable data              string, or binary without a supported character encoding
constant                   like a field with that value
=========================  ====================================================================

docs/schemas.md has the rules for decimals, timestamps and dates. With ``types="wire"`` they are the
numbers and structs of numbers that they are on the wire, and uint64 is decimal(20, 0). A value that
does not fit its column makes its payload malformed.

Supported character encodings are US-ASCII, UTF-8 and ISO-8859-1. Bytes of US-ASCII and UTF-8 that
are not valid UTF-8 become their numbers, ``\xe9``, and their texts are counted. A column is null
for an optional field with its null value (any NaN of an optional float), for an enum with its null
value, and for fields newer than the version of the payload's sender. An enum value without a name
is its number in digits. Fields that a newer sender has added are skipped. A group without any
columns has no column. A name in a group, composite or set that differs from one before it only in
case gets the prefix ``sbe_``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from aerotape import _native
from aerotape.codecs.payload_plan import (
    ColumnPlan,
    EnumColumns,
    GroupPlan,
    Plan,
    SetColumns,
    Target,
    Types,
    VarDataPlan,
    choose_columns,
    compile_plan,
)
from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.schema_options import with_options
from aerotape.errors import CodecError, ConfigurationError

if TYPE_CHECKING:
    import pyarrow

TEMPLATE_COLUMN = "template"
"""The column with the name of each payload's template, if all templates are decoded."""


class DecodedMessages(NamedTuple):
    """The rows decoded from payloads, and the problems found.

    Attributes:
        batch: the rows, with the columns of the schema.
        kept: indices of the payloads of the rows, ascending; None if no payload was dropped.
            There are no rows after a malformed payload that ended decoding.
        problems: index of each malformed payload, and the reason.
        escaped: by column, how many of its texts had bytes that are not UTF-8.
    """

    batch: pyarrow.RecordBatch
    kept: pyarrow.Array | None
    problems: list[tuple[int, str]]
    escaped: dict[str, int]


@dataclass(frozen=True)
class PayloadSchema:
    """A decoder of payloads; can be pickled, and used by several threads.

    With a template, its fields, groups and variable data are the columns, and payloads of other
    templates are rows of nulls. Without one, each template with fields is a struct column of its
    name, null for payloads of other templates; the column `template` has the name of the template.
    Payloads of other schemas are rows of nulls in both cases.

    Attributes:
        plan: the plan of the native decoder.
        error_column: name of an additional column with the reason why a payload is malformed, null
            for a valid one; the other columns of a malformed payload are null. Without this
            column a malformed payload is an error.
    """

    plan: Plan
    error_column: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse columns that would have the same name (ConfigurationError)."""
        if not self.plan.flat and any(m.name == TEMPLATE_COLUMN for m in self.plan.messages):
            raise ConfigurationError(
                f"template: the schema has a message {TEMPLATE_COLUMN!r}, the name of the column "
                "of template names; select one template",
                "template",
            )
        if self.error_column in self._column_names():
            raise ConfigurationError(
                f"error_column: the payloads already have a column {self.error_column!r}",
                "error_column",
            )

    @classmethod
    def from_file(
        cls,
        schema_file: str | Path,
        template: str | int | None = None,
        *,
        types: Types = "semantic",
        enums: EnumColumns = "name",
        sets: SetColumns = "struct",
        timestamps: Mapping[str, str] | None = None,
        text_encoding: str | None = None,
        error_column: str | None = None,
    ) -> PayloadSchema:
        """Read an SBE schema.

        Args:
            schema_file: the schema, XML or the `.sbeir` file that sbe-tool generates from it.
            template: name or id of one message; all when None.
            types: columns of decimals, timestamps and dates are that, or ``wire``: the numbers and
                composites that they are on the wire.
            enums: columns of enums are names or numbers.
            sets: columns of sets are structs of booleans or numbers.
            timestamps: names of integer fields that are timestamps although the schema does not
                say so, each with its unit: ``{"SendingTimeEpoch": "ns"}``, or s, ms, us.
            text_encoding: ``utf-8``, ``iso-8859-1`` or ``bytes``: that of texts for which the
                schema has none, or US-ASCII.
            error_column: see the class.

        Raises:
            SchemaError: the XML has mistakes.
            CodecError: the schema is not valid, or has no such template.
            ConfigurationError: the file cannot be read, or there is no such field.
        """
        schema = with_options(load_schema(schema_file), timestamps, text_encoding)
        return cls.from_schema(
            schema, template, types=types, enums=enums, sets=sets, error_column=error_column
        )

    @classmethod
    def from_schema(
        cls,
        schema: Schema,
        template: str | int | None = None,
        *,
        types: Types = "semantic",
        enums: EnumColumns = "name",
        sets: SetColumns = "struct",
        target: Target = "arrow",
        error_column: str | None = None,
    ) -> PayloadSchema:
        """Create a decoder from a `Schema`.

        Arguments and errors as for `from_file`. With target ``spark`` the columns have only types
        that Spark has.
        """
        plan = compile_plan(
            schema, template, types=types, enums=enums, sets=sets, target=target
        )
        return cls(plan, error_column=error_column)

    @property
    def arrow_schema(self) -> pyarrow.Schema:
        """The columns of `decode_payloads`."""
        import pyarrow

        return pyarrow.schema(self._decoder.schema)

    def decode(self, batch: pyarrow.RecordBatch, column: str = "payload") -> pyarrow.RecordBatch:
        """Decode a column of payloads; the other columns precede the new ones.

        Args:
            batch: rows with a binary column of payloads, each from its message header on. Null
                payloads are rows of nulls.
            column: its name.

        Raises:
            CodecError: a payload is malformed, and there is no error column; the message has its
                row in the batch.
            ConfigurationError: there is no such column, or a column of the batch has the name of
                one of the new ones.
        """
        import pyarrow

        names = batch.schema.names
        if column not in names:
            raise ConfigurationError(
                f"no column {column!r}: expected one of {', '.join(names)}", "column"
            )
        kept = [name for name in names if name != column]
        decoded = self.decode_payloads(batch.column(names.index(column)))
        twice = sorted(set(kept) & set(decoded.schema.names))
        if twice:
            raise ConfigurationError(
                f"both the batch and the payloads have columns named {', '.join(twice)}: drop or "
                "rename them in the batch",
                "column",
            )
        fields = [batch.schema.field(name) for name in kept] + list(decoded.schema)
        arrays = [batch.column(name) for name in kept] + decoded.columns
        if not fields:
            return decoded
        return pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))

    def decode_payloads(self, payloads: pyarrow.Array) -> pyarrow.RecordBatch:
        """Decode an array of payloads into the columns of `arrow_schema`.

        Raises:
            CodecError: as for `decode`; or the payloads are not a binary array, or too large for
                one batch.
        """
        import pyarrow

        payloads = _as_binary(payloads)
        try:
            return pyarrow.record_batch(self._decoder.decode(payloads))
        except OverflowError as error:
            raise CodecError(f"{len(payloads)} payloads: {error}") from None

    def decode_messages(
        self,
        payloads: pyarrow.Array,
        *,
        malformed: Literal["fail", "drop", "null"],
        keep_others: bool,
    ) -> DecodedMessages:
        """Decode payloads with a choice of how to handle malformed ones, without an error column.

        Args:
            payloads: binary; null ones are rows of nulls.
            malformed: handling of a malformed payload: end decoding, drop it, or make a row of
                nulls.
            keep_others: whether payloads of other templates and schemas are rows of nulls.

        Raises:
            CodecError: the payloads are not a binary array, or too large for one batch.
        """
        import pyarrow

        payloads = _as_binary(payloads)
        try:
            batch, kept, problems, escaped = self._decoder.decode_messages(
                payloads, malformed=malformed, keep_others=keep_others
            )
        except OverflowError as error:
            raise CodecError(f"{len(payloads)} payloads: {error}") from None
        return DecodedMessages(
            pyarrow.record_batch(batch),
            None if kept is None else pyarrow.array(kept),
            problems,
            escaped,
        )

    def choose(self, columns: Collection[str]) -> PayloadSchema:
        """Return a decoder of only some of the columns, with the same rows."""
        plan = choose_columns(self.plan, columns)
        return PayloadSchema(plan, error_column=self.error_column)

    def _column_names(self) -> set[str]:
        if not self.plan.flat:
            return {TEMPLATE_COLUMN, *(message.name for message in self.plan.messages)}
        body = self.plan.messages[0].body
        parts: tuple[ColumnPlan | GroupPlan | VarDataPlan, ...]
        parts = (*body.columns, *body.groups, *body.var_data)
        return {part.name for part in parts}

    @cached_property
    def _decoder(self) -> _native.SbeDecoder:
        try:
            return _native.SbeDecoder(
                self.plan,
                template_column=None if self.plan.flat else TEMPLATE_COLUMN,
                error_column=self.error_column,
            )
        except (OverflowError, TypeError, ValueError) as error:
            # Neither sbe-tool nor the reader of XML has such numbers: an .sbeir file was damaged.
            raise CodecError(f"the schema is damaged: {error}; run sbe-tool again") from None

    def __getstate__(self) -> dict[str, object]:
        # The native decoder is not pickled; it is created again from the plan.
        return {"plan": self.plan, "error_column": self.error_column}


def escaped_text(name: str, texts: int) -> str:
    """Return a sentence about texts of a column that had bytes that are not UTF-8."""
    return (
        f"{texts} values of {name} have bytes that are not characters of its encoding, each shown "
        "as its number, such as \\xe9; characterEncoding=\"ISO-8859-1\" in the schema reads them, "
        "or the option text_encoding"
    )


def _as_binary(payloads: pyarrow.Array) -> pyarrow.Array:
    import pyarrow

    if not isinstance(payloads, pyarrow.Array):
        raise CodecError(
            f"payloads must be an array of pyarrow, not {type(payloads).__name__}: decode each of "
            "the batches of a table, or each of the chunks of an array"
        )
    if payloads.type == pyarrow.binary():
        return payloads
    try:
        return payloads.cast(pyarrow.binary())
    except pyarrow.ArrowException as error:
        raise CodecError(f"payloads must be binary, not {payloads.type}: {error}") from None
