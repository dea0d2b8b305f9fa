"""The commands by purpose, as `aerotape --help` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "run an archive": ("archive", "driver", "doctor"),
    "record channels and streams": ("record", "extend", "stop", "subscriptions", "signals"),
    "look at a running archive": ("ping", "list", "find", "position", "counters", "errors"),
    "replay and replicate": ("replay", "stop-replay", "replicate", "stop-replication"),
    "send and read messages": ("publish", "subscribe", "cat", "sql", "schema"),
    "delete and change": ("truncate", "purge", "segments", "update-channel", "retain"),
    "read and repair archive directories": ("tool", "plot", "table", "parquet"),
    "write and read ledgers, entities and journals": ("ledger", "entity", "journal"),
    "set up and measure": ("users", "completion", "bench"),
}
"""Names of commands by purpose; each command is in one group."""
