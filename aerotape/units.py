"""Sizes and durations as Aeron writes them in properties and channel URIs.

Sizes: a decimal number of bytes with an optional suffix k, m or g (powers of 1024). Durations: a
decimal number with ns, us, ms or s, or a bare number of nanoseconds. Suffixes in either case.
Formatting gives the shortest whole form, which matters: stripped channels are stored as text.
"""

from __future__ import annotations

from aerotape.errors import ConfigurationError

MAX_INT = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1

SIZE_FACTORS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION_FACTORS = (("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))


def _decimal(text: str, name: str, value: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigurationError(f"{name}={value!r} is not {what}", name)
    # Python reads no numbers of more than 4300 digits.
    return int(text) if len(text) < 1_000 else MAX_LONG + 1


def parse_size(name: str, value: str) -> int:
    """Return the bytes that `value` ("128m", "64k", "1408") of a property stands for.

    Raises:
        ConfigurationError: not a size, or more than a signed 64-bit number of bytes.
    """
    factor = SIZE_FACTORS.get(value[-1:].lower(), 1)
    digits = value if factor == 1 else value[:-1]
    size = _decimal(digits, name, value, "a size: digits with an optional k, m or g") * factor
    if size > MAX_LONG:
        raise ConfigurationError(f"{name}={value!r} is larger than {MAX_LONG} bytes", name)
    return size


def parse_duration_ns(name: str, value: str) -> int:
    """Return the nanoseconds that `value` ("10s", "500ms", "1000") stands for.

    Durations too long for a signed 64-bit number are cut to the longest, as Aeron does.

    Raises:
        ConfigurationError: not a duration.
    """
    lowered = value.lower()
    suffix, factor = next(
        (pair for pair in _DURATION_FACTORS if lowered.endswith(pair[0])), ("", 1)
    )
    digits = value[: len(value) - len(suffix)]
    what = "a duration: digits with ns, us, ms or s"
    return min(_decimal(digits, name, value, what) * factor, MAX_LONG)


def format_size(size_bytes: int) -> str:
    """Return the shortest text of a size: 65536 is ``64k``, 1408 is ``1408``."""
    if size_bytes > 0:
        for suffix in ("g", "m", "k"):
            whole, rest = divmod(size_bytes, SIZE_FACTORS[suffix])
            if whole and not rest:
                return f"{whole}{suffix}"
    return str(size_bytes)


def format_duration(duration_ns: int) -> str:
    """Return the shortest text of a duration: 5 000 000 000 is ``5s``."""
    if duration_ns > 0:
        for suffix, factor in reversed(_DURATION_FACTORS):
            whole, rest = divmod(duration_ns, factor)
            if whole and not rest:
                return f"{whole}{suffix}"
    return f"{duration_ns}ns"
