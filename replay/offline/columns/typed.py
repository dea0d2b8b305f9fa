"""The typed columns of a selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aerotape.catalog.location import StorageOptions
    from aerotape.codecs.payload_plan import Target
    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.selection import Selection


def typed_columns(
    selection: Selection, storage: StorageOptions, target: Target = "arrow"
) -> TypedColumns | None:
    """Return the typed columns of a selection's schema or kind of payload; None without either.

    Args:
        selection: the selection.
        storage: options of the remote storage of the schema's URL.
        target: whose types the columns have.

    Raises:
        CodecError: the file is not an SBE schema, or has no such template.
        ConfigurationError: the file cannot be read, or the kind of payload is unknown.
        StorageError: the remote storage cannot be reached, or refuses access.
    """
    if selection.payload is not None:
        from aerotape.replay.offline.columns.raft import raft_columns

        return raft_columns(selection.payload)
    if selection.schema is None:
        return None
    from aerotape.replay.offline.columns.payloads import PayloadColumns

    return PayloadColumns.of(selection, selection.schema, target=target, storage=storage)
