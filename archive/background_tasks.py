"""The unfinished tasks of one part of the archive, which advances them in its `do_work`."""

from __future__ import annotations

from aerotape.archive.waiting import Running, Task


class BackgroundTasks:
    """The unfinished tasks of one part of the archive. For the conductor's thread."""

    def __init__(self) -> None:
        self._tasks: list[Running[None]] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, task: Task[None]) -> None:
        """Run a task to its first wait; what it raises is raised."""
        running = Running(task)
        self._tasks.append(running)
        self._advance(running)

    def advance(self) -> None:
        """Continue each task whose wait is over; what one raises ends it and is raised."""
        for running in list(self._tasks):
            self._advance(running)

    def close(self) -> None:
        """Cancel all tasks."""
        while self._tasks:
            self._tasks.pop().close()

    def _advance(self, running: Running[None]) -> None:
        try:
            running.advance()
        finally:
            if running.is_done:
                self._tasks.remove(running)
