"""The log of a daemon on standard error, a message a line."""

from __future__ import annotations

import logging
import sys

from aerotape.formatting import printable


class _LineFormatter(logging.Formatter):
    """A formatter whose messages are one line each, whatever text of a client is in them."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))


def log_to_standard_error(command: str, level: int) -> None:
    """Log messages of a level or a higher one, with the time and the command."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter(f"%(asctime)s aerotape {command}: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
