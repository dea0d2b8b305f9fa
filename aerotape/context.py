"""The context manager of objects that have a `close` method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Lets a class with a `close` be used in a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
