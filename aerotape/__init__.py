"""Record Aeron streams, keep them, replay them, and take them to Spark."""

from __future__ import annotations

from aerotape.errors import AerotapeError

__version__ = "0.1.0"

__all__ = ["AerotapeError", "__version__"]
