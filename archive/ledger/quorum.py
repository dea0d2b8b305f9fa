"""The quorum rule: how far a ledger is confirmed, from how far each of its archives is.

It is a rule for entry ids. Archives use it for positions: each writes and syncs a ledger in the
order of its ids, and positions are the same in all, so that the synced position of an archive is
that of its last add synced, and no entry after it is synced.
"""

from __future__ import annotations

from collections.abc import Iterable

from aerotape.errors import ConfigurationError


def last_add_confirmed(
    previous: int, last_add_pushed: int, synced: Iterable[int], write_quorum: int, ack_quorum: int
) -> int:
    """Return the last add confirmed after new reports; it never decreases.

    It is the highest entry that any ack quorum of a write quorum must have synced. Every write
    quorum has `ack_quorum` archives with it, so it survives when the other
    `write_quorum - ack_quorum` are lost.

    Args:
        previous: the last add confirmed so far.
        last_add_pushed: the last entry that was added; the result is not larger.
        synced: the last add synced of each archive; -1 for one that has not reported.
        write_quorum: archives that store each entry.
        ack_quorum: archives that must have synced it.

    Raises:
        ConfigurationError: not 1 <= ack quorum <= write quorum <= number of archives.
    """
    ordered = sorted(synced)
    if not 1 <= ack_quorum <= write_quorum <= len(ordered):
        raise ConfigurationError(
            f"write quorum {write_quorum} and ack quorum {ack_quorum} do not fit "
            f"{len(ordered)} archives: expected 1 <= ack quorum <= write quorum <= archives"
        )
    return max(previous, min(last_add_pushed, ordered[write_quorum - ack_quorum]))
