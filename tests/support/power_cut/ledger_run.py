"""Ledgers of a running archive, for `power_cut`: a separate process.

    python -m support.power_cut.ledger_run ROOT AERON_DIR SEED

The archive in ROOT/archive has catalog and file sync level 0, so that nothing but the ledgers
themselves force data to storage. Reports to clients are noted as JSON, each note a list:

* `["created", name, type]`, `["closed", name, last entry]`, `["deleted", name]`: it is done;
* `["told", name, entry]`: a LAC was reported;
* `["delete", name]`: it will be requested.

Ends in the middle of it.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
from pathlib import Path

import aerotape
from aerotape.catalog import layout
from support.jvm.java import FAST_ARCHIVE, FAST_DRIVER
from support.power_cut.places import say_places
from support.power_cut.run import RUN_S, _SeenStruct, note

PROPERTIES = {
    **FAST_DRIVER,
    **FAST_ARCHIVE,
    "aeron.archive.segment.file.length": "65536",
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.file.sync.level": "0",
    "aeron.archive.catalog.file.sync.level": "0",
}
CHANNEL = "aeron:ipc?term-length=64k"


def payload(index: int) -> bytes:
    """A payload that contains its number."""
    return b"%d:" % index * (index % 300 + 1)


class Written:
    """A ledger with a writer."""

    def __init__(self, client: aerotape.ArchiveClient, kind: str) -> None:
        self.client = client
        self.writer = client.create_ledger(kind, channel=CHANNEL)  # type: ignore[arg-type]
        self.name = str(self.writer.qualified_id)
        note("created", self.name, kind)

    def add(self, count: int, *, synced: bool) -> None:
        first = self.writer.last_add_pushed + 1
        self.writer.add_many([payload(index) for index in range(first, first + count)])
        if synced:
            self.writer.sync()
        self.tell()

    def tell(self) -> None:
        note("told", self.name, self.writer.last_add_confirmed)

    def reattach(self) -> None:
        self.writer.detach()
        note("told", self.name, self.client.ledger_info(self.name).last_add_confirmed)
        self.writer = self.client.open_ledger_writer(self.name, channel=CHANNEL)
        self.tell()

    def close(self) -> None:
        self.writer.close()
        note("closed", self.name, self.writer.last_add_pushed)


def main(root: Path, aeron_dir: Path, seed: int) -> None:
    draw = random.Random(seed)
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    for name in ("INT", "LONG"):
        setattr(layout, name, _SeenStruct(getattr(layout, name)))
    say_places()
    aerotape.Archive.launch(root / "archive", aeron_dir, properties=PROPERTIES)
    client = aerotape.connect(aeron_dir=aeron_dir)
    ledgers = [Written(client, kind) for kind in ("PD_JOURNAL", "VD_JOURNAL")]
    for number in range(8):
        for ledger in ledgers:
            ledger.add(draw.randrange(1, 80), synced=draw.random() < 0.4)
        if number == 3:
            for ledger in ledgers:
                ledger.reattach()
        if number == 5:
            short = Written(client, "VD_JOURNAL")
            short.add(5, synced=False)
            short.close()
            note("delete", short.name)
            client.delete_ledger(short.name)
            note("deleted", short.name)
    ledgers[1].close()
    ledgers[0].add(20, synced=False)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
