"""The duty cycle that the parts of the conductor have in common."""

from __future__ import annotations

from typing import Protocol


class Agent(Protocol):
    """A part of the archive that the conductor advances, one step per duty cycle."""

    @property
    def wants_within_ns(self) -> int | None:
        """Nanoseconds within which `do_work` has to be called; None when the agent is idle."""

    def do_work(self) -> None:
        """Advance without waiting.

        Raises:
            ClosedError: the media driver is lost.
        """

    def close(self) -> None:
        """End what is in progress; the archive closes."""
