"""Values of DuckDB as `aerotape sql` prints them.

DuckDB itself converts what Python's types cannot hold: times without an end or past the year 9999,
nanoseconds, months of an interval, numbers of 128 bits. A query's columns are therefore cast to
text where they are neither bytes nor nested, and numbers are read back from it for JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from aerotape.formatting import json_number

if TYPE_CHECKING:
    import duckdb
    import pyarrow
    from duckdb.sqltypes import DuckDBPyType

Read = Callable[[Any], Any]

_TEXT: Final = "VARCHAR"
_INTEGERS: Final = frozenset(
    f"{sign}{size}"
    for sign in ("", "u")
    for size in ("tinyint", "smallint", "integer", "bigint", "hugeint")
)
_NEEDS_QUOTES: Final = frozenset('",\r\n')


@dataclass(frozen=True, slots=True)
class Form:
    """The form in which the values of a type are fetched.

    Attributes:
        type: SQL type that values are cast to.
        read: converts a fetched value, which is not null, to types of JSON.
        is_text: whether it is fetched as text, which tables and CSV show.
        is_number: whether tables align it as a number.
    """

    type: str
    read: Read
    is_text: bool = True
    is_number: bool = False

    def json(self, value: Any) -> Any:
        """Return a fetched value in types of JSON."""
        return None if value is None else self.read(value)


def form_of(kind: DuckDBPyType) -> Form:
    """Return the form of the values of a type; by default, DuckDB's text."""
    name = kind.id
    if name in _INTEGERS:
        return Form(_TEXT, int, is_number=True)
    if name == "decimal":
        is_whole = dict(kind.children)["scale"] == 0
        return Form(_TEXT, int if is_whole else str, is_number=True)
    if name in ("float", "double"):
        return Form(_TEXT, lambda text: json_number(float(text)), is_number=True)
    if name == "boolean":
        return Form(_TEXT, lambda text: text == "true")
    if name == "blob":
        return Form("BLOB", bytes.hex, is_text=False)
    if name in ("list", "array"):
        each = form_of(_part(kind, 0))
        read: Read = lambda values: [each.json(value) for value in values]  # noqa: E731
        return Form(f"{each.type}[]", read, is_text=False)
    if name == "map":
        values = form_of(_part(kind, 1))
        # Arrow has a map as pairs. The keys are DuckDB's text, as JSON's are text.
        read = lambda pairs: {key: values.json(value) for key, value in pairs}  # noqa: E731
        return Form(f"MAP({_TEXT}, {values.type})", read, is_text=False)
    if name == "struct":
        fields = {name: form_of(_part(kind, at)) for at, (name, _) in enumerate(kind.children)}
        return _struct(fields, len(kind.children))
    return Form(_TEXT, str)


def _part(kind: DuckDBPyType, at: int) -> DuckDBPyType:
    return cast("DuckDBPyType", kind.children[at][1])


def _struct(fields: dict[str, Form], count: int) -> Form:
    """Return the form of a struct; of one without names, DuckDB's text."""
    if not fields or "" in fields or len(fields) < count:
        return Form(_TEXT, str)
    types = ", ".join(f"{quoted(name)} {each.type}" for name, each in fields.items())

    def read(values: dict[str, Any]) -> dict[str, Any]:
        return {name: fields[name].json(value) for name, value in values.items()}

    return Form(f"STRUCT({types})", read, is_text=False)


def quoted(name: str) -> str:
    """Return an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def fetched(found: duckdb.DuckDBPyRelation, forms: Iterable[Form]) -> duckdb.DuckDBPyRelation:
    """Return a query whose columns have their forms. Columns of one name are told by position."""
    columns = (f"CAST(#{number} AS {form.type})" for number, form in enumerate(forms, 1))
    return found.project(", ".join(columns))


def json_rows(
    batches: Iterable[pyarrow.RecordBatch], forms: list[Form]
) -> Iterator[tuple[Any, ...]]:
    """Iterate rows of values in types of JSON."""
    for row in _rows(batches):
        yield tuple(form.json(value) for form, value in zip(forms, row, strict=True))


def text_rows(
    batches: Iterable[pyarrow.RecordBatch], forms: list[Form]
) -> Iterator[tuple[Any, ...]]:
    """Iterate rows of text; bytes and nested values are in types of JSON, null is None."""
    for row in _rows(batches):
        yield tuple(
            value if form.is_text else form.json(value)
            for form, value in zip(forms, row, strict=True)
        )


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def csv_line(fields: Iterable[str | None]) -> str:
    """Return a line of comma-separated values: null is empty, empty text is in quotes."""
    return ",".join(map(_csv_field, fields)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text and _NEEDS_QUOTES.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
