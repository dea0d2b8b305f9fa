"""The step runner: steps receive results and errors of the steps that they yield."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aerotape.archive.client.executors.step_runner import StepRunner
from aerotape.archive.client.requests.request import Pause, Steps


def perform(steps: Steps[Any], do: Callable[[Any], Any]) -> Any:
    """Perform steps as the executors do."""
    runner = StepRunner(steps)
    for step in runner:
        with runner:
            runner.value = do(step)
    return runner.result


def test_each_step_receives_its_result() -> None:
    """The caller receives the return value; no result is passed twice."""

    def steps() -> Steps[list[Any]]:
        return [(yield Pause(1)), (yield Pause(2)), (yield Pause(3))]

    assert perform(steps(), lambda step: step.duration_ns * 10) == [10, 20, 30]

    def nothing(step: Pause) -> int | None:
        return 7 if step.duration_ns == 1 else None

    assert perform(steps(), nothing) == [7, None, None]


def test_steps_can_handle_errors() -> None:
    """The steps continue with another step, whose result is not the error's."""

    def steps() -> Steps[list[Any]]:
        try:
            yield Pause(0)
        except ZeroDivisionError:
            return ["handled", (yield Pause(1))]
        return []

    assert perform(steps(), lambda step: 1 // step.duration_ns) == ["handled", 1]


def test_unhandled_errors_are_raised() -> None:
    """The steps' cleanup runs first."""
    ended = []

    def steps() -> Steps[None]:
        try:
            yield Pause(0)
        finally:
            ended.append(True)

    with pytest.raises(ZeroDivisionError):
        perform(steps(), lambda step: 1 // step.duration_ns)
    assert ended == [True]


def test_an_interrupt_ends_the_steps_at_once() -> None:
    """The steps cannot handle it: they are closed before it is raised."""
    ended = []
    begun = []

    def steps() -> Steps[None]:
        try:
            yield Pause(0)
        except BaseException as error:
            ended.append(type(error))
            raise

    def interrupt(step: Pause) -> None:
        begun.append(step)
        raise KeyboardInterrupt

    pending = steps()
    with pytest.raises(KeyboardInterrupt):
        perform(pending, interrupt)
    assert (ended, len(begun)) == ([GeneratorExit], 1)
