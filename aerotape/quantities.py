"""Numbers made short enough for people to take in."""

from __future__ import annotations

from typing import Final

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")


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
