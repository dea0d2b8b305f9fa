"""What is noted of ledgers: how far they are on storage, and their last entries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aerotape import QualifiedId
from aerotape.archive.features.ledger.entry_lookup import EntryMark
from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.metadata_store import MetadataStore
from aerotape.waiting import run

LEDGER = QualifiedId(1, 2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetadataStore]:
    """Metadata of one ledger."""
    with closing(MetadataStore.create(tmp_path, [LedgerMetadata(LEDGER, recording_id=0)])) as store:
        yield store


def forced(store: MetadataStore) -> int | None:
    """Up to where the ledger is on storage."""
    found = store.forced(LEDGER)
    return None if found is None else found.position


def test_a_note_that_comes_late_takes_nothing_back(store: MetadataStore) -> None:
    """Only a cut does, and the last entry after it is not known any more."""
    assert forced(store) is None
    store.set_forced(LEDGER, 960, EntryMark(928, 9, 90, 8))
    store.set_forced(LEDGER, 384, EntryMark(384, 3, 30, 2))
    assert forced(store) == 960
    assert store.last_entry(LEDGER, 959) is None
    noted = store.last_entry(LEDGER, 960)
    assert noted is not None
    assert (noted.position, noted.entry) == (960, EntryMark(928, 9, 90, 8))
    store.set_forced(LEDGER, 1_920)
    assert store.last_entry(LEDGER, 2_000) == noted
    store.cut(LEDGER, 384)
    assert forced(store) == 384
    assert store.last_entry(LEDGER, 2_000) is None


def test_a_note_stays_due_while_requests_end(store: MetadataStore, tmp_path: Path) -> None:
    """Until the next cycle of the conductor, in which recordings are asked."""
    with closing(LedgerWorker(tmp_path, lambda: None, lambda text: None)) as worker:
        worker.do_work()
        assert worker.is_note_due
        run(worker.get(LEDGER))
        assert worker.is_note_due
        worker.note_forced(LEDGER, 640)
        worker.do_work()
        assert not worker.is_note_due
        run(worker.get(LEDGER))
    assert forced(store) == 640
