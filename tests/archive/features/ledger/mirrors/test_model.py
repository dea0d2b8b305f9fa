"""Random actions on a ledger with mirrors that stop, fail and return, against a model."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from support.daemon.control_rig import await_true
from support.daemon.mirrored import Three, cut, running

from aerotape.client.ledger.requests import LedgerInfo
from aerotape.errors import AerotapeError, ArchiveError, LedgerError

pytestmark = pytest.mark.crash

ACK_QUORUM = 2
LEADER, SPARE = 0, 3


class Run:
    """A ledger on three of four archives, and what is known of it.

    Attributes:
        payloads: of the entries that were added.
        acknowledged: the last entry whose add was acknowledged.
        told: the last add confirmed that any client has seen, an entry id.
        mirrors: the archives that mirror it.
        lost: of mirrors that do not run, the position up to which their storage has it, bytes.
    """

    def __init__(self, archives: Three, kind: str, draw: random.Random) -> None:
        self.archives, self.draw = archives, draw
        self.is_durable = kind == "PD_JOURNAL"
        self.payloads: list[bytes] = []
        self.acknowledged = self.told = -1
        self.mirrors = [1, 2]
        self.lost: dict[int, int] = {}
        self.paused: ExitStack | None = None
        self.seen = dict.fromkeys(range(4), -1)
        self.exits = ExitStack()
        self.client = self.exits.enter_context(archives.client(LEADER))
        self.ledger = self.client.declare_ledger(
            kind,  # type: ignore[arg-type]
            write_quorum=3,
            ack_quorum=ACK_QUORUM,
            mirrors=archives.mirrors,
        )
        await_true(self.attach)

    @property
    def last(self) -> int:
        return len(self.payloads) - 1

    def channel(self, index: int) -> str:
        return self.archives.archives[index].control_channel

    def payload(self) -> bytes:
        self.payloads.append(self.draw.randbytes(self.draw.choice((0, 10, 500, 3_000))))
        return self.payloads[-1]

    def info(self, index: int) -> LedgerInfo | None:
        """What an archive reports; None before it knows the ledger."""
        try:
            return self.archives.info(index, self.ledger)
        except ArchiveError:
            return None

    # ---- adds, syncs, and what they promise -----------------------------------------------------

    def add(self) -> None:
        assert self.writer.add(self.payload()) == self.last
        self.acknowledged = self.last

    def add_many(self) -> None:
        self.writer.add_async(*[self.payload() for _ in range(self.draw.randrange(1, 20))])

    def sync(self) -> None:
        assert self.writer.sync() == self.last
        self.acknowledged = self.told = self.last

    def look(self, *, is_new_writer: bool = False) -> None:
        """The leader's LAC is on the storage of an ack quorum, and never decreases."""
        found = self.client.ledger_info(self.ledger)
        confirmed, pushed = found.last_add_confirmed, found.last_add_pushed
        assert confirmed is not None and pushed is not None
        assert max(self.told, self.acknowledged if self.is_durable else -1) <= confirmed <= pushed
        assert pushed <= self.last
        if not (self.is_durable or is_new_writer):
            assert confirmed == self.told, "nothing but a sync confirms"
        self.told = confirmed
        having = [True] + [self.has(index, found.confirmed_position) for index in self.mirrors]
        assert sum(having) >= ACK_QUORUM, (found, self.lost)

    def has(self, index: int, position: int) -> bool:
        """Whether a mirror has a ledger up to a position on its storage, or may have it."""
        if index in self.lost:
            return self.lost[index] >= position
        if self.paused is not None:
            return True
        found = self.info(index)
        if found is None:
            return False
        assert found.confirmed_position <= found.recorded_position
        assert found.confirmed_position >= self.seen[index], "last add synced decreases"
        self.seen[index] = found.confirmed_position
        return found.confirmed_position >= position

    # ---- failures -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop all threads of a mirror; a slow one is stopped again and again."""
        self.resume()
        if not self.lost:
            self.paused = ExitStack()
            self.paused.enter_context(self.archives.stopped(self.draw.choice(self.mirrors)))

    def pause_all(self) -> None:
        """Without mirrors nothing more is confirmed."""
        self.resume()
        self.come_back()
        self.sync()
        first, second = self.mirrors
        with self.archives.stopped(first), self.archives.stopped(second):
            self.add_many()
            time.sleep(0.1)
            assert self.client.ledger_info(self.ledger).last_add_confirmed == self.told

    def resume(self) -> None:
        if self.paused is not None:
            self.paused.close()
            self.paused = None

    def lose(self, index: int) -> None:
        """Cut the power of an archive."""
        self.resume()
        found = self.info(index)
        self.archives.kill(index)
        self.lost[index] = 0
        if found is not None:
            self.lost[index] = found.confirmed_position
            folder = self.archives.archives[index].archive_dir
            cut(folder, found.recording_id, found.confirmed_position)

    def come_back(self) -> None:
        for index in list(self.lost):
            self.archives.restart(index)
            del self.lost[index]
            self.seen[index] = -1

    def lose_mirror(self) -> None:
        """The writer of a durable ledger continues; that of a volatile one fails."""
        self.come_back()
        self.lose(self.draw.choice(self.mirrors))
        if self.is_durable:
            return
        with pytest.raises(LedgerError, match="mirror"):
            await_true(self.add)  # type: ignore[arg-type]
        self.come_back()
        self.reopen(self.acknowledged)
        self.look(is_new_writer=True)
        self.check_entries()

    def replace(self) -> None:
        if not self.is_durable:
            return
        self.resume()
        place = self.draw.randrange(2)
        old, (new,) = self.mirrors[place], {1, 2, SPARE} - set(self.mirrors)
        if new in self.lost:
            self.come_back()
        self.client.replace_mirror(self.ledger, self.channel(old), self.channel(new))
        self.mirrors[place] = new
        self.seen[new] = -1
        assert set(self.client.ledger_info(self.ledger).mirrors) == set(
            map(self.channel, self.mirrors)
        )

    def lose_leader(self) -> None:
        """It comes back with all that was confirmed; a durable ledger has what it acknowledged."""
        self.resume()
        self.look()
        self.lose(LEADER)
        self.come_back()
        self.reopen(max(self.told, self.acknowledged if self.is_durable else -1))
        self.check_entries()

    def reopen(self, least: int) -> None:
        """Attach another writer, which continues after what is left, at least up to an entry."""
        with contextlib.suppress(AerotapeError):
            self.exits.close()
        self.client = self.exits.enter_context(self.archives.client(LEADER, timeout_s=30.0))
        await_true(self.attach)
        last = self.writer.last_add_pushed
        assert least <= last <= self.last
        del self.payloads[last + 1 :]
        self.acknowledged = last
        # A mirror drops what was not confirmed when another writer begins.
        self.seen = dict.fromkeys(range(4), -1)

    def attach(self) -> bool:
        """Open the ledger for writing; a mirror that has just returned may not respond in time."""
        try:
            self.writer = self.client.open_ledger_writer(self.ledger)
        except ArchiveError:
            return False
        return True

    def check_entries(self) -> None:
        self.sync()
        reader = self.client.open_ledger_read_only(self.ledger)
        assert [each.payload for each in reader.read()] == self.payloads

    def end(self) -> None:
        """A power cut of all archives: recovery finds all that was ever confirmed."""
        self.resume()
        self.look()
        self.come_back()
        for index in (LEADER, *self.mirrors):
            self.lose(index)
        self.come_back()
        with contextlib.suppress(AerotapeError):
            self.exits.close()
        with self.archives.client(LEADER, timeout_s=30.0) as client:
            found = [each.payload for each in client.open_ledger(self.ledger).read()]
        assert len(found) > self.told
        assert found == self.payloads[: len(found)]
        for index in self.mirrors:
            await_true(lambda index=index: self.archives.entries(index, self.ledger) == found)  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_a_ledger_with_mirrors_behaves_as_the_model(kind: str, seeds: range) -> None:
    """No failure of one archive loses an entry up to any LAC that was told, nor does one of all."""
    with running(count=4) as archives:
        for seed in seeds:
            draw = random.Random(f"{seed} {kind}")
            run = Run(archives, kind, draw)
            steps: dict[Callable[[], None], int] = {
                run.add: 6,
                run.add_many: 5,
                run.sync: 4,
                run.look: 5,
                run.pause: 3,
                run.pause_all: 1,
                run.resume: 1,
            }
            rare = [run.lose_mirror, run.replace, run.lose_leader]
            draw.shuffle(rare)
            for failure in (*rare, run.end):
                for step in draw.choices(list(steps), list(steps.values()), k=15):
                    step()
                failure()
