"""SIGKILL while ledgers are written: no entry up to a LAC that anybody was told is ever lost.

The media driver and the writers keep running in the process of the test. In each round writers of
both types continue their ledgers, two threads note the highest LAC that the writer and another
reader report, and the archive is killed at a moment drawn from the seed.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path

import pytest
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file

import aerotape
from aerotape import AerotapeError, _native

pytestmark = pytest.mark.crash

LATEST_KILL_S = 0.25
TIMEOUT_NS = 3_000_000_000
PROPERTIES = {
    "aeron.archive.segment.file.length": "256k",
    "aeron.archive.control.channel.enabled": "false",
}


def payload(index: int) -> bytes:
    """A payload that contains its number."""
    return b"%d:" % index * (index % 40 + 1)


class Ledger:
    """A ledger, and the most that was reported of it.

    Attributes:
        told: the highest LAC that was reported.
        acknowledged: the last entry whose add has returned.
    """

    def __init__(self, kind: str) -> None:
        self.id = aerotape.QualifiedId.generate()
        self.kind = kind
        self.told = -1
        self.acknowledged = -1

    def write(self, client: aerotape.ArchiveClient, draw: random.Random) -> None:
        """Add entries and sync now and then, until the archive is gone."""
        try:
            writer = client.open_ledger_writer(self.id, channel="aeron:ipc?term-length=64k")
        except AerotapeError:
            return  # killed meanwhile
        index = writer.last_add_pushed + 1
        self.told = max(self.told, writer.last_add_confirmed)
        with contextlib.suppress(AerotapeError):
            while True:
                for _ in range(draw.randrange(1, 20)):
                    writer.add_async(payload(index))
                    index += 1
                if draw.random() < 0.3:
                    self.acknowledged = writer.flush()
                if draw.random() < 0.1:
                    self.told = max(self.told, writer.sync())
                self.told = max(self.told, writer.last_add_confirmed)
        writer._writing.release()

    def follow(self, client: aerotape.ArchiveClient) -> None:
        """Note what the archive reports to another client, until it is gone."""
        with contextlib.suppress(AerotapeError):
            while True:
                confirmed = client.ledger_info(self.id).last_add_confirmed
                assert confirmed is not None
                self.told = max(self.told, confirmed)

    def check(self, client: aerotape.ArchiveClient, where: str) -> int:
        """Check what is left after a kill; return the number of entries."""
        reader = client.open_ledger_read_only(self.id)
        last = reader.last_add_confirmed
        assert last >= self.told, where
        # A killed process loses no bytes that it has written.
        assert last >= self.acknowledged, where
        for index, entry in enumerate(reader.read()):
            assert (entry.entry_id, entry.payload) == (index, payload(index)), where
        assert reader.last_add_confirmed == last
        return last + 1


def test_kill_while_ledgers_are_written(
    driver: _native.MediaDriver, tmp_path: Path, seeds: range
) -> None:
    """After each kill all confirmed and acknowledged entries are there, and writing continues."""
    rounds, draw = 2 * len(seeds), random.Random(seeds.start)
    aeron_dir = Path(driver.aeron_dir)
    ledgers = [Ledger(kind) for kind in ("PD_JOURNAL", "VD_JOURNAL")]
    count = 0
    for number in range(rounds + 1):
        where = f"round {number} of --seed={seeds.start}"
        archive = AerotapeArchive(tmp_path, aeron_dir, driver="external", properties=PROPERTIES)
        with archive, contextlib.ExitStack() as stack:
            writing, following = (
                stack.enter_context(aerotape.connect(aeron_dir=aeron_dir, timeout_ns=TIMEOUT_NS))
                for _ in range(2)
            )
            if number == 0:
                for ledger in ledgers:
                    writing.declare_ledger(ledger.kind, ledger.id)  # type: ignore[arg-type]
            else:
                count = sum(ledger.check(writing, where) for ledger in ledgers)
            if number == rounds:
                for ledger in ledgers:
                    told = ledger.told
                    assert following.open_ledger(ledger.id).last_add_confirmed >= told
                break
            threads = [
                threading.Thread(target=ledger.write, args=(writing, random.Random(draw.random())))
                for ledger in ledgers
            ] + [threading.Thread(target=ledger.follow, args=(following,)) for ledger in ledgers]
            for thread in threads:
                thread.start()
            # A machine with other work may need longer for the first ones.
            await_true(lambda: all(ledger.told > 0 for ledger in ledgers))
            time.sleep(draw.uniform(0, LATEST_KILL_S))
            archive.kill()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), where
        age_mark_file(tmp_path)
    assert count > 0
