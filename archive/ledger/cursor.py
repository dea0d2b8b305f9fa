"""The sync cursor: up to which entry a ledger is on an archive's storage without a gap."""

from __future__ import annotations

from bisect import bisect_left

from aerotape.protocol import NULL_VALUE


class SyncCursor:
    """The last entry of the unbroken synced run from entry 0, and the synced entries after it.

    Entries can be synced in any order. The ranges after the run are sorted, disjoint and not
    adjacent to each other or to the run.
    """

    def __init__(self, last_add_synced: int = NULL_VALUE) -> None:
        """Begin with the entries up to `last_add_synced`, NULL_VALUE for none."""
        self._last_add_synced = last_add_synced
        self._ranges: list[tuple[int, int]] = []

    @property
    def last_add_synced(self) -> int:
        """The last entry up to which all are synced; NULL_VALUE for none."""
        return self._last_add_synced

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last entry of each range of synced entries after `last_add_synced`."""
        return tuple(self._ranges)

    def synced(self, first: int, last: int | None = None) -> int:
        """Take entries as synced; those that are so already do not matter.

        Args:
            first: entry id.
            last: the last entry of the range. Default: `first`.

        Returns:
            The last add synced.
        """
        last = first if last is None else last
        first = max(first, self._last_add_synced + 1)
        if first <= last:
            self._insert(first, last)
            self._absorb()
        return self._last_add_synced

    def confirmed(self, last_add_confirmed: int) -> int:
        """Take all entries up to `last_add_confirmed` as synced: its quorum has reported them.

        Returns:
            The last add synced.
        """
        return self.synced(0, last_add_confirmed)

    def _insert(self, first: int, last: int) -> None:
        """Merge a range with those that it overlaps or touches."""
        begin = bisect_left(self._ranges, first - 1, key=lambda each: each[1])
        end = begin
        while end < len(self._ranges) and self._ranges[end][0] <= last + 1:
            end += 1
        if begin < end:
            first = min(first, self._ranges[begin][0])
            last = max(last, self._ranges[end - 1][1])
        self._ranges[begin:end] = [(first, last)]

    def _absorb(self) -> None:
        if self._ranges[0][0] == self._last_add_synced + 1:
            self._last_add_synced = self._ranges.pop(0)[1]

    def __repr__(self) -> str:
        return f"SyncCursor({self._last_add_synced}, ranges={self._ranges})"
