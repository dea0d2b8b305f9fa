"""Steps that are being performed, in whichever way: what they wait for, and what they return."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from aerotape.archive.client.requests.request import Step, Steps

T = TypeVar("T")


class UnderWay(Generic[T]):
    """Iterate it for the steps, and perform each in a `with` block.

    >>> for step in under_way:
    ...     with under_way:
    ...         under_way.value = perform(step)

    What the block raises is for the steps to handle, and does not leave it. Only an interrupt or a
    cancellation does, and ends them.

    Attributes:
        value: what came of the step, for those that follow.
    """

    def __init__(self, steps: Steps[T]) -> None:
        """Begin with the first step."""
        self.value: Any = None
        self._steps = steps
        self._error: Exception | None = None
        self._result: T | None = None

    @property
    def result(self) -> T:
        """What the steps have returned, once there are no more."""
        return cast(T, self._result)

    def __iter__(self) -> Iterator[Step]:
        while True:
            value, error = self.value, self._error
            self.value = self._error = None
            try:
                step = self._steps.send(value) if error is None else self._steps.throw(error)
            except StopIteration as end:
                self._result = end.value
                return
            yield step

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._error = error
            return True
        if error is not None:
            self._steps.close()
        return False
