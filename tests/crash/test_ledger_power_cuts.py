"""Power cuts while ledgers are written: what was reported of them is on storage."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.power_cut.ledger_run import payload
from support.power_cut.power_cut import Cut, Run, build_shim, recorded
from support.power_cut.run import RUN_S

from aerotape.archive.features.ledger.entry_lookup import LedgerRecording
from aerotape.archive.features.ledger.metadata_rebuild import open_store
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.codecs import entry as codec
from aerotape.errors import AerotapeError, UnknownLedgerError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.crash


@dataclass
class Promised:
    """What clients know of a ledger."""

    kind: str
    told: int = -1
    last: int | None = None
    is_deleted: bool | None = False  # None: requested


def promises(cut: Cut) -> dict[str, Promised]:
    """What had been reported when the power failed."""
    known: dict[str, Promised] = {}
    for text in cut.notes:
        what, name, *rest = json.loads(text)
        if what == "created":
            known[name] = Promised(rest[0])
        elif what == "told":
            known[name].told = max(known[name].told, rest[0])
        elif what == "closed":
            known[name].last = known[name].told = rest[0]
        else:
            known[name].is_deleted = None if what == "delete" else True
    return known


def check(directory: Path, cut: Cut) -> int:
    """Start on the directory, as an archive does, and check each ledger; count the entries."""
    known = promises(cut)
    if not known:
        return 0
    with Catalog.open(directory, create=True, capacity_bytes=2048) as catalog:
        refresh(catalog, directory, now_ms=1)
    store = open_store(directory, create=False)
    assert store is not None
    checked = 0
    try:
        for name, promised in known.items():
            ledger = QualifiedId.parse(name)
            if promised.is_deleted is not False:
                if promised.is_deleted:
                    with pytest.raises(UnknownLedgerError):
                        store.get(ledger)
                continue
            metadata = store.get(ledger)
            assert metadata.type.name == promised.kind
            if promised.last is not None:
                assert (metadata.is_closed, metadata.last_entry_id) == (True, promised.last)
            if promised.told < 0:
                continue
            recording = open_directory(directory).recording(metadata.recording_id)
            stop = recording.descriptor.stop_position
            stored = LedgerRecording(directory, recording.descriptor, "CRC32C")
            forced = store.forced(ledger)
            first_torn_position = stored.first_torn_position(
                stop, 0 if forced is None else forced.position
            )
            end = stored.last_entry(stop if first_torn_position is None else first_torn_position)
            assert end.entry_id >= promised.told, f"{name} ends at {end}, promised {promised}"
            for index, message in enumerate(recording.messages(0, end.position)):
                if index > promised.told:
                    break  # it may be damaged, which a reader meets
                found = codec.decode(message.payload, entry_id=index)
                assert (found.qualified_id, found.payload) == (ledger, payload(index))
                checked += 1
    finally:
        store.close()
    return checked


def checked_states(run: Run, left: Path, seed: int, count: int, step: int) -> int:
    """Check some of the states after power cuts; return the number of entries in them."""
    states = {cut.state: cut for cut in run.power_cuts(seed, 1, step) if promises(cut)}
    cuts = list(states.values())
    *_, last = cuts
    checked = 0
    for cut in [*random.Random(seed).sample(cuts, min(count, len(cuts))), last]:
        cut.write(left)
        try:
            checked += check(left / "archive", cut)
        except BaseException as error:
            error.add_note(f"{cut}, --seed={seed}")
            raise
        finally:
            shutil.rmtree(left)
    return checked


def test_ledgers_survive_power_cuts(tmp_path: Path, aeron_dir: Path, seeds: range) -> None:
    """Whenever the power fails: created ledgers exist with their types, closed ones are closed, and
    all entries up to a LAC that was reported are there. Without forcing it, some are not.
    """
    root = aeron_dir.parent / "root"
    (root / "archive").mkdir(parents=True)
    command = [sys.executable, "-m", "support.power_cut.ledger_run"]
    command += [str(root), str(aeron_dir), str(seeds.start)]
    run = recorded(build_shim(tmp_path), root, tmp_path / "log", command, RUN_S + 30)
    left = aeron_dir.parent / "left"
    many = len(seeds) > 1
    assert checked_states(run, left, seeds.start, 500 if many else 30, 1 if many else 4) > 0
    places_of_catalog = re.compile(r"durability\.py force_catalog|catalog\.py Catalog\.force:")
    catalog = list(filter(places_of_catalog.match, run.places_of_forcing()))
    for places in (["native code, bytes"], ["native code, names"], catalog):
        with pytest.raises((AssertionError, AerotapeError, OSError)):
            checked_states(run.without(*places), left, seeds.start, 500, 4)
