"""Read SBE schemas from files: XML, or the representation written by sbe-tool (`.sbeir`)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.codecs.ir import parse_schema
from aerotape.codecs.schema import Schema
from aerotape.codecs.xml_schema.document import MAX_BYTES
from aerotape.codecs.xml_schema.reader import read_xml
from aerotape.errors import CodecError, ConfigurationError
from aerotape.url_path import UrlPath

# After the schema id, sbe-tool writes the version of its representation, which is 0: XML does not
# contain these bytes in any encoding.
_IR_VERSION: Final = slice(4, 8)
_Read = Callable[[str], bytes]


def load_schema(schema_file: str | Path, storage: StorageOptions = NO_OPTIONS) -> Schema:
    """Read a schema, XML or `.sbeir`, detected by content.

    Files that an XML schema includes are regular files in its folder or below it, also after links
    are followed. If the schema is a link, they may be in the folder of the file that it leads to.

    Args:
        schema_file: a path, or the URL of a file in remote storage.
        storage: options of the remote storage.

    Raises:
        SchemaError: the XML has mistakes.
        CodecError: the `.sbeir` file is not valid; or the schema is too large.
        ConfigurationError: the file cannot be read.
        StorageError: the remote storage cannot be accessed.
    """
    source = parse_location(schema_file, "schema")
    try:
        read, read_included = _readers(source, storage)
        content = read(source.name)
    except OSError as error:
        reason = error.strerror or "no such file"
        raise ConfigurationError(
            f"cannot read the SBE schema {source}: {reason}", "schema"
        ) from error
    return _parsed(source, content, read_included)


def schema_of(content: bytes, name: str) -> Schema:
    """Parse the content of a schema file that was read elsewhere, such as standard input.

    Files that an XML schema includes are in the current folder or below it.

    Args:
        content: XML or `.sbeir`.
        name: what errors call it.

    Raises:
        SchemaError, CodecError: as for `load_schema`.
    """
    source = Path(name)
    return _parsed(source, content, _readers(source, NO_OPTIONS)[1])


def _parsed(source: Path, content: bytes, read_included: _Read) -> Schema:
    """Parse a schema (SchemaError, CodecError)."""
    if len(content) > MAX_BYTES:
        raise CodecError(f"{source}: the schema is larger than {MAX_BYTES >> 20} MiB")
    if content[_IR_VERSION] == bytes(4):
        try:
            return parse_schema(content)
        except CodecError as error:
            raise CodecError(f"{source}: {error}") from None
    return read_xml(source, content, read_included)


def _readers(source: Path, storage: StorageOptions) -> tuple[_Read, _Read]:
    """Return the functions that read the schema, and a file of its folder that it includes."""
    folder = source.parent
    if isinstance(folder, UrlPath):
        from aerotape.catalog.remote.object_folder import ObjectFolder

        read_object = ObjectFolder(folder, storage).read
        return read_object, read_object
    folders = (os.path.realpath(folder), Path(os.path.realpath(source)).parent)

    def read(name: str) -> bytes:
        with (folder / name).open("rb") as file:
            return file.read(MAX_BYTES + 1)

    def read_included(name: str) -> bytes:
        path = os.path.realpath(folder / name)
        if not any(Path(path).is_relative_to(each) for each in folders):
            raise OSError(errno.EPERM, "a link leads out of the folder of the schema")
        # Without waiting for the writer of a pipe.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read(MAX_BYTES + 1)

    return read, read_included
