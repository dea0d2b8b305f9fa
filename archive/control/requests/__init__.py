"""Handlers of control requests, one for each, in one table; those of features are in theirs.

A handler is called for an active session that owns the image of the request; it responds at once,
or a part of `Services` responds later.
"""

from __future__ import annotations

from aerotape.archive.control.feature import Handlers
from aerotape.archive.control.requests import (
    queries,
    recording,
    removal,
    replay,
    replication,
)

HANDLERS: Handlers = {
    **recording.HANDLERS,
    **removal.HANDLERS,
    **queries.HANDLERS,
    **replay.HANDLERS,
    **replication.HANDLERS,
}

CHANGES = frozenset({**recording.HANDLERS, **removal.HANDLERS, **replication.HANDLERS})
"""Requests that change the catalog, or have it changed."""
