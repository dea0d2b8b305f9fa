"""Java .properties files: what the archive and the driver are configured with, as text.

Comments with # and !, `=`, `:` or blanks between name and value, continuation lines, escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from aerotape.errors import ConfigurationError

MAX_FILE_LENGTH = 4 * 1024 * 1024
_URL_PREFIXES = ("file:", "http:", "https:")
_URL_TIMEOUT_S = 10.0
# Java knows these line ends and these blanks, no others.
_LINE_END = re.compile("\r\n|\n|\r")
_BLANKS = " \t\f"


def read_properties_file(place: Path | str) -> dict[str, str]:
    """Read a Java .properties file: comments, ``=``, ``:`` or blank between, line continuation.

    Args:
        place: a path, or a URL with `file:`, `http:` or `https:`.

    Raises:
        ConfigurationError: the file cannot be read, or is not one of properties.
    """
    try:
        return parse_properties(_LINE_END.split(_read(str(place))))
    except ConfigurationError as error:
        raise ConfigurationError(f"properties file {place}: {error}", str(place)) from error


def _read(place: str) -> str:
    try:
        if place.startswith(_URL_PREFIXES):
            data = _fetch(place)
        else:
            with Path(place).open("rb") as file:
                data = file.read(MAX_FILE_LENGTH + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        why = getattr(why, "strerror", None) or why
        raise ConfigurationError(f"cannot be read: {why}") from error
    if len(data) > MAX_FILE_LENGTH:
        raise ConfigurationError(f"is longer than {MAX_FILE_LENGTH} bytes")
    # What Java writes in these files is Latin-1 with \\uXXXX escapes.
    return data.decode("latin-1")


def _fetch(url: str) -> bytes:
    import urllib.request
    from http.client import HTTPException

    try:
        with urllib.request.urlopen(url, timeout=_URL_TIMEOUT_S) as response:
            data: bytes = response.read(MAX_FILE_LENGTH + 1)
    except HTTPException as error:
        raise ConfigurationError(f"cannot be read: {error}") from error
    return data


def parse_properties(lines: Iterable[str]) -> dict[str, str]:
    """Return the properties that the lines of a .properties file set.

    Raises:
        ConfigurationError: a malformed escape; it says in which line.
    """
    properties: dict[str, str] = {}
    logical, begun = "", 0
    for number, line in enumerate(lines, 1):
        line = line.lstrip(_BLANKS)
        # A backslash alone begins nothing: what follows it may still be a comment.
        if not logical:
            if not line or line[0] in "#!":
                continue
            begun = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            logical += line[:-1]
            continue
        _put(properties, logical + line, begun)
        logical = ""
    if logical:
        _put(properties, logical, begun)
    return properties


def _put(properties: dict[str, str], logical: str, number: int) -> None:
    try:
        key, value = _split_property(logical)
    except ConfigurationError as error:
        raise ConfigurationError(f"line {number}: {error}") from error
    properties[key] = value


_HEX = re.compile("[0-9A-Fa-f]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _split_property(line: str) -> tuple[str, str]:
    """Split a logical line at its first separator that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANKS)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANKS)
    return _unescape(line[:end]), _unescape(value)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character != "\\" or index >= len(text):
            out.append(character)
            continue
        escaped = text[index]
        index += 1
        if escaped == "u":
            digits = text[index : index + 4]
            if not _HEX.fullmatch(digits):
                raise ConfigurationError(f"\\u{digits} is not an escape: \\u and four digits")
            out.append(chr(int(digits, 16)))
            index += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # A character beyond 16 bits comes as two escapes.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
