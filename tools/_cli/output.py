"""The output of commands: tables and records for people, JSON for machines, progress bars.

Results go to standard output, everything else to standard error. Text that came from a network
or a file is shown with its control characters escaped, line ends included, so that it cannot forge
lines; `escaping` escapes what is left in any output.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from aerotape.context import Closing
from aerotape.errors import ConfigurationError
from aerotape.formatting import json_number, printable
from aerotape.tools._cli.colour import has_colours, state, warning_prefix
from aerotape.tools._cli.escaping import write_styled

if TYPE_CHECKING:
    import json

Row = Mapping[str, Any]


class Absent(enum.Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The value of a field of a record that is not printed."""


class Json(str):
    """JSON on one line, the value of a field of `emit_line`, which prints it as it is."""

    @classmethod
    def of(cls, text: str) -> Json:
        """Return a valid text of JSON on one line, its control characters as JSON escapes them."""
        if text.isprintable():
            return cls(text)
        return cls("".join(c if c.isprintable() else _json_escape(c) for c in text))


def _json_escape(character: str) -> str:
    """Return a character of JSON that is not printable: white space, or a part of a string."""
    if character in "\t\r\n":  # in a string these are escaped already
        return " "
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_COLUMN_GAP: Final = "  "
_ELLIPSIS: Final = "..."
# A column that is shortened keeps this width while there are columns to omit.
_SHORTENED_WIDTH: Final = 24
_MIN_WIDTH: Final = 8
_BAR_WIDTH: Final = 30
_REDRAW_NS: Final = 100_000_000


def emit(
    result: Row | Iterable[Row] | Any,
    args: argparse.Namespace,
    none: str = "",
    *,
    shortened: str = "",
    omitted: Sequence[str] = (),
) -> None:
    """Print a record (a mapping or dataclass) or rows (an iterable of them).

    As JSON with `--json`: a record is one object on one line, rows are one array with a row a
    line. Else a record is a list of `name: value` and rows are a table.

    Args:
        result: the record or the rows. Keys are column names; bytes are shown in hexadecimal,
            enumerations by name, None as null or `-`.
        args: the command's arguments, for `json`.
        none: the diagnostic for a person at a terminal when there are no rows.
        shortened: the column of text that is shortened to fit the table to a terminal.
        omitted: columns that a narrow terminal does not show, the first one first.
    """
    if isinstance(result, Mapping) or _is_record(result):
        row = as_row(result)
        _print_json(row) if args.json else print(_record_text(row), end="")
        return
    rows = (as_row(row) for row in result)
    if args.json:
        _print_json_array(rows)
        return
    table = list(rows)
    columns = list(dict.fromkeys(key for row in table for key in row))
    _print_table(
        columns, [[row.get(each) for each in columns] for row in table], shortened, omitted
    )
    if none and not table and sys.stdout.isatty():
        note(none)


def emit_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    args: argparse.Namespace,
    none: str = "",
    *,
    numbers: Sequence[int] = (),
) -> None:
    """Print rows whose columns may have the same name, as `emit` prints rows.

    In JSON, a second column `a` has the name `a_1`.

    Args:
        columns: the names.
        rows: each with a value for each column; all rows are held, except with `--json`.
        args: the command's arguments, for `json`.
        none: as for `emit`.
        numbers: columns of text that are aligned as numbers.
    """
    if args.json:
        names = _distinct(columns)
        _print_json_array(as_row(dict(zip(names, row, strict=True))) for row in rows)
        return
    table = [[_plain(value) for value in row] for row in rows]
    if table:
        _print_table(columns, table, "", (), numbers)
    elif none and sys.stdout.isatty():
        note(none)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names of columns with a number at the end of those that others have too."""
    found: list[str] = []
    for name in names:
        number, distinct = 0, name
        while distinct in found or (number and distinct in names):
            number += 1
            distinct = f"{name}_{number}"
        found.append(distinct)
    return found


def emit_value(record: Any, args: argparse.Namespace) -> None:
    """Print a record of one number: alone for people, as an object in JSON."""
    emit(record, args) if args.json else print(*as_row(record).values())


def print_section(title: str, row: Row) -> None:
    """Print a record for people, under its title and followed by an empty line."""
    print(f"{title}:\n{_record_text(as_row(row))}")


def emit_line(row: Row | Any, text: str, args: argparse.Namespace) -> None:
    """Print one item of an open-ended stream: a JSON object a line, or `text` for people."""
    print(json_object(row) if args.json else printable(text))


def json_object(row: Row | Any) -> Json:
    """Return a row as a JSON object; a value that is `Json` is in it as it is.

    So it is in rows that are in a list of this row.
    """
    shown = (f"{_dumps(name)}: {_json_value(value)}" for name, value in as_row(row).items())
    return Json(f"{{{', '.join(shown)}}}")


def _json_value(value: Any) -> str:
    if type(value) is Json:
        return value
    if type(value) is list and value and type(value[0]) is dict:
        return f"[{', '.join(map(json_object, value))}]"
    return _dumps(value)


def note(text: str) -> None:
    """Print a diagnostic for people on standard error."""
    write_styled(warning_prefix(printable(text), sys.stderr) + "\n", sys.stderr)


def refuse_terminal(option: str, instead: str) -> None:
    """Refuse to print bytes to a terminal (ConfigurationError).

    Args:
        option: the option that prints bytes, with its value.
        instead: what to do other than redirecting the output.
    """
    if sys.stdout.isatty():
        raise ConfigurationError(
            f"{option} prints bytes that could control the terminal: redirect standard output, or"
            f" {instead}",
            option.partition(" ")[0],
        )


def _is_record(value: object) -> bool:
    return dataclasses.is_dataclass(value) or hasattr(value, "_asdict")


def as_row(value: Row | Any) -> dict[str, Any]:
    """Return a record (a mapping, dataclass or named tuple) in types of JSON, without ABSENT."""
    items: Mapping[str, Any]
    if isinstance(value, Mapping):
        items = value
    elif dataclasses.is_dataclass(value):
        items = {
            each.name: found
            for each in dataclasses.fields(value)
            if (found := getattr(value, each.name)) is not ABSENT
        }
    else:
        items = value._asdict()
    return {str(key): _plain(item) for key, item in items.items()}


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON."""
    if value is None or type(value) in (int, str, bool):  # most are
        return value
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping) or _is_record(value):
        return as_row(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def _dumps(row: Any) -> str:
    return _encoder().encode(row)


@cache
def _encoder() -> json.JSONEncoder:
    """Return the encoder; `json.dumps` with options would create one for each value."""
    import json

    return json.JSONEncoder(allow_nan=False)


def _print_json(row: Any) -> None:
    print(_dumps(row))


def _print_json_array(rows: Iterator[dict[str, Any]]) -> None:
    """Print one document with a line per row, so that long lists can be streamed and compared."""
    separator = "["
    for row in rows:
        print(f"{separator}{_dumps(row)}", end="")
        separator = ",\n "
    print("[]" if separator == "[" else "]")


def _cell(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is str:
        return printable(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(nested_text(_plain(value)))


def nested_text(value: Any) -> str:
    """Return a value in types of JSON as text, lists and mappings as JSON."""
    return _dumps(value) if isinstance(value, (list, dict)) else str(value)


def _record_text(row: dict[str, Any]) -> str:
    """The lines of a record, without blanks at their ends."""
    names = [printable(key) for key in row]
    width = max(map(len, names), default=0) + 1
    return "".join(
        f"{f'{name}:':<{width}} {_cell(value)}".rstrip() + "\n"
        for name, value in zip(names, row.values(), strict=True)
    )


def _print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    shortened: str,
    omitted: Sequence[str],
    numbers: Sequence[int] = (),
) -> None:
    if not columns:
        return
    texts = [
        [printable(name), *(_cell(row[at]) for row in rows)] for at, name in enumerate(columns)
    ]
    widths = [max(map(len, column)) for column in texts]
    shown = list(range(len(columns)))
    if shortened and sys.stdout.isatty():
        shown = _fit(columns, widths, shortened, omitted)
    padded = []
    for at in shown:
        is_number = at in numbers or all(
            isinstance(row[at], (int, float, type(None))) for row in rows
        )
        align = str.rjust if is_number else str.ljust
        padded.append([align(_shorten(text, widths[at]), widths[at]) for text in texts[at]])
    if has_colours(sys.stdout):
        padded = [[header, *map(state, cells)] for header, *cells in padded]
    for line in zip(*padded, strict=True):
        write_styled(_COLUMN_GAP.join(line).rstrip() + "\n", sys.stdout)


def _fit(
    columns: Sequence[str], widths: list[int], shortened: str, omitted: Sequence[str]
) -> list[int]:
    """Omit columns and reduce one column's width, as far as the terminal's width demands.

    Returns:
        The columns that are shown.
    """
    most = shutil.get_terminal_size().columns
    shown, at = list(range(len(columns))), columns.index(shortened)

    def excess() -> int:
        return sum(widths[each] for each in shown) + len(_COLUMN_GAP) * (len(shown) - 1) - most

    for column in omitted:
        if excess() > max(widths[at] - _SHORTENED_WIDTH, 0):
            shown.remove(columns.index(column))
    if (too_much := excess()) > 0:
        widths[at] = max(widths[at] - too_much, min(widths[at], _MIN_WIDTH))
    return shown


def _shorten(text: str, width: int) -> str:
    """Return a text of at most `width` characters, its middle replaced if it is longer."""
    if len(text) <= width:
        return text
    end = (width - len(_ELLIPSIS)) // 2
    return f"{text[: width - len(_ELLIPSIS) - end]}{_ELLIPSIS}{text[len(text) - end :]}"


class Progress(Closing):
    """A progress bar on standard error, drawn only when that is a terminal.

    >>> with Progress(10, "verifying", unit="segments") as progress:
    ...     for done in range(10):
    ...         progress.update(done + 1)
    """

    def __init__(
        self, total: int | None, label: str, *, unit: str = "", stream: IO[str] | None = None
    ) -> None:
        """Create a bar over `total` units, or a count if the total is unknown (None)."""
        self._total = total
        self._label = label
        self._unit = f" {unit}" if unit else ""
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._next_draw_ns = 0
        self._drawn_length = 0

    def update(self, done: int, total: int | None = None) -> None:
        """Show that `done` units are done; cheap enough to be called for each item.

        Args:
            done: units done so far.
            total: replaces the total given at first.
        """
        if total is not None:
            self._total = total
        if self._shown and time.monotonic_ns() >= self._next_draw_ns:
            self._next_draw_ns = time.monotonic_ns() + _REDRAW_NS
            self._draw(done)

    def _draw(self, done: int) -> None:
        if self._total:
            share = min(done / self._total, 1.0)
            bar = "#" * int(share * _BAR_WIDTH)
            text = (
                f"{self._label} [{bar:<{_BAR_WIDTH}}] {share:4.0%} {done}/{self._total}{self._unit}"
            )
        else:
            text = f"{self._label} {done}{self._unit}"
        self._write(text)

    def _write(self, text: str) -> None:
        write_styled("\r" + printable(text).ljust(self._drawn_length), self._stream)
        self._stream.flush()
        self._drawn_length = len(text)

    def close(self) -> None:
        """Clear the bar."""
        if self._drawn_length:
            self._write("")
            write_styled("\r", self._stream)
            self._stream.flush()
            self._drawn_length = 0
