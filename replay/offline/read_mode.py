"""What becomes of damaged messages: the modes of Spark's own sources.

Damaged is a message with a frame that fails its checksum. Where payloads are decoded, one that is
not what its schema says is dealt with in the same way.
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
`_corrupt`, null elsewhere, says what such an error would say."""

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
    """Refuse a mode that would have nothing to decide about.

    Args:
        mode: the mode.
        checksum: what frames are verified with.
        name: of the option or argument that is the mode.
        decodes: whether payloads are decoded, which may be malformed.
    """
    if mode != "FAILFAST" and checksum == "none" and not decodes:
        raise ConfigurationError(
            f"{name} {mode} concerns frames that fail their checksum, and none is verified: give "
            "checksum too, crc-32 or crc-32c, as the archive's aeron.archive.record.checksum",
            name,
        )
