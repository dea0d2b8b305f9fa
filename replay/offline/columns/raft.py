"""Typed columns of a table whose messages are the records of a raft journal.

=============  ==========================================================================
column
=============  ==========================================================================
term           term of the leader that wrote the record
index          index of the record in the journal
asqn           application sequence number, -1 if the record has none
type           ``INITIAL``, ``CONFIGURATION`` or ``APPLICATION``
lowest_asqn    of an application entry: the first sequence number in it
highest_asqn   of an application entry: the last sequence number in it
checksum_ok    whether the record's checksum is right; if not, its other columns are null
members        of a configuration entry: list of structs with member_id, type and updated
               (milliseconds since 1970)
data           of an application entry: the application's data
=============  ==========================================================================

Numbers are of 64 bits with a sign. The record itself is the column `payload`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from aerotape import _native
from aerotape.codecs.payloads import DecodedMessages
from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow

    from aerotape.replay.offline.selection import Others

RAFT_JOURNAL: Final = "raft-journal"
"""The value of the option and argument `payload` that selects these columns."""


@dataclass(frozen=True)
class RaftColumns:
    """The columns of `PayloadColumns`, for records of a raft journal; can be pickled.

    Attributes:
        others: there are no messages of other kinds; one that is not a record is malformed.
    """

    others: Others = "null"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.arrow_schema.names)

    @cached_property
    def arrow_schema(self) -> pyarrow.Schema:
        """The columns."""
        import pyarrow

        return pyarrow.schema(_native.raft_record_schema())

    def source(self, name: str) -> str:
        """Return the name of a column in the decoder's batches: the same."""
        return name

    def decoder(self, chosen: Collection[str]) -> RaftColumns:
        """Return the decoder of these columns; it builds all."""
        return self

    def decode_messages(
        self,
        payloads: pyarrow.Array,
        *,
        malformed: Literal["fail", "drop", "null"],
        keep_others: bool,
    ) -> DecodedMessages:
        """Decode payloads, as `PayloadSchema.decode_messages`."""
        import pyarrow

        batch, kept, problems, escaped = _native.decode_raft_records(payloads, malformed=malformed)
        chosen = None if kept is None else pyarrow.array(kept)
        return DecodedMessages(pyarrow.record_batch(batch), chosen, problems, escaped)


def raft_columns(payload: str) -> RaftColumns:
    """Return the columns for a value of the option `payload` (ConfigurationError)."""
    if payload.lower() != RAFT_JOURNAL:
        raise ConfigurationError(f"payload: {payload!r} is not {RAFT_JOURNAL}", "payload")
    return RaftColumns()
