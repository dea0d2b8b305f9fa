"""Text for messages: numbers with units, escaped text."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from operator import attrgetter
from typing import Final

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
# What `surrogateescape` decodes a byte to.
_NOT_UTF8: Final = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
_TEXT_PART: Final = 1 << 12


def not_installed(module: str, extra: str) -> str:
    """Return the message for a missing module that an extra of this package installs."""
    return (
        f"{module} is not installed: `pip install '.[{extra}]'` in aerotape's checkout, or "
        f"`pip install 'WHEEL[{extra}]'` with the wheel that `make wheel` builds there"
    )


def printable(text: str, but: str = "") -> str:
    """Return `text` with control characters escaped, safe to print to a terminal or a log.

    Escaped are those of C0 and C1, line separators, characters that change the direction of text,
    lone surrogates, and all others that Unicode does not consider printable.

    Args:
        but: characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text
    )


def utf8_text(data: bytes, limit: int | None = None) -> str:
    r"""Return the text of bytes; those that are not UTF-8 as `\xNN`, as `backslashreplace` does.

    Args:
        data: the bytes.
        limit: the most characters of the text; None: all.
    """
    with suppress(UnicodeDecodeError):
        return data.decode()[:limit]
    # Much faster than that error handler, which Python calls for each byte.
    text = data.decode(errors="surrogateescape")
    found: list[str] = []
    left = len(data) * 4 if limit is None else limit
    for at in range(0, len(text), _TEXT_PART):
        if left <= 0:
            break
        found.append(text[at : at + _TEXT_PART].translate(_NOT_UTF8)[:left])
        left -= len(found[-1])
    return "".join(found)


def json_number(value: float) -> float | str:
    """Return a number, those that JSON lacks as the text `NaN`, `Infinity` or `-Infinity`."""
    if value - value == 0:
        return value
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]


def bytes_text(count: float) -> str:
    """Return a number of bytes in three digits and a binary unit: ``1.5 MiB``, ``512 B``."""
    return _scaled(count, 1024, _BINARY, " ")


def count_text(count: float) -> str:
    """Return a number in three digits and a decimal prefix: ``12.3k``, ``0.5``, ``7``."""
    return _scaled(count, 1000, _DECIMAL, "")


def _scaled(count: float, base: int, units: tuple[str, ...], space: str) -> str:
    at = 0
    # 999.5 would be shown as 1000.
    while abs(count) >= 999.5 and at + 1 < len(units):
        count /= base
        at += 1
    if at == 0 and count == int(count):
        text = f"{int(count)}"
    else:
        text = f"{count:.2f}" if abs(count) < 9.995 else f"{count:.{int(abs(count) < 99.95)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text}{space}{units[at]}".rstrip()


def shown(thing: object, *names: str) -> str:
    """Return the `repr` of a resource: its class, some attributes, and whether it is closed.

    Unreadable attributes, as of an object whose `__init__` failed, are omitted.
    """
    words = [type(thing).__name__]
    for name in names:
        with suppress(Exception):
            value = attrgetter(name)(thing)
            text = value.name if isinstance(value, Enum) else repr(value)
            words.append(f"{name.rpartition('.')[2].lstrip('_')}={text}")
    with suppress(Exception):
        if attrgetter("is_closed")(thing):
            words.append("closed")
    return f"<{' '.join(words)}>"
