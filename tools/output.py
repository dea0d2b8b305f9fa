"""How commands show results: tables and records for people, JSON for machines, progress bars.

Results go to standard output, everything else to standard error. Text that came from a network
or a file is shown with its control characters escaped: a channel must not drive a terminal.
"""

from __future__ import annotations

import argparse
import enum
import functools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from aerotape.closing import Closing
from aerotape.records import field_names
from aerotape.text import printable

Row = Mapping[str, Any]

_COLUMN_GAP: Final = "  "
_BAR_WIDTH: Final = 30
_REDRAW_NS: Final = 100_000_000
_SCALARS: Final = frozenset({int, str, bool, float, type(None)})
_NAMES: Final = frozenset({str})
# Text that is printed at once, bytes: standard output may write each print by itself.
_BLOCK_LENGTH: Final = 1 << 16


def emit(result: Row | Iterable[Row] | Any, args: argparse.Namespace, none: str = "") -> None:
    """Print a record (a mapping or dataclass) or rows (an iterable of them).

    As JSON with `--json`: a record is one object on one line, rows are one array with a row a
    line. Else a record is a list of `name: value` and rows are a table.

    Args:
        result: the record or the rows. Keys are column names; bytes are shown in hexadecimal,
            enumerations by name, None as null or `-`.
        args: the command's arguments, for `json`.
        none: the diagnostic for a person at a terminal when there are no rows.
    """
    if isinstance(result, Mapping) or _is_record(result):
        row = _as_row(result)
        _print_json(row) if args.json else _print_record(row)
        return
    rows = (_as_row(row) for row in result)
    if args.json:
        _print_json_array(rows)
        return
    table = list(rows)
    _print_table(table)
    if none and not table and sys.stdout.isatty():
        note(none)


def section_text(title: str, row: Row) -> str:
    """Return a record for people, under its title and with an empty line behind."""
    return f"{title}:\n{_record_text(_as_row(row))}\n"


def emit_texts(texts: Iterable[str]) -> None:
    """Print many texts, such as sections, as they are."""
    pending: list[str] = []
    length = 0
    for text in texts:
        pending.append(text)
        length += len(text)
        if length > _BLOCK_LENGTH:
            print("".join(pending), end="")
            pending.clear()
            length = 0
    print("".join(pending), end="")


def emit_object(row: Row, name: str, objects: Iterable[str]) -> None:
    """Print a record as JSON, with an array of JSON objects as its last member `name`."""
    print(f"{json_text(row)[:-1]}, {_dumps(name)}: [{', '.join(objects)}]}}")


def json_text(row: Row) -> str:
    """Return a record as a JSON object."""
    return _dumps(_as_row(row))


class RecordTemplate:
    """The text of records that have the same fields, for very many of them.

    >>> template = RecordTemplate(["id", ("state", "channel")], as_json=True)
    >>> template.text(7, template.part({"state": "VALID", "channel": "aeron:ipc"}))
    '{"id": 7, "state": "VALID", "channel": "aeron:ipc"}'
    """

    def __init__(self, fields: Sequence[str | tuple[str, ...]], *, as_json: bool) -> None:
        """Make a template of fields in this order.

        Args:
            fields: their names; several of which many records share the values are a tuple.
            as_json: whether it is for JSON objects, without an end of line, or for people.
        """
        names = [name for each in fields for name in ((each,) if isinstance(each, str) else each)]
        self._as_json = as_json
        self._labels = dict(zip(names, _labels(tuple(names)), strict=True))
        parts = ["%s" if isinstance(each, tuple) else self._member(each) for each in fields]
        self._template = f"{{{', '.join(parts)}}}" if as_json else "".join(parts)

    def _member(self, name: str) -> str:
        label = f"{_dumps(name)}: " if self._as_json else self._labels[name]
        return f"{label.replace('%', '%%')}%s" + ("" if self._as_json else "\n")

    def part(self, row: Row) -> str:
        """Return the text of several fields, to be kept and given as one value."""
        if self._as_json:
            return json_text(row)[1:-1]
        return "".join(f"{_line(self._labels[name], row[name])}\n" for name in row)

    def text(self, *values: object) -> str:
        """Return the text of a record.

        Args:
            values: of the fields: a number, or for people a text that is fit to be shown and not
                empty; where the fields have a tuple, what `part` returned for it.
        """
        return self._template % values


def emit_line(row: Row | Any, text: str, args: argparse.Namespace) -> None:
    """Print one item of an open-ended stream: a JSON object a line, or `text` for people."""
    if args.json:
        _print_json(_as_row(row))
    else:
        print(printable(text))


def note(text: str) -> None:
    """Print a diagnostic for people on standard error."""
    print(printable(text), file=sys.stderr)


def _is_record(value: object) -> bool:
    return bool(field_names(value)) or hasattr(value, "_asdict")


def _as_row(value: Any) -> dict[str, Any]:
    items: Mapping[str, Any]
    if type(value) is dict or isinstance(value, Mapping):
        items = value
        # Nearly all are so, of which a long listing has many.
        if _SCALARS.issuperset(map(type, items.values())) and _NAMES.issuperset(map(type, items)):
            return value if type(value) is dict else dict(items)
    elif hasattr(value, "_asdict"):
        items = value._asdict()
    else:
        items = {name: getattr(value, name) for name in field_names(value)}
    return {
        str(key): item if type(item) in _SCALARS else _plain(item) for key, item in items.items()
    }


def _plain(value: Any) -> Any:
    """Reduce a value to what JSON knows."""
    if type(value) is dict:
        return _as_row(value)
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping) or _is_record(value):
        return _as_row(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def _dumps(row: Any) -> str:
    import json

    return json.dumps(row, ensure_ascii=True)


def _print_json(row: Any) -> None:
    print(_dumps(row))


def _print_json_array(rows: Iterator[dict[str, Any]]) -> None:
    """One document, but a row a line, so that long lists stream and diff."""
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
    return printable(_dumps_nested(_plain(value)))


def _dumps_nested(value: Any) -> str:
    return _dumps(value) if isinstance(value, (list, dict)) else str(value)


def _print_record(row: dict[str, Any]) -> None:
    print(_record_text(row), end="")


def _record_text(row: dict[str, Any]) -> str:
    """The lines of a record, without blanks at their ends."""
    if not row:
        return ""
    # Most are numbers; channels and the like are the same in many records.
    lines = [
        label + str(value)
        if (kind := type(value)) is int
        else _known_line(label, value)
        if kind in _SCALARS
        else _line(label, value)
        for label, value in zip(_labels(tuple(row)), row.values(), strict=True)
    ]
    lines.append("")
    return "\n".join(lines)


def _line(label: str, value: Any) -> str:
    return (label + _cell(value)).rstrip()


_known_line = functools.lru_cache(maxsize=1024, typed=True)(_line)


@functools.lru_cache(maxsize=16)
def _labels(keys: tuple[str, ...]) -> list[str]:
    width = max(map(len, keys)) + 1
    return [f"{key + ':':<{width}} " for key in keys]


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    numeric = [
        all(isinstance(row.get(column), (int, float, type(None))) for row in rows)
        for column in columns
    ]
    widths = [
        max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)
    ]
    for line in [columns, *cells]:
        padded = (
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numeric, strict=True)
        )
        print(_COLUMN_GAP.join(padded).rstrip())


class Progress(Closing):
    """A progress bar on standard error, drawn only when that is a terminal.

    >>> with Progress(10, "verifying", unit="segments") as progress:
    ...     for done in range(10):
    ...         progress.update(done + 1)
    """

    def __init__(
        self, total: int | None, label: str, *, unit: str = "", stream: IO[str] | None = None
    ) -> None:
        """Make a bar over `total` units, or a count when the total is not known (None)."""
        self._total = total
        self._label = label
        self._unit = f" {unit}" if unit else ""
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._next_draw_ns = 0
        self._drawn_length = 0

    def update(self, done: int, total: int | None = None) -> None:
        """Show that `done` units are behind us; cheap enough to be called for each item.

        With a `total` that is known only now.
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
        self._stream.write("\r" + text.ljust(self._drawn_length))
        self._stream.flush()
        self._drawn_length = len(text)

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._drawn_length:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()
            self._drawn_length = 0
