"""Calls whose result survives an interrupt."""

from __future__ import annotations

from aerotape.uninterrupted import call_uninterrupted, stack_uninterrupted


def test_a_result_is_appended() -> None:
    """The function is called once, with all arguments."""
    results = [1]
    call_uninterrupted(results, pow, 2, 5)
    assert results == [1, 32]


def test_items_are_stacked_in_order() -> None:
    """Items of a later call follow those of an earlier one."""
    stack: list[int] = []
    stack_uninterrupted(stack, sorted, (2, 1))
    stack_uninterrupted(stack, sorted, (4, 3))
    assert [stack.pop() for _ in range(4)] == [1, 2, 3, 4]
