"""The position at which two logs differ, and the part of them that may be cut.

One leader writes all entries of an epoch, so two logs that have the last common epoch are the same
up to where the first of them leaves it.
"""

from __future__ import annotations

from aerotape.archive.features.ledger.protocol.member_record import Epoch, MemberState

History = tuple[tuple[Epoch, int], ...]
"""The epochs of a log with the position where each begins, in their order."""


def begin_epoch(history: History, epoch: Epoch, end: int) -> History:
    """Return the history of a log whose next entries are of an epoch; `end` is where it ends."""
    return (*(each for each in history if each[1] < end), (epoch, end))


def common_end(one: MemberState, other: MemberState) -> int | None:
    """Return the position up to which two logs are the same; None: no epoch shows it."""
    ends = [_epoch_ends(each) for each in (one, other)]
    common = max(ends[0].keys() & ends[1].keys(), default=None)
    if common is None:
        return None
    return min(each[common] for each in ends)


def kept_end(own: MemberState, confirmed: int, other: MemberState) -> int | None:
    """Return up to where a member keeps its log when it follows another one.

    Args:
        confirmed: where the confirmed entries of the member end, as its entries carry it.

    Returns:
        The position; None: the other log lacks confirmed entries, and cannot be followed.
    """
    position = common_end(own, other)
    if position is None:
        position = min(confirmed, other.end)
    return None if position < confirmed else position


def stays_closed(own: MemberState, kept: int, other: MemberState) -> bool:
    """Whether a closed ledger stays closed in a member that follows another log.

    Nothing of its log is cut, and nothing follows. It would be open under a leader whose ledger is
    closed until it has adopted that end.

    Args:
        kept: up to where the member keeps its log.
    """
    return own.is_closed and kept == own.end == other.end


def _epoch_ends(state: MemberState) -> dict[Epoch, int]:
    history = state.member_record.history
    begins = [begin for _, begin in history[1:]]
    return {
        epoch: min(end, state.end)
        for (epoch, _), end in zip(history, [*begins, state.end], strict=False)
    }
