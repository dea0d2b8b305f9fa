"""Treatment of damaged messages: the read modes of Spark's built-in sources.

A message is damaged if one of its frames fails its checksum. A payload that is decoded but does not
match its schema is treated in the same way.
"""

from __future__ import annotations

from typing import Final, Literal

from aerotape.errors import ConfigurationError

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
"""``FAILFAST``: reading ends with a SegmentError that names recording, file, offset and position
(for a payload: CodecError, recording and position). ``DROPMALFORMED``: the message is left out.
``PERMISSIVE``: it is a row with null for its payload (for all typed columns), and the column
`_corrupt`, null in other rows, contains the error message."""

MODES: Final[tuple[Mode, ...]] = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")


def parse_mode(text: str, name: str = "mode") -> Mode:
    """Parse a mode, in any case."""
    for mode in MODES:
        if text.upper() == mode:
            return mode
    raise ConfigurationError(f"{name}: unknown mode {text!r}: expected {', '.join(MODES)}", name)
