"""Features of Delta tables that a job cannot honour: such a table is refused before a change.

A writer must enforce what a table's protocol, properties and columns ask for. delta-rs does that
for rows that pass through it; a job adds files that its tasks have written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from deltalake import DeltaTable

_HARMLESS: Final = frozenset(
    {
        # Only in use with a property or a column, which are examined.
        "appendOnly", "invariants", "checkConstraints", "generatedColumns", "identityColumns",
        "columnMapping",
        # Files of adding and removing commits are the changes; a time without zone is in no column.
        "changeDataFeed", "timestampNtz",
        # How delta-rs writes the log.
        "v2Checkpoint", "vacuumProtocolCheck",
    }
)  # fmt: skip
_CONSTRAINT: Final = "delta.constraints."
_COLUMN_FEATURES: Final = {
    "delta.invariants": "an invariant",
    "delta.generationExpression": "a generated column",
    "delta.identity.start": "an identity column",
}
# Properties of legacy protocols, which do not list features.
_PROPERTIES: Final = {
    "delta.enableDeletionVectors": "deletion vectors",
    "delta.enableRowTracking": "row tracking",
}


def check_features(table: DeltaTable, name: str, *, replaces: bool) -> None:
    """Refuse a table with a feature that a job cannot honour.

    Args:
        table: the table.
        name: its name in errors.
        replaces: the job may replace rows.

    Raises:
        ConfigurationError: the table has such a feature.
    """
    configuration = table.metadata().configuration
    if replaces and _is_true(configuration, "delta.appendOnly"):
        raise ConfigurationError(
            f"{name} is append-only (delta.appendOnly): its rows cannot be replaced; omit "
            "--overwrite and --if-changed, or remove the property",
            "TABLE",
        )
    for feature in _features(table, configuration):
        raise ConfigurationError(
            f"{name} has {feature}, which a job does not enforce in the files that it adds: remove "
            "it from the table, or name another table",
            "TABLE",
        )


def _features(table: DeltaTable, configuration: Mapping[str, Any]) -> Iterator[str]:
    """Name the features that are in use and not supported."""
    for key, value in configuration.items():
        if key.startswith(_CONSTRAINT):
            yield f"the CHECK constraint {key.removeprefix(_CONSTRAINT)} ({value})"
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        yield "column mapping"
    for key, feature in _PROPERTIES.items():
        if _is_true(configuration, key):
            yield feature
    for field in json.loads(table.schema().to_json())["fields"]:
        if not field.get("nullable", True):
            yield f"NOT NULL on column {field['name']}"
        for key, feature in _COLUMN_FEATURES.items():
            if key in (field.get("metadata") or {}):
                yield f"{feature} ({field['name']})"
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    for feature in sorted(features - _HARMLESS):
        yield f"the table feature {feature}"


def _is_true(configuration: Mapping[str, Any], key: str) -> bool:
    return str(configuration.get(key, "")).lower() == "true"
