"""Random crashes of, and damage to, the recording of a ledger, as the archive finds it at a start.

After each start:

* an entry that was forced to storage and is not damaged can be read, after a kill each that was
  written;
* no id of such an entry, or of one that was noted to be on storage, is used again;
* if a file has lost its end, the recording ends with a frame nevertheless;
* without damage, the last entry is sound, and after a kill it is the last that was written.

`test_a_rule_that_is_left_out_is_missed` leaves out the rules by which this is so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ledger.storage_history import StorageHistory

from aerotape.archive.features.ledger import recovered_end
from aerotape.archive.features.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.archive.features.ledger.entry_scan import Part
from aerotape.codecs.entry import DigestType

HISTORIES = 60


def run_history(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one history of a few crashes; an AssertionError says what was lost."""
    draw = random.Random(seed)
    digest_type: DigestType = draw.choice(("CRC32C", "CRC32"))
    history = StorageHistory(folder / str(seed), draw, digest_type, monkeypatch)
    for _ in range(draw.randint(1, 4)):
        for _ in range(draw.randint(1, 4)):
            history.add()
            if draw.random() < 0.6:
                history.force()
        is_killed = draw.random() < 0.5
        if is_killed:
            history.kill()
        else:
            history.cut_power()
        damages = draw.choice((0, 0, 1, 1, 2))
        kinds = [history.damage() for _ in range(damages)]
        is_zeroed = any(kind != "bit" for kind in kinds)
        known = dict(history.written)
        seems_killed = bool(known) and history.seems_killed()
        found = history.start()
        where = f"seed {seed}, {'kill' if is_killed else 'power cut'}, {damages} damages"
        noted = set(history.ids_up_to(history.noted))
        forced = set(history.ids_up_to(history.forced))
        whole = {
            number
            for number, entry in known.items()
            if not entry.is_damaged and (is_killed or number in forced)
        }
        lost = sorted(number for number in whole if not found.is_sound[number])
        assert not lost, f"{where}: entries {lost} cannot be read"
        safe = noted | whole
        if is_killed and not is_zeroed and not seems_killed:
            safe = set(known)
        assert found.last_id >= max(safe, default=-1), f"{where}: ids are used again"
        if kinds[-1:] == ["cut"]:
            assert found.end in history.boundaries, f"{where}: it ends within a frame"
        is_sound = not damages and not any(entry.is_damaged for entry in known.values())
        if is_sound and found.last_id >= 0:
            assert found.last_id in known, f"{where}: entry {found.last_id} was never written"
            assert found.is_sound[found.last_id] or found.last_id in noted, where
            if is_killed:
                assert found.last_id == max(known), f"{where}: a torn entry was not cut"
        history.go_on(found)


def test_nothing_that_is_on_storage_is_lost(
    tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random histories, more with --seeds."""
    for seed in seeds:
        for number in range(HISTORIES):
            run_history(tmp_path, seed * 1_000_000 + number, monkeypatch)


def test_the_end_after_many_damages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more places than one pass over a recording lists."""
    history = StorageHistory(tmp_path / "archive", random.Random(1), "CRC32C", monkeypatch)
    while len(history.written) < 2_300:
        history.add()
    for number, entry in history.written.items():
        if number % 2 == 0:
            history.change(entry.begin, b"\xff\xff")
    end = history.stream.position
    found = history.start(read=False)
    assert (found.end, found.last_id) == (end, len(history.written) - 1)


def test_an_undamaged_recording_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start after a kill looks at the end of each recording once."""
    history = StorageHistory(tmp_path / "archive", random.Random(1), "CRC32C", monkeypatch)
    history.add()
    monkeypatch.setattr(recovered_end, "_gaps", None)
    found = history.start()
    assert (found.end, found.last_id) == (history.stream.position, len(history.written) - 1)


def test_power_cuts_tear_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The histories have what the rules are for: entries that are cut, damaged, and passed over."""
    ends = set()
    before = StorageHistory.start

    def start(history: StorageHistory) -> Any:
        found = before(history)
        last = max(history.written, default=-1)
        if found.last_id < last:
            ends.add("cut")
        if found.last_id > last:
            ends.add("passed over")
        if not all(found.is_sound[each] for each in found.is_sound if each <= found.last_id):
            ends.add("damaged")
        return found

    monkeypatch.setattr(StorageHistory, "start", start)
    for number in range(HISTORIES):
        run_history(tmp_path, 1_000_000 + number, monkeypatch)
    assert ends == {"cut", "passed over", "damaged"}


def test_what_is_cut_does_not_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start after the next crash finds nothing after the end."""
    ends = set()
    for seed in range(20):
        draw = random.Random(seed)
        history = StorageHistory(tmp_path / str(seed), draw, "CRC32C", monkeypatch)
        history.add()
        history.force()
        history.add()
        history.cut_power()
        found = history.start()
        ends.add(found.end < history.stream.position)
        history.go_on(found)
        again = history.start()
        assert (again.end, again.last_id) == (found.end, found.last_id)
    assert ends == {False, True}


def _end_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger's recording ends where a plain one would."""
    monkeypatch.setattr(recovered_end, "is_of_ledger", lambda _: False)


def _change_known(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    before = recovered_end._end

    def end(archive_dir: Path, recording: Any, found: Any, known: Any) -> Any:
        return before(archive_dir, recording, found, known._replace(**changes))

    monkeypatch.setattr(recovered_end, "_end", end)


def _all_files_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording ends where a file does that has lost its end."""
    monkeypatch.setattr(recovered_end, "_end_of_frame", lambda *given: given[-1])


def _no_noted_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was noted does not belong to the recording if it is zeros."""
    _change_known(monkeypatch, forced=0)


def _kills_as_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill not all is taken to be there that was written."""
    _change_known(monkeypatch, is_all_there=False)


def _no_digests_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last frame that may be torn is cut without a look at its digest."""
    _change_known(monkeypatch, is_checked=False)


def _all_is_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged last entry is torn, also if it was noted to be on storage."""
    before = LedgerRecording.first_torn_position

    def first_torn_position(
        recording: LedgerRecording, limit: int, forced: int, *, is_killed: bool = False
    ) -> int | None:
        return before(recording, limit, 0, is_killed=is_killed)

    monkeypatch.setattr(LedgerRecording, "first_torn_position", first_torn_position)


def _a_kill_tears(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged last entry is torn, also after a kill."""
    monkeypatch.setattr(LedgerRecording, "_is_cut_short", lambda *_: True)


def _nothing_is_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torn entry stays."""
    monkeypatch.setattr(LedgerRecording, "first_torn_position", lambda *_, **__: None)


def _lengths_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that ends after what was noted may be torn, wherever it begins."""
    monkeypatch.setattr(
        LedgerRecording, "_may_be_torn", lambda _, part, forced: part.end > forced
    )


def _nothing_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged message hides the entries that its wrong length reaches over."""
    monkeypatch.setattr(LedgerRecording, "_sound_in", lambda *_: None)


def _one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged part at the end counts as one entry."""

    def past(_: Any, part: Part, last: EntryMark, length: int) -> tuple[EntryMark, int]:
        return EntryMark(part.end, last.entry_id + 1, last.length), length

    monkeypatch.setattr(LedgerRecording, "_past", past)


RULES: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    _end_of_frames: 40_001,
    _all_files_are_whole: 40_004,
    _no_noted_end: 40_002,
    _kills_as_power_cuts: 40_076,
    _no_digests_at_the_end: 40_008,
    _all_is_torn: 40_001,
    _a_kill_tears: 40_011,
    _nothing_is_torn: 40_006,
    _lengths_are_right: 41_418,
    _nothing_is_inside: 40_647,
    _one_entry: 40_001,
}
"""The rules, each with the seed of a history that needs it."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.strip("_"))
def test_a_rule_that_is_left_out_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """A history fails without it, and only then."""
    run_history(tmp_path / "with", RULES[rule], monkeypatch)
    rule(monkeypatch)
    with pytest.raises(AssertionError, match="seed "):
        run_history(tmp_path / "without", RULES[rule], monkeypatch)
