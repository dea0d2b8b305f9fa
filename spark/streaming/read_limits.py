"""How much of each recording a batch of a streaming query takes, when the batch is limited.

Recordings share a limit equally, and what one does not use goes to the others, as far as messages
can be cut: a batch ends behind whole messages. A message that is larger than its recording's share
waits, but not for ever: recordings take turns, and the one whose turn it is takes a message at
least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.replay.offline.boundaries import LastMessage, last_message

if TYPE_CHECKING:
    from aerotape.spark.streaming.backlog import Backlog
    from aerotape.spark.streaming.offsets import Progress


@dataclass(slots=True)
class Allowance:
    """What a batch may still take.

    Attributes:
        max_bytes: bytes of recordings; no limit when None.
        max_messages: messages; no limit when None.
    """

    max_bytes: int | None = None
    max_messages: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """Whether there is no limit."""
        return self.max_bytes is None and self.max_messages is None

    def share(self, of: int) -> Allowance:
        """Return the share of each of so many recordings."""
        return Allowance(
            None if self.max_bytes is None else max(self.max_bytes, 0) // of,
            None if self.max_messages is None else self.max_messages // of,
        )

    def last_of(self, backlog: Backlog) -> LastMessage | None:
        """Return the last message of a backlog that this allows (SegmentError)."""
        return last_message(backlog.range, self.max_bytes, self.max_messages)

    def take(self, backlog: Backlog, last: LastMessage | None, sign: int = 1) -> None:
        """Take the messages up to `last` off. One message may be more than was left."""
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
) -> tuple[dict[int, Progress], int]:
    """Decide what a batch takes. While there is a whole message, it takes one at least.

    Args:
        backlogs: what there is to read.
        allowance: what the batch may take; used up.
        turn: id of the recording whose turn it was in the batch before.

    Returns:
        How far recordings have been read after the batch, those of which nothing was taken and
        nothing new is known may be left out; and the id of the recording whose turn it was.

    Raises:
        SegmentError: a segment file is missing, too short or damaged.
    """
    after: dict[int, Progress] = {}
    waiting = sorted(backlogs, key=lambda each: each.range.length)
    if not allowance.is_unlimited:
        cycle = sorted(backlogs, key=lambda each: (each.recording_id <= turn, each.recording_id))
        share = allowance.share(max(1, sum(each.range.length > 0 for each in backlogs)))
        for backlog in cycle:
            if share.last_of(backlog) is not None:
                turn = backlog.recording_id
                break
            if (last := _ONE_MESSAGE.last_of(backlog)) is not None:
                turn = backlog.recording_id
                allowance.take(backlog, last)
                _note(after, backlog, last, complete=_ends(backlog, last))
                waiting.remove(backlog)
                break
    # Those that take little first, so that what they leave can be shared. Few bytes may be many
    # messages: what is left in the end is shared once more.
    taken: dict[int, LastMessage | None] = {}
    for _ in range(2):
        cut_short = []
        for index, backlog in enumerate(waiting):
            before = taken.get(backlog.recording_id)
            share = allowance.share(len(waiting) - index)
            share.give_back(backlog, before)
            last = share.last_of(backlog)
            allowance.give_back(backlog, before)
            allowance.take(backlog, last)
            taken[backlog.recording_id] = last
            complete = _holds_all(share, backlog, last)
            _note(after, backlog, last, complete=complete)
            if not complete:
                cut_short.append(backlog)
        waiting = cut_short
    return after, turn


def _holds_all(share: Allowance, backlog: Backlog, last: LastMessage | None) -> bool:
    """Whether no whole message of a backlog is left behind those of a share."""
    if last is not None and _ends(backlog, last):
        return True
    if share.max_bytes is not None and share.max_bytes < backlog.range.length:
        return False
    return share.max_messages is None or (last.count if last else 0) < share.max_messages


def _ends(backlog: Backlog, last: LastMessage) -> bool:
    return last.end_position == backlog.range.limit_position


def _note(
    after: dict[int, Progress], backlog: Backlog, last: LastMessage | None, *, complete: bool
) -> None:
    progress = backlog.after(last, complete=complete)
    if progress is not None:
        after[backlog.recording_id] = progress
