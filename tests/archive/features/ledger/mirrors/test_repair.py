"""A damaged entry of a ledger with mirrors is fetched from another archive when it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.daemon.control_rig import await_true
from support.daemon.mirrored import Three, running
from support.ledger.flipped_bits import flip, zero

from aerotape import QualifiedId
from aerotape.catalog.segment_files import list_segment_files
from aerotape.errors import EntryDigestError
from aerotape.replay.offline.directory import open_directory

# Longer than a frame.
SENT = [b"<%04d>" % index * 400 for index in range(200)]


@pytest.fixture
def three() -> Iterator[Three]:
    with running() as three:
        yield three


def files(three: Three, index: int, ledger: QualifiedId) -> list[bytes]:
    """What an archive has of a ledger."""
    recording_id = three.info(index, ledger).recording_id
    archive_dir = three.archives[index].archive_dir
    return [each.path.read_bytes() for each in list_segment_files(archive_dir, recording_id)]


def stopped_leader(three: Three) -> tuple[QualifiedId, int]:
    """Add entries, and stop the first archive; return the ledger and its recording there."""
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL", ack_quorum=3)
        ledger = writer.qualified_id
        writer.add_many(SENT)
        writer.detach()
    recording_id = three.info(0, ledger).recording_id
    three.archives[0].stop()
    return ledger, recording_id


def damage(three: Three, index: int, recording_id: int, number: int) -> None:
    """Flip a bit of an entry in an archive, which is stopped."""
    for segment in list_segment_files(three.archives[index].archive_dir, recording_id):
        content = bytearray(segment.path.read_bytes())
        at = content.find(SENT[number][:100])
        if at >= 0:
            content[at + 50] ^= 1
            segment.path.write_bytes(content)
            return
    raise AssertionError(f"entry {number} is not there")


def test_a_damaged_entry_is_read_from_a_mirror(three: Three) -> None:
    """And is sound afterwards, unless all archives have it damaged: then a reader meets it."""
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL", ack_quorum=3)
        ledger = writer.qualified_id
        writer.add_many(SENT)
        writer.close()
    recording_ids = [three.info(index, ledger).recording_id for index in range(3)]
    for index in range(3):
        three.archives[index].stop()
    damage(three, 0, recording_ids[0], 100)
    damage(three, 1, recording_ids[1], 100)
    for index in range(3):
        damage(three, index, recording_ids[index], 150)
        three.archives[index] = three.start(index)
    with three.client() as client:
        reader = client.open_ledger_read_only(ledger)
        found: list[bytes] = []
        with pytest.raises(EntryDigestError, match="entry 150"):
            found.extend(each.payload for each in reader.read())
        assert [each.payload for each in reader.read(151)] == SENT[151:]
        assert [each.payload for each in reader.read(90, 110)] == SENT[90:111]
        info = client.ledger_info(ledger)
    assert (info.damaged_entries, info.repaired_entries) == (1, 1)
    assert (three.info(1, ledger).damaged_entries, three.info(1, ledger).repaired_entries) == (0, 0)
    assert files(three, 0, ledger) == files(three, 2, ledger)
    assert files(three, 1, ledger) != files(three, 2, ledger)


def test_damaged_frames_are_read_from_a_mirror(three: Three) -> None:
    """Also the last one, and all of a segment file that is lost."""
    ledger, recording_id = stopped_leader(three)
    archive_dir = three.archives[0].archive_dir
    messages = list(open_directory(archive_dir).recording(recording_id).messages())
    for number, offset, bit in ((0, 1, 7), (100, 5, 7), (150, 8, 5), (199, 3, 7)):
        flip(archive_dir, recording_id, messages[number].position + offset, bit)
    three.archives[0] = three.start(0)
    with three.client(timeout_s=30.0) as client:
        reader = client.open_ledger_read_only(ledger)
        assert [each.payload for each in reader.read()] == SENT
        info = client.ledger_info(ledger)
        assert (info.damaged_entries, info.repaired_entries) == (0, 4)
        with client.open_ledger_writer(ledger) as again:
            assert again.add(b"again") == 200
    three.archives[0].stop()
    list_segment_files(archive_dir, recording_id)[0].path.unlink()
    three.archives[0] = three.start(0)
    with three.client(timeout_s=30.0) as client:
        reader = client.open_ledger_read_only(ledger)
        assert [each.payload for each in reader.read()] == [*SENT, b"again"]


@pytest.mark.parametrize("is_recovered", [False, True], ids=["open", "recovered"])
def test_a_mirror_whose_files_are_cut_off(three: Three, is_recovered: bool) -> None:
    """Within an entry, while it is down; it catches up, and what it lacks is read from others."""
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL")
        ledger = writer.qualified_id
        writer.add_many(SENT)
        await_true(lambda: three.entries(1, ledger) == SENT)
        recording_id = three.info(1, ledger).recording_id
        three.kill(1)
        writer.add(b"without it")
        writer.detach()
    sent = [*SENT, b"without it"]
    archive_dir = three.archives[1].archive_dir
    messages = list(open_directory(three.archives[0].archive_dir).recording(0).messages())
    segments = list_segment_files(archive_dir, recording_id)
    for segment in segments:
        begins = (each.position - segment.base_position for each in messages)
        os.truncate(segment.path, 64 + next(each for each in begins if each > 5_000))
    if is_recovered:
        with three.client(2, timeout_s=30.0) as client:
            assert client.open_ledger(ledger).last_add_confirmed == len(SENT)
    three.restart(1)
    with three.client(1, timeout_s=30.0) as client:
        assert [each.payload for each in client.open_ledger(ledger).read()] == sent
    assert files(three, 1, ledger) == files(three, 2, ledger)
    texts = [each.text for each in open_directory(archive_dir).mark_file().errors]
    assert any("the end of its last segment file is not there" in each for each in texts)


def test_the_end_of_a_leader_is_lost(three: Three) -> None:
    """A writer continues after the last entry, and what is lost is read from a mirror."""
    ledger, recording_id = stopped_leader(three)
    archive_dir = three.archives[0].archive_dir
    recording = open_directory(archive_dir).recording(recording_id)
    places = [each.position for each in recording.messages()]
    zero(archive_dir, recording_id, places[190], recording.recorded_position)
    three.archives[0] = three.start(0)
    with three.client(timeout_s=30.0) as client:
        with client.open_ledger_writer(ledger) as again:
            assert again.add(b"again") == 200
        reader = client.open_ledger_read_only(ledger)
        assert [each.payload for each in reader.read()] == [*SENT, b"again"]


def test_a_damaged_mirror_recovers_all_that_was_acknowledged(three: Three) -> None:
    """Its log does not end at the damage, and the sound copy of the leader stays."""
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL", ack_quorum=2, mirrors=1)
        ledger = writer.qualified_id
        assert writer.add_many(SENT)[-1] == 199
        recording_id = three.info(1, ledger).recording_id
        three.kill(0)
    three.archives[1].stop()
    damage(three, 1, recording_id, 100)
    three.archives[1] = three.start(1)
    with three.client(1, timeout_s=30.0) as client:
        assert client.open_ledger(ledger).last_add_confirmed == 199
    three.restart(0)
    for index in (0, 1):
        with three.client(index, timeout_s=30.0) as client:
            reader = client.open_ledger(ledger)
            assert [each.payload for each in reader.read()] == SENT
    assert three.info(1, ledger).repaired_entries == 1
