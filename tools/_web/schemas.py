"""The schemas with which payloads are shown, and what is stated of them when the service starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.schema_options import timestamp_fields
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.selection import Selection
from aerotape.tools._cli.selecting import flag
from aerotape.tools.messages._printing import payload_schema


def schema_selections(files: Sequence[Path], options: Mapping[str, Any]) -> list[Selection]:
    """Return a selection for each schema, by which its decoder is created.

    Of several schemas, each has the timestamps that it has fields for.

    Args:
        files: SBE schemas, XML or .sbeir.
        options: values of the options by which fields are decoded, by name.

    Raises:
        ConfigurationError: a file cannot be read, two have the same name, or there are options
            without any file.
        CodecError: it is not a schema.
    """
    named: dict[str, Path] = {}
    for path in files:
        if (other := named.setdefault(path.stem, path)) is not path:
            raise ConfigurationError(
                f"--schema {other} and --schema {path} would both be known as {path.stem!r}, the"
                " name of the file without its ending: rename one",
                "--schema",
            )
    if not files:
        Selection.of(options, flag)
        return []
    timestamps: Mapping[str, str] = options.get("timestamps") or {}
    if not timestamps or len(files) == 1:
        return [Selection.of({**options, "schema": path}, flag) for path in files]
    fields = [timestamp_fields(load_schema(path)) for path in files]
    # A name that no schema has is left to all of them, which refuse it.
    others = set(timestamps).difference(*fields)
    return [
        Selection.of(
            {
                **options,
                "schema": path,
                "timestamps": {
                    name: unit for name, unit in timestamps.items() if name in known | others
                },
            },
            flag,
        )
        for path, known in zip(files, fields, strict=True)
    ]


def payload_schemas(selections: Iterable[Selection]) -> dict[str, PayloadSchema]:
    """Return the decoder of each schema, by the name of its file without the ending.

    Raises:
        ConfigurationError: a schema cannot be read, or has no field of the timestamps.
        CodecError: it is not a schema.
    """
    read = {Path(str(each.schema)).stem: payload_schema(each) for each in selections}
    return {name: schema for name, schema in read.items() if schema is not None}
