"""Treatment of damaged messages: the read modes of Spark's built-in sources.

A message is damaged if one of its frames fails its checksum. A payload that is decoded but does not
match its schema is treated in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from aerotape._native import ChecksumName

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


def check_mode(
    mode: Mode, checksum: ChecksumName, name: str = "mode", *, decodes: bool = False
) -> None:
    """Raise ConfigurationError for a mode that has no effect without a checksum.

    Args:
        mode: the mode.
        checksum: the checksum by which frames are verified.
        name: name of the option or argument, for the error.
        decodes: whether payloads are decoded.
    """
    if mode != "FAILFAST" and checksum == "none" and not decodes:
        raise ConfigurationError(
            f"{name} {mode} concerns frames that fail their checksum, and none is verified: give "
            "checksum too, crc-32 or crc-32c, as the archive's aeron.archive.record.checksum",
            name,
        )
