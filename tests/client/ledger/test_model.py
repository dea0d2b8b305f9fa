"""Random actions on a ledger, against a model of LAP, LAC and what may be read."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field

import pytest

import aerotape
from aerotape.errors import LedgerClosedError, LedgerInUseError, UnconfirmedEntryError


@dataclass
class Model:
    """What is known of a ledger.

    Attributes:
        payloads: of all entries that were added.
        acknowledged: the last entry that is acknowledged.
        safe: the last entry that is certainly on storage.
    """

    is_durable: bool
    payloads: list[bytes] = field(default_factory=list)
    acknowledged: int = -1
    safe: int = -1

    @property
    def last(self) -> int:
        """The last entry, LAP."""
        return len(self.payloads) - 1

    def acknowledge(self) -> None:
        """All entries are acknowledged, of a durable ledger on storage."""
        self.acknowledged = self.last
        if self.is_durable:
            self.safe = self.last

    def check_confirmed(self, confirmed: int | None, lowest: int) -> int:
        """Check a LAC that was reported after `lowest` was."""
        assert confirmed is not None
        assert max(lowest, self.safe) <= confirmed <= self.last
        if not self.is_durable:
            # Nothing but a sync, or the end of a writer, forces entries to storage.
            assert confirmed == self.safe
        return confirmed


class Actions:
    """A ledger with a writer, and another client."""

    def __init__(
        self,
        client: aerotape.ArchiveClient,
        other: aerotape.ArchiveClient,
        kind: str,
        draw: random.Random,
    ) -> None:
        self.client, self.other, self.draw = client, other, draw
        self.model = Model(kind == "PD_JOURNAL")
        self.channel = "aeron:ipc?term-length=64k"
        self.writer = client.create_ledger(kind, channel=self.channel)  # type: ignore[arg-type]
        self.confirmed = -1

    def payload(self) -> bytes:
        payload = self.draw.randbytes(self.draw.choice((0, 1, 30, 500, 3_000)))
        self.model.payloads.append(payload)
        return payload

    def add(self) -> None:
        payload = self.payload()
        assert self.writer.add(payload) == self.model.last
        self.model.acknowledge()

    def add_many(self) -> None:
        payloads = [self.payload() for _ in range(self.draw.randrange(1, 30))]
        assert self.writer.add_async(*payloads) == self.model.last

    def flush(self) -> None:
        assert self.writer.flush() == self.model.last
        self.model.acknowledge()

    def sync(self) -> None:
        assert self.writer.sync() == self.model.last
        self.model.acknowledged = self.model.safe = self.model.last

    def look(self) -> None:
        self.confirmed = self.model.check_confirmed(self.writer.last_add_confirmed, self.confirmed)
        assert self.writer.last_add_pushed == self.model.last
        assert self.writer.length == sum(map(len, self.model.payloads))

    def look_elsewhere(self) -> None:
        info = self.other.ledger_info(self.writer.qualified_id)
        self.confirmed = self.model.check_confirmed(info.last_add_confirmed, self.confirmed)
        assert info.last_add_pushed is not None
        pushed = info.last_add_pushed
        assert max(self.confirmed, self.model.acknowledged) <= pushed <= self.model.last
        assert info.length == sum(map(len, self.model.payloads[: pushed + 1]))

    def read(self) -> None:
        reader = self.other.open_ledger_read_only(self.writer.qualified_id)
        found = list(reader.read())
        self.confirmed = self.model.check_confirmed(reader.last_add_confirmed, self.confirmed)
        assert [each.payload for each in found] == self.model.payloads[: self.confirmed + 1]
        carried = [each.last_add_confirmed for each in found]
        assert carried == sorted(carried)
        assert all(each.last_add_confirmed < each.entry_id for each in found)
        if not self.model.is_durable and self.model.last > self.confirmed:
            with pytest.raises(UnconfirmedEntryError):
                reader.read(0, self.confirmed + 1)

    def read_unconfirmed(self) -> None:
        last = self.model.acknowledged
        if last < 0:
            return
        first = self.draw.randrange(last + 1)
        reader = self.other.open_ledger_read_only(self.writer.qualified_id)
        found = [each.payload for each in reader.read_unconfirmed(first, last)]
        assert found == self.model.payloads[first : last + 1]

    def reattach(self) -> None:
        with pytest.raises(LedgerInUseError):
            self.other.open_ledger_writer(self.writer.qualified_id)
        self.writer.detach()
        self.model.acknowledged = self.model.safe = self.model.last
        self.client, self.other = self.other, self.client
        self.writer = self.client.open_ledger_writer(self.writer.qualified_id, channel=self.channel)
        assert self.writer.last_add_pushed == self.model.last

    def end(self) -> None:
        """Close or recover the ledger; all that was acknowledged is there then."""
        if self.draw.random() < 0.5:
            self.writer.close()
            self.model.acknowledge()
        reader = self.other.open_ledger(self.writer.qualified_id)
        found = [each.payload for each in reader.read()]
        assert found == self.model.payloads[: len(found)]
        assert len(found) > max(self.model.acknowledged, self.model.safe, self.confirmed)
        assert reader.last_add_confirmed == len(found) - 1
        with contextlib.suppress(LedgerClosedError):  # adds without acknowledgement are lost
            self.writer.close()
        self.client.delete_ledger(self.writer.qualified_id)


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_a_ledger_behaves_as_the_model(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, kind: str, seeds: range
) -> None:
    """After any adds, syncs and changes of the writer, positions and entries are the model's."""
    for seed in seeds:
        draw = random.Random(f"{seed} {kind}")
        for _ in range(4):
            actions = Actions(client, other, kind, draw)
            steps = {
                actions.add: 6,
                actions.add_many: 5,
                actions.flush: 2,
                actions.sync: 2,
                actions.look: 4,
                actions.look_elsewhere: 3,
                actions.read: 2,
                actions.read_unconfirmed: 2,
                actions.reattach: 1,
            }
            for step in draw.choices(list(steps), list(steps.values()), k=80):
                step()
            actions.end()
