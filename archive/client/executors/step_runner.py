"""The one engine that advances generators of steps, for every executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

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
        result: the return value of the generator, after its last step.
    """

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self.value: Any = None
        self._error: Exception | None = None
        self._steps = steps

    def __iter__(self) -> Iterator[Step]:
        while True:
            value, error = self.value, self._error
            self.value = self._error = None
            try:
                step = self._steps.send(value) if error is None else self._steps.throw(error)
            except StopIteration as end:
                self.result = end.value
                return
            yield step

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, Exception):
            self._error = error
            return True
        if error is not None:
            self._steps.close()
        return False
