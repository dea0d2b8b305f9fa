"""Ledgers without an archive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from aerotape import QualifiedId
from aerotape.archive.features.ledger.ledger import Ledger


def bare_ledger(ledger_id: QualifiedId) -> Ledger:
    """Return a ledger whose lock and role can be used, but not its log."""
    parts = dict.fromkeys(("worker", "catalog", "recordings", "errors"))
    return Ledger(ledger_id, cast(Any, SimpleNamespace(**parts)), {}, {})
