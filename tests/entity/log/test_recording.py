"""The recording of a partition, and the counter that shows how far it is."""

from __future__ import annotations

import struct

import pytest

import aerotape
from aerotape.client.client import access
from aerotape.counter_keys import CounterType, confirmed_position_key, recording_position_key
from aerotape.entity.log.archive import LogArchive
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.partition import Partition
from aerotape.waiting import run

RECORDING_ID = 4_000


@pytest.mark.parametrize("is_persistent", [False, True])
def test_counters_of_other_archives(client: aerotape.ArchiveClient, is_persistent: bool) -> None:
    """Another archive's counter of the same recording id is not taken, whatever its key has."""
    id, other = client.archive_id, client.archive_id + 1
    id_bytes = struct.pack("<q", id)
    if is_persistent:
        type_id = CounterType.CONFIRMED_POSITION
        keys = [
            confirmed_position_key(each, RECORDING_ID, ledger_key)
            for each, ledger_key in ((other, id_bytes * 2), (id, bytes(16)))
        ]
    else:
        type_id = CounterType.RECORDING_POSITION
        # The source identity is a text, which may have any eight bytes.
        head = struct.pack("<qii", RECORDING_ID, 1, 8)
        keys = [
            head + id_bytes + struct.pack("<q", other),
            recording_position_key(id, RECORDING_ID, 1, "aeron:ipc"),
        ]
    archive = LogArchive(access(client))
    partition = Partition("t", 0, 1, is_persistent)
    found = []
    add, counters = client.aeron.native.add_counter, []
    for key in keys:
        counters.append(add(type_id, key, "of a test"))
        counters[-1].set(len(counters))
        found.append(PartitionRecording(archive, partition, RECORDING_ID).counted())
    for counter in counters:
        counter.close()
    assert found == [None, 2]


@pytest.mark.parametrize("end", [0, 64, 128])
def test_a_counter_that_is_not_set_yet(client: aerotape.ArchiveClient, end: int) -> None:
    """What was read further than it shows has no records after it, and is no error."""
    records = LogArchive(access(client)).records(RECORDING_ID, 128, end)
    assert run(records.next()) == []
    records.close()
