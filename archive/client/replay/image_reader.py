"""The image that a stream is read from, and its position, also once the image is gone."""

from __future__ import annotations

from aerotape import _native


class ImageReader:
    """Base of the readers of an image."""

    def __init__(self, position: int) -> None:
        """Start at a position, without an image."""
        self._image: _native.Image | None = None
        self._last_position = position

    @property
    def image(self) -> _native.Image | None:
        """The image; None before it is available and after it was detached."""
        return self._image

    @property
    def position(self) -> int:
        """How far the stream has been read, bytes: the end of the frames taken so far."""
        if self._image is not None:
            self._last_position = max(self._last_position, self._image.position)
        return self._last_position

    def _detach_image(self) -> _native.Image | None:
        """Detach and return the image, retaining its position."""
        self._last_position = self.position
        image, self._image = self._image, None
        return image
