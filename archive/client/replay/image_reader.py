"""A stream that is read from an image, and how far, also once the image is gone."""

from __future__ import annotations

from aerotape import _native


class ImageReader:
    """Properties of a stream's reader."""

    def __init__(self, position: int) -> None:
        """Begin at a position, without an image yet."""
        self._image: _native.Image | None = None
        self._last_position = position

    @property
    def image(self) -> _native.Image | None:
        """The stream, None before it is there and after it was given up."""
        return self._image

    @property
    def position(self) -> int:
        """How far the stream has been read, bytes: the end of the frames taken so far."""
        if self._image is not None:
            self._last_position = max(self._last_position, self._image.position)
        return self._last_position

    def _give_up_image(self) -> _native.Image | None:
        """Read on from nothing; return what was read from, to be released or left to others."""
        self._last_position = self.position
        image, self._image = self._image, None
        return image
