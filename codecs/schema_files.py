"""Read SBE schemas from files: XML, or the representation written by sbe-tool (`.sbeir`)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.codecs.ir import read_schema
from aerotape.codecs.sbe_tool import find_sbe_jar, run_sbe_tool
from aerotape.codecs.schema import Schema
from aerotape.errors import ConfigurationError
from aerotape.url_path import UrlPath

# After the schema id, sbe-tool writes the version of its representation, which is 0: XML does not
# contain these bytes in any encoding.
_IR_VERSION: Final = slice(4, 8)


def load_schema(
    schema_file: str | Path,
    sbe_jar: str | Path | None = None,
    storage: StorageOptions = NO_OPTIONS,
) -> Schema:
    """Read a schema, XML (through sbe-tool) or `.sbeir`, detected by content.

    Args:
        schema_file: a path, or the URL of a file in remote storage.
        sbe_jar: as for `schema_from_xml`.
        storage: options of the remote storage.

    Raises:
        CodecError: sbe-tool rejects it; it accepts XML only in files named `.xml`.
        ConfigurationError: the file cannot be read; for XML: the jar or Java are missing.
        StorageError: the remote storage cannot be accessed.
    """
    source = parse_location(schema_file, "schema")
    if not isinstance(source, UrlPath):
        return _load(source, sbe_jar)
    from aerotape.catalog.remote.object_folder import ObjectFolder

    try:
        content = ObjectFolder(UrlPath(source.parent), storage).read(source.name)
    except FileNotFoundError:
        raise ConfigurationError(
            f"cannot read the SBE schema {source}: no such file", "schema"
        ) from None
    with tempfile.TemporaryDirectory(prefix="aerotape-sbe-") as folder:
        copy = Path(folder) / source.name
        copy.write_bytes(content)
        return _load(copy, sbe_jar)


def _load(source: Path, sbe_jar: str | Path | None) -> Schema:
    try:
        with source.open("rb") as file:
            head = file.read(8)
        if head[_IR_VERSION] == bytes(4):
            return read_schema(source)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the SBE schema {source}: {error.strerror}", "schema"
        ) from error
    return schema_from_xml(source, sbe_jar)


def schema_from_xml(schema_file: str | Path, sbe_jar: str | Path | None = None) -> Schema:
    """Read an XML schema through sbe-tool, which needs Java and its jar.

    Args:
        schema_file: the schema; files that it includes are in the same folder.
        sbe_jar: `sbe-all-*.jar`; found by `find_sbe_jar` if None.

    Raises:
        CodecError: sbe-tool rejects the schema.
        ConfigurationError: schema, jar or Java are missing.
    """
    jar = find_sbe_jar() if sbe_jar is None else Path(sbe_jar)
    with tempfile.TemporaryDirectory(prefix="aerotape-sbe-") as folder:
        return read_schema(run_sbe_tool(Path(schema_file), jar, Path(folder)))
