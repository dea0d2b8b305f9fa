"""The wall clock, in the unit of Aeron's timestamps."""

from __future__ import annotations

import time


def epoch_ms() -> int:
    """Return the time now, milliseconds since 1970 (UTC)."""
    return time.time_ns() // 1_000_000
