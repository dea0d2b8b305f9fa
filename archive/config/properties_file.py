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
# A name that may contain escapes, a separator, a value.
_PROPERTY = re.compile(r"((?:\\.|[^=: \t\f\\]|\\\Z)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = re.compile("[0-9A-Fa-f]{4}")


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
    # The last line may end with a backslash.
    for number, line in enumerate([*lines, ""], 1):
        line = line.lstrip(_BLANKS)
        # A line of a backslash alone starts no property: the next may still be a comment.
        if not logical:
            if not line or line[0] in "#!":
                continue
            begun = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            logical += line[:-1]
            continue
        match = _PROPERTY.fullmatch(logical + line)
        assert match is not None
        try:
            properties[_unescaped(match[1])] = _unescaped(match[2])
        except ConfigurationError as error:
            raise ConfigurationError(f"line {begun}: {error}") from error
        logical = ""
    return properties


def _unescaped(text: str) -> str:
    # A character outside the BMP is written as two escapes.
    units = _ESCAPE.sub(_character, text).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] != "u":
        return _ESCAPED.get(escape, escape)
    if not _HEX.fullmatch(escape[1:]):
        raise ConfigurationError(
            f"\\{escape} is not an escape: expected \\u and four hexadecimal digits"
        )
    return chr(int(escape[1:], 16))
