"""Division of a limited batch of a streaming query among recordings.

Recordings share a limit equally, and the unused part of a share goes to the others. A batch ends
after whole messages. So that a message larger than its recording's share does not wait for ever,
one recording of each batch, in rotation, takes at least one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.replay.offline.boundaries import LastMessage, last_message

if TYPE_CHECKING:
    from aerotape.replay.offline.read_progress import ReadProgress
    from aerotape.spark.streaming.backlog import Backlog


@dataclass(slots=True)
class Allowance:
    """The limits of the rest of a batch.

    Attributes:
        max_bytes: bytes of recordings; no limit when None.
        max_messages: messages; no limit when None.
    """

    max_bytes: int | None = None
    max_messages: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """Return whether there is no limit."""
        return self.max_bytes is None and self.max_messages is None

    def share(self, of: int) -> Allowance:
        """Return an equal share for each of so many recordings."""
        return Allowance(
            None if self.max_bytes is None else max(self.max_bytes, 0) // of,
            None if self.max_messages is None else self.max_messages // of,
        )

    def last_of(self, backlog: Backlog) -> LastMessage | None:
        """Return the last message of a backlog within the limits (SegmentError)."""
        return last_message(backlog.range, self.max_bytes, self.max_messages)

    def take(self, backlog: Backlog, last: LastMessage | None, sign: int = 1) -> None:
        """Subtract the messages up to `last`. A single message may exceed the limit."""
        if last is None:
            return
        if self.max_bytes is not None:
            self.max_bytes -= sign * (last.end_position - backlog.range.from_position)
        if self.max_messages is not None:
            self.max_messages -= sign * last.count

    def give_back(self, backlog: Backlog, last: LastMessage | None) -> None:
        """Undo `take`."""
        self.take(backlog, last, -1)


_ONE_MESSAGE = Allowance(max_messages=1)


def admit(
    backlogs: Sequence[Backlog], allowance: Allowance, turn: int = -1
) -> tuple[dict[int, ReadProgress], int]:
    """Choose what a batch reads: at least one message, if there is a whole one.

    Args:
        backlogs: the unread parts of recordings.
        allowance: the limits of the batch; reduced by what it reads.
        turn: key of the recording that was first in the previous batch.

    Returns:
        How far recordings have been read after the batch, perhaps without those of which nothing
        was read; and the key of the recording that was first.

    Raises:
        SegmentError: a segment file is missing, too short or damaged.
    """
    after: dict[int, ReadProgress] = {}
    waiting = sorted(backlogs, key=lambda each: each.range.length)
    if not allowance.is_unlimited:
        cycle = sorted(backlogs, key=lambda each: (each.key <= turn, each.key))
        share = allowance.share(max(1, sum(each.range.length > 0 for each in backlogs)))
        for backlog in cycle:
            if share.last_of(backlog) is not None:
                turn = backlog.key
                break
            if (last := _ONE_MESSAGE.last_of(backlog)) is not None:
                turn = backlog.key
                allowance.take(backlog, last)
                _note(after, backlog, last, complete=_ends(backlog, last))
                waiting.remove(backlog)
                break
    # Short backlogs first, so that the rest of their shares can be divided. Few bytes may be many
    # messages, so what is left is divided a second time.
    taken: dict[int, LastMessage | None] = {}
    for _ in range(2):
        cut_short = []
        for index, backlog in enumerate(waiting):
            before = taken.get(backlog.key)
            share = allowance.share(len(waiting) - index)
            share.give_back(backlog, before)
            last = share.last_of(backlog)
            allowance.give_back(backlog, before)
            allowance.take(backlog, last)
            taken[backlog.key] = last
            complete = _holds_all(share, backlog, last)
            _note(after, backlog, last, complete=complete)
            if not complete:
                cut_short.append(backlog)
        waiting = cut_short
    return after, turn


def _holds_all(share: Allowance, backlog: Backlog, last: LastMessage | None) -> bool:
    """Return whether a share has all whole messages of a backlog."""
    if last is not None and _ends(backlog, last):
        return True
    if share.max_bytes is not None and share.max_bytes < backlog.range.length:
        return False
    return share.max_messages is None or (last.count if last else 0) < share.max_messages


def _ends(backlog: Backlog, last: LastMessage) -> bool:
    return last.end_position == backlog.range.limit_position


def _note(
    after: dict[int, ReadProgress], backlog: Backlog, last: LastMessage | None, *, complete: bool
) -> None:
    progress = backlog.after(last, complete=complete)
    if progress is not None:
        after[backlog.key] = progress
