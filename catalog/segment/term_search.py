"""Searches in a recording by terms, which no message spans, so that each can be read alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def last_term_before(
    start: int, limit: int, term_length: int, is_before: Callable[[int, int], bool]
) -> int:
    """Find the last term that begins before what is searched for, by binary search.

    For recordings in which something rises, such as the ids of messages.

    Args:
        start: start position of the recording, bytes.
        limit: position after its last byte.
        term_length: of the stream, bytes.
        is_before: whether the first message between two positions is at or before what is
            searched for; False when there is none.

    Returns:
        The position of the term's first byte in the recording; `start` when it is in the first
        term, or before the recording.
    """
    begins = range(start & -term_length, limit, term_length)
    low, high = 0, len(begins)
    while high - low > 1:
        middle = (low + high) // 2
        if is_before(begins[middle], begins[high] if high < len(begins) else limit):
            low = middle
        else:
            high = middle
    return max(start, begins[low]) if begins else start


def terms_from_last(begin: int, end: int, term_length: int) -> Iterator[tuple[int, int]]:
    """Iterate the parts of a range that are in one term each, the last one first."""
    while begin < end:
        since = max(begin, (end - 1) & -term_length)
        yield since, end
        end = since
