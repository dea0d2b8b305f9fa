"""What becomes of messages with frames that fail their checksum: the modes of Spark's sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from aerotape._native import ChecksumName

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
"""``FAILFAST``: reading ends with a SegmentError that names recording, file, offset and position.
``DROPMALFORMED``: the message is left out. ``PERMISSIVE``: it is a row with null for its payload,
and the column `_corrupt`, null elsewhere, says what such an error would say."""

MODES: Final[tuple[Mode, ...]] = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")


def parse_mode(text: str, name: str = "mode") -> Mode:
    """Parse a mode, in any case."""
    for mode in MODES:
        if text.upper() == mode:
            return mode
    raise ConfigurationError(f"{name}: unknown mode {text!r} (there are {', '.join(MODES)})", name)


def check_mode(mode: Mode, checksum: ChecksumName, name: str = "mode") -> None:
    """Refuse a mode that would have nothing to decide about, as no frame is verified."""
    if mode != "FAILFAST" and checksum == "none":
        raise ConfigurationError(
            f"{name} {mode} is about frames that fail their checksum, and none is verified: give "
            "checksum too, crc-32 or crc-32c, whichever the archive's "
            "aeron.archive.record.checksum was",
            name,
        )
