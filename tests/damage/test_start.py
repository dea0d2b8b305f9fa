"""Archives started on damaged directories: what is whole is served, nothing is lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import java
from support.archives import EMBEDDED_DRIVER
from support.damaged_directory import (
    HIDDEN,
    BuiltDirectory,
    content,
    first_damage,
    surviving,
)
from support.damages import Damaged
from support.promise import check_untouched

import aerotape
from aerotape.catalog.catalog import Catalog
from aerotape.catalog.refresh import RecordingOutcome, refresh
from aerotape.errors import AerotapeError, CatalogError

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_NOW_MS = 1_800_000_000_000


def start(directory: Path) -> list[RecordingOutcome]:
    """Do what a start does to the directory."""
    with Catalog.open(directory, create=True) as catalog:
        return refresh(catalog, directory, checksum="crc-32c", now_ms=_NOW_MS)


def test_a_start_loses_nothing(built: BuiltDirectory, damaged: Damaged, directory: Path) -> None:
    """All frames are in the recordings or in quarantine; what was not damaged is not touched."""
    before = content(directory)
    try:
        outcomes = {each.recording_id: each for each in start(directory)}
    except CatalogError:
        assert damaged.hit.no_catalog
        assert content(directory) == before
        return
    lost = damaged.surviving - surviving(built, directory)
    assert not lost
    check_untouched(built, directory, damaged.hit)
    if damaged.hit.no_catalog:
        return
    for number, original in built.originals.items():
        if original.live and number not in damaged.hit.recordings:
            outcome = outcomes[number]
            assert (outcome.repaired, outcome.stop_position) == (True, original.stream.position)
    again = content(directory)
    start(directory)
    assert content(directory) == again, "a second start found more to do"


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    """The directory of a media driver for all archives here."""
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir=IN_MEMORY) as parent:
        path = Path(parent, "aeron")
        with aerotape.MediaDriver.launch(path, EMBEDDED_DRIVER):
            yield path


def test_the_archive_starts_and_serves(
    built: BuiltDirectory, damaged: Damaged, directory: Path, aeron_dir: Path
) -> None:
    """Replays of what was not damaged are whole; others end at the damage, with all before it."""
    before = content(directory)
    properties = {
        **java.FAST_ARCHIVE,
        "aeron.archive.control.channel.enabled": "false",
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
        "aeron.archive.low.storage.space.threshold": "1m",
    }
    try:
        archive = aerotape.Archive.launch(directory, aeron_dir, "external", properties)
    except AerotapeError as error:
        assert damaged.hit.no_catalog
        assert len(str(error).splitlines()) == 1
        after = content(directory)
        # The mark file says who tried.
        assert [name for name in before if before[name] != after.get(name)] == ["archive-mark.dat"]
        return
    with (
        archive,
        aerotape.connect(
            aeron_dir=aeron_dir,
            control_request_channel="aeron:ipc",
            control_response_channel="aeron:ipc",
        ) as client,
    ):
        if damaged.hit.no_catalog:
            assert list(client.list_recordings()) == []
            return
        for number, original in built.originals.items():
            if number == HIDDEN or number in damaged.hit.entries:
                continue
            served, failure = replay(client, number)
            # Replays look at checksums only when they are told to.
            first, provable = first_damage(original, damaged.path, is_summed=False)
            if first is None and (number not in damaged.hit.recordings or not original.live):
                assert (served, failure) == (original.messages, ""), f"recording {number}"
                continue
            if original.live and client.stop_position(number) == -1:
                assert "no stop position" in failure or "cannot be" in failure, failure
                continue
            expected = original.messages if first is None else original.messages_before(first)
            assert served[: len(expected)] == expected
            if provable is None or original.live:
                continue
            assert all(position < provable for position, _ in served)
            assert failure
    assert not damaged.surviving - surviving(built, directory)


def replay(
    client: aerotape.ArchiveClient, recording_id: int
) -> tuple[list[tuple[int, bytes]], str]:
    """Replay a recording to its end, or to the error that ends it."""
    served = []
    try:
        with client.replay(recording_id) as messages:
            for message in messages:
                served.append((message.position, bytes(message.payload)))
    except AerotapeError as error:
        return served, str(error)
    return served, ""
