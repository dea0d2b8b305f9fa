"""Options of entity stores."""

from __future__ import annotations

from dataclasses import dataclass

from aerotape.codecs.entity.segments import (
    DEFAULT_SEGMENT_SIZE,
    DEFAULT_SEGMENTS,
    MIN_SEGMENT_SIZE,
)
from aerotape.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a store, the query of its URL.

    Attributes:
        namespace: the tables of one replicator; Cassandra's keyspace.
        segments: the number of segments of heads.
        segment_size: events in a segment of new journals.
        lease_ms: after how long the lock of a replicator that is gone expires.
    """

    namespace: str = "journal"
    segments: int = DEFAULT_SEGMENTS
    segment_size: int = DEFAULT_SEGMENT_SIZE
    lease_ms: int = 15_000

    def __post_init__(self) -> None:
        """Check the values (ConfigurationError)."""
        name = self.namespace
        if not (name.isascii() and name.isidentifier() and name == name.lower() and len(name) < 40):
            raise ConfigurationError(
                f"namespace {name!r}: expected at most 39 of a-z, 0-9 and _, not beginning with a "
                "digit",
                "namespace",
            )
        for option, least in (("segments", 1), ("segment_size", MIN_SEGMENT_SIZE), ("lease_ms", 1)):
            if getattr(self, option) < least:
                raise ConfigurationError(
                    f"{option} must be at least {least}, not {getattr(self, option)}", option
                )
