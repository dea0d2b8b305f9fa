"""Calls whose result survives an interrupt.

The handler of a signal may raise (Ctrl-C does), and Python runs it between two byte codes: after
a call has returned and before its result is stored. The result is then lost. For messages polled
from a stream that is data loss, and after an offer it is unknown whether the request was sent.
Python never runs a handler while a function written in C iterates over a `map` of another C
function, so these functions call and store in one such step.

For the same reason use `threading.Lock`, written in C, and not `threading.Condition`: that is
written in Python, and an interrupt may leave its lock in the wrong state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

T = TypeVar("T")


def call_uninterrupted(results: list[T], function: Callable[..., T], *arguments: object) -> None:
    """Call a native function (with arguments) and append its result to a list."""
    results.extend(map(function, *((each,) for each in arguments)))


def stack_uninterrupted(
    stack: list[T], function: Callable[..., Iterable[T]], *arguments: object
) -> None:
    """Call a native function (with arguments) and put the list that it returns under a stack.

    The first item of all is the last of the list, where it is removed without a call.
    """
    returned = map(function, *((each,) for each in arguments))
    stack[:0] = chain.from_iterable(map(reversed, returned))  # type: ignore[arg-type]
