"""Java .properties files, as configuration of the archive and the media driver.

Supported are comments with # and !, `=`, `:` or blanks between name and value, continuation lines
and escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from aerotape.errors import ConfigurationError

# The line ends and blanks of java.util.Properties.
_LINE_END = re.compile("\r\n|\n|\r")
_BLANKS = " \t\f"


def read_properties_file(place: Path | str) -> dict[str, str]:
    """Read a Java .properties file.

    Args:
        place: a path or a `file:` URL.

    Raises:
        ConfigurationError: the file cannot be read, or is not a properties file.
    """
    try:
        return parse_properties(_LINE_END.split(_read(str(place))))
    except ConfigurationError as error:
        raise ConfigurationError(f"properties file {place}: {error}", str(place)) from error


def _read(place: str) -> str:
    if place.startswith(("http:", "https:")):
        raise ConfigurationError("not a local file; download it first")
    try:
        path = unquote(urlsplit(place).path) if place.startswith("file:") else place
        # Java writes these files in Latin-1 with \\uXXXX escapes.
        return Path(path).read_bytes().decode("latin-1")
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"cannot be read: {error}") from error


def parse_properties(lines: Iterable[str]) -> dict[str, str]:
    """Return the properties that the lines of a .properties file set.

    Raises:
        ConfigurationError: a malformed escape; the message has the line number.
    """
    properties: dict[str, str] = {}
    logical, begun = "", 0
    for number, line in enumerate(lines, 1):
        line = line.lstrip(_BLANKS)
        # A line of a backslash alone starts no property: the next may still be a comment.
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
                raise ConfigurationError(
                    f"\\u{digits} is not an escape: expected \\u and four hexadecimal digits"
                )
            out.append(chr(int(digits, 16)))
            index += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # A character outside the BMP is written as two escapes.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
