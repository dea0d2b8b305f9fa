"""Java .properties files: what the archive and the driver are configured with, as text.

Comments with # and !, `=`, `:` or blanks between name and value, continuation lines, escapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aerotape.errors import ConfigurationError


def read_properties_file(path: Path | str) -> dict[str, str]:
    """Read a Java .properties file: comments, ``=``, ``:`` or blank between, line continuation.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        # What Java writes in these files is Latin-1 with \\uXXXX escapes.
        text = Path(path).read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigurationError(f"cannot read properties file {path}: {error.strerror}") from error
    return parse_properties(text.splitlines())


def parse_properties(lines: Iterable[str]) -> dict[str, str]:
    """Return the properties that the lines of a .properties file set."""
    properties: dict[str, str] = {}
    logical = ""
    for line in lines:
        line = line.lstrip(" \t\f")
        if not logical and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            logical += line[:-1]
            continue
        key, value = _split_property(logical + line)
        properties[key] = value
        logical = ""
    if logical:
        key, value = _split_property(logical)
        properties[key] = value
    return properties


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _split_property(line: str) -> tuple[str, str]:
    """Split a logical line at its first separator that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
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
            try:
                out.append(chr(int(text[index : index + 4], 16)))
            except ValueError:
                raise ConfigurationError(f"malformed \\u escape in properties: {text!r}") from None
            index += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)
