"""The context managers of objects that have a `close` method, or a coroutine of that name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Self, TypeVar


class Closing(ABC):
    """Lets a class with a `close` be used in a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClosing:
    """Lets a class with an asynchronous `close` be used in an `async with` statement."""

    async def close(self) -> None:
        """Release the resources. Idempotent."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


C = TypeVar("C", bound=AsyncClosing)


class Opening(Generic[C]):
    """A resource that is being opened: await it, or enter it with `async with`, once."""

    def __init__(self, open_it: Callable[[], Awaitable[C]]) -> None:
        self._open_it = open_it
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, None, C]:
        return self._open_it().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._open_it()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()
