"""The rule by which a replay is joined with the live stream; one image receives both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aerotape._native import Image

# The greatest distance between replay and live stream at which the live stream is added.
_MAX_WINDOW_BYTES: Final = 32 * 1024 * 1024


def is_near_live(image: Image, missing: int) -> bool:
    """Whether the live stream can be added: what is missing fits into the image's term buffers.

    Args:
        image: of the replay.
        missing: bytes between the image's position and that of the live stream.
    """
    return missing <= min(image.term_buffer_length // 4, _MAX_WINDOW_BYTES)


def is_joined(image: Image, missing: int) -> bool:
    """Whether the replay can be dropped: nothing is missing, and the image receives from both."""
    return missing <= 0 and image.active_transport_count >= 2
