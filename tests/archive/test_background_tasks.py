"""Background tasks: generators advanced once a duty cycle."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from aerotape.archive.background_tasks import BackgroundTasks, Task, outcome


def test_tasks_advance_side_by_side() -> None:
    """Each task runs to its next yield, at the start and in each duty cycle, until it returns."""
    steps: list[str] = []

    def task(name: str, count: int) -> Task[None]:
        for number in range(count):
            steps.append(f"{name}{number}")
            yield

    tasks = BackgroundTasks()
    tasks.start(task("a", 1))
    tasks.start(task("b", 2))
    assert (steps, len(tasks)) == (["a0", "b0"], 2)
    tasks.advance()
    assert (steps, len(tasks)) == (["a0", "b0", "b1"], 1)
    tasks.advance()
    assert len(tasks) == 0


def test_an_exception_ends_a_task_and_is_raised() -> None:
    """After the exception of one task the others continue."""
    futures: list[Future[int]] = [Future(), Future()]
    results: list[int] = []

    def task(future: Future[int]) -> Task[None]:
        results.append((yield from outcome(future)))

    tasks = BackgroundTasks()
    for future in futures:
        tasks.start(task(future))
    futures[0].set_exception(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        tasks.advance()
    futures[1].set_result(7)
    tasks.advance()
    assert (results, len(tasks)) == ([7], 0)


def test_closing_cancels_the_tasks() -> None:
    """The cleanup code of the tasks runs."""
    closed: list[bool] = []

    def task() -> Task[None]:
        try:
            yield
        finally:
            closed.append(True)

    tasks = BackgroundTasks()
    tasks.start(task())
    tasks.close()
    assert (closed, len(tasks)) == ([True], 0)
