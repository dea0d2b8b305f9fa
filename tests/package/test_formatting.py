"""Representations of objects, in any state."""

from __future__ import annotations

from enum import Enum

from aerotape.formatting import shown


class State(Enum):
    RUNNING = 1


class Part:
    name = "left"


class Thing:
    def __init__(self) -> None:
        self.path = "a path"
        self.state = State.RUNNING
        self.is_closed = False
        self._part = Part()

    @property
    def broken(self) -> int:
        raise RuntimeError("not now")


def test_attributes_are_shown_by_name() -> None:
    """Strings are quoted, states are names, and closed objects are marked."""
    thing = Thing()
    assert shown(thing, "path", "state", "_part.name") == (
        "<Thing path='a path' state=RUNNING name='left'>"
    )
    thing.is_closed = True
    assert shown(thing, "state") == "<Thing state=RUNNING closed>"


def test_unreadable_attributes_are_omitted() -> None:
    """An object whose `__init__` failed, or an attribute that raises, is shown without it."""
    assert shown(Thing.__new__(Thing), "path", "broken") == "<Thing>"
