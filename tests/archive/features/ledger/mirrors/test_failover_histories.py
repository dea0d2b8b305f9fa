"""Random histories of a ledger whose leader changes: archives are killed, frozen and put back.

They also lose their directories, or a bit of an entry. What is checked is what the model of the
protocol promises: an entry that was acknowledged is in the log of each later leader, in its place,
and in what a recovery finds.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.daemon.control_rig import await_true
from support.daemon.mirrored import Three, cut, running

from aerotape.catalog.segment_files import list_segment_files
from aerotape.client.blocking.ledgers import LedgerWriter
from aerotape.errors import AerotapeError, ArchiveError

pytestmark = pytest.mark.crash

ARCHIVES = 4
RESTORED = {"aerotape.ledgers.restored": "true"}


class History:
    """A ledger on three archives, of which one at a time may be down.

    Attributes:
        acknowledged: payloads of the entries that were acknowledged, by their ids.
        down: the archive that does not run, and whether it may have lost entries.
        empty: the archive that has an empty directory; it is not the next leader.
        damaged: ids of the entries that were damaged, each in one archive.
    """

    def __init__(self, three: Three, kind: str, draw: random.Random, backups: Path) -> None:
        self.three, self.draw, self.backups = three, draw, backups
        self.acknowledged: dict[int, bytes] = {}
        self.down: tuple[int, bool] | None = None
        self.empty: int | None = None
        self.damaged: set[int] = set()
        self.saved: dict[int, Path] = {}
        self.members = [0, 1, 2]
        self.exits = ExitStack()
        self.leader = 0
        self.number = 0
        self.lac = -1
        self.is_durable = kind == "PD_JOURNAL"
        client = self.exits.enter_context(three.client(timeout_s=20.0))
        self.writer: LedgerWriter | None = three.create(client, kind)
        self.ledger = self.writer.qualified_id

    def payload(self) -> bytes:
        self.number += 1
        return b"%d " % self.number + self.draw.randbytes(self.draw.choice((0, 10, 2_000)))

    # ---- clients --------------------------------------------------------------------------------

    def add(self) -> None:
        if self.writer is None:
            self.lead()
            return
        sent = self.payload()
        try:
            entry_id = self.writer.add(sent)
        except AerotapeError:
            self.writer = None
            return
        assert entry_id not in self.acknowledged
        self.acknowledged[entry_id] = sent

    def lead(self) -> None:
        """Continue the ledger in an archive that runs, maybe in another one than before."""
        if self.down is not None and not self.is_durable:
            return  # a VD_JOURNAL ledger needs all of its archives for a writer
        down = None if self.down is None else self.down[0]
        running = [each for each in self.members if each not in (down, self.empty)]
        with contextlib.suppress(AerotapeError):
            self.exits.close()
        self.leader = self.draw.choice(running)
        client = self.exits.enter_context(self.three.client(self.leader, timeout_s=20.0))

        def attach() -> bool:
            try:
                self.writer = client.open_ledger_writer(self.ledger, take_over=True)
            except AerotapeError:
                return False
            return True

        await_true(attach)
        reader = client.open_ledger_read_only(self.ledger)
        self.check([each.payload for each in reader.read_unconfirmed()])
        # Whatever a leader takes over is confirmed before it has a writer.
        assert reader.last_add_confirmed >= self.lac
        self.lac = reader.last_add_confirmed

    def read(self) -> None:
        if self.writer is None:
            return
        with self.three.client(self.leader) as client:
            found = client.ledger_info(self.ledger).last_add_confirmed
        assert found is not None
        if self.is_durable:
            assert found >= max(self.acknowledged, default=-1)
        assert found >= self.lac, "the last add confirmed decreases"
        self.lac = found

    def check(self, found: list[bytes]) -> None:
        for entry_id, sent in self.acknowledged.items():
            assert found[entry_id] == sent, f"entry {entry_id} of {len(found)}"

    # ---- failures -------------------------------------------------------------------------------

    def kill(self) -> None:
        """End one archive, maybe with the power; or put its directory back to an older state.

        Or it loses its directory, or a bit of an entry.
        """
        self.come_back()
        index = self.draw.choice(self.members)
        directory = self.three.archives[index].archive_dir
        how = self.draw.choice(("killed", "cut", "put back", "saved", "emptied", "damaged"))
        if how == "damaged":
            self.await_all()
        with self.three.client(index) as client:
            found = client.ledger_info(self.ledger)
        self.three.kill(index)
        if how == "cut":
            cut(directory, found.recording_id, found.confirmed_position)
        if how == "put back" and index in self.saved:
            shutil.rmtree(directory)
            shutil.copytree(self.saved[index], directory)
        if how == "saved":
            self.saved[index] = self.backups / str(index)
            shutil.rmtree(self.saved[index], ignore_errors=True)
            shutil.copytree(directory, self.saved[index])
        if how == "emptied":
            shutil.rmtree(directory)
            self.empty = index
        if how == "damaged":
            self.damage(index, found.recording_id)
        # After a power cut a VD_JOURNAL ledger knows it by the id of the machine's run.
        self.down = index, how == "put back" or (how == "cut" and not self.is_durable)
        if index == self.leader:
            self.writer = None

    def come_back(self) -> None:
        """Start the archive again; what it has lost it has again before the next one fails."""
        if self.down is None:
            return
        index, has_lost = self.down
        if self.empty is None:
            self.three.restart(index, RESTORED if has_lost else None)
        else:
            self.three.archives[index] = self.three.start(index)
        self.down = None
        self.lead()
        least = self.three.info(self.leader, self.ledger).recorded_position
        await_true(lambda: self.has(index, least))
        self.empty = None

    def await_all(self) -> None:
        """Wait until all members have all entries: the damage of one is not that of a copy."""
        if self.writer is None:
            self.lead()
        least = self.three.info(self.leader, self.ledger).recorded_position
        mirrors = [index for index in self.members if index != self.leader]
        await_true(lambda: all(self.has(index, least) for index in mirrors))

    def damage(self, index: int, recording_id: int) -> None:
        """Flip a bit of an acknowledged entry in an archive, which is stopped."""
        sound = [
            entry_id
            for entry_id, sent in self.acknowledged.items()
            if len(sent) >= 10 and entry_id not in self.damaged
        ]
        if not sound:
            return
        entry_id = self.draw.choice(sound)
        self.damaged.add(entry_id)
        begin = self.acknowledged[entry_id][:100]
        for segment in list_segment_files(self.three.archives[index].archive_dir, recording_id):
            content = segment.path.read_bytes()
            if (at := content.find(begin)) >= 0:
                with segment.path.open("r+b") as file:
                    file.seek(at + len(begin) - 1)
                    file.write(bytes([begin[-1] ^ 1]))
                return
        raise AssertionError(f"entry {entry_id} is not there")

    def has(self, index: int, position: int) -> bool:
        """Whether an archive follows, with all of the log up to a position."""
        try:
            found = self.three.info(index, self.ledger)
        except AerotapeError:
            return False
        return found.has_writer and found.confirmed_position >= position

    def freeze(self) -> None:
        """Stop a mirror while entries are added; it continues where it was."""
        if self.down is None:
            mirrors = [index for index in self.members if index != self.leader]
            with self.three.stopped(self.draw.choice(mirrors)):
                for _ in range(3):
                    if self.writer is None:
                        break
                    self.add()

    def replace(self) -> None:
        """Have an archive that is no member mirror the ledger in the place of a mirror."""
        if self.down is not None or not self.is_durable:
            return
        self.lead()
        old = self.draw.choice([index for index in self.members if index != self.leader])
        (new,) = set(range(ARCHIVES)) - set(self.members)
        channels = [self.three.archives[index].control_channel for index in (old, new)]
        with self.three.client(self.leader) as client:
            client.replace_mirror(self.ledger, channels[0], channels[1])
            least = client.ledger_info(self.ledger).recorded_position
        self.members[self.members.index(old)] = new
        self.saved.pop(new, None)
        await_true(lambda: self.has(new, least))

    def end(self) -> list[bytes]:
        """Recover the ledger in all archives at the same time: all find the same."""
        self.come_back()
        with contextlib.suppress(AerotapeError):
            self.exits.close()
        found: dict[int, list[bytes]] = {}

        def recover(index: int) -> None:
            for _ in range(10):
                with (
                    contextlib.suppress(ArchiveError),
                    self.three.client(index, timeout_s=30.0) as client,
                ):
                    reader = client.open_ledger(self.ledger)
                    found[index] = [each.payload for each in reader.read()]
                    return

        threads = [threading.Thread(target=recover, args=(each,)) for each in self.members]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        first, second, third = (found[index] for index in self.members)
        assert first == second == third
        self.check(first)
        return first


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_what_was_acknowledged_is_in_the_log_of_each_leader(
    kind: str, seeds: range, tmp_path: Path
) -> None:
    """However often the leader changes."""
    with running(ARCHIVES) as three:
        for seed in seeds:
            draw = random.Random(f"{seed} {kind} failover")
            history = History(three, kind, draw, tmp_path)
            for _ in range(4):
                for action in draw.choices(
                    [history.add, history.read, history.lead], [8, 3, 1], k=10
                ):
                    action()
                draw.choice([history.kill, history.kill, history.freeze, history.replace])()
            assert history.end()
