"""The one engine that advances generators of steps, for every executor."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from aerotape.archive.client.requests.request import Step, Steps

T = TypeVar("T")


class StepRunner(Generic[T]):
    """Advances a generator of steps. The executor performs each step in a `with` block.

    >>> for step in runner:
    ...     with runner:
    ...         runner.value = perform(step)

    An exception of the block is raised in the generator, and does not leave the block. Only an
    interrupt or a cancellation does, and closes the generator.

    Attributes:
        value: the result of the step, sent into the generator.
        error: the error of the step, raised in the generator.
    """

    def __init__(self, steps: Steps[T]) -> None:
        """Create a runner; the generator starts with the first `next_step`."""
        self.value: Any = None
        self.error: Exception | None = None
        self._steps = steps
        self._result: T | None = None

    @property
    def result(self) -> T:
        """The return value of the generator, after its last step."""
        return cast(T, self._result)

    def next_step(self) -> Step | None:
        """Resume the generator with the outcome of the last step; None at its end."""
        value, error = self.value, self.error
        self.value = self.error = None
        try:
            return self._steps.send(value) if error is None else self._steps.throw(error)
        except StopIteration as end:
            self._result = end.value
            return None

    def __iter__(self) -> Iterator[Step]:
        while (step := self.next_step()) is not None:
            yield step

    def close(self) -> None:
        """Close the generator. Idempotent."""
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        if error is not None:
            self.close()
        return False
