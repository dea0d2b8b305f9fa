"""Ledgers for clients: the life of a ledger, and what each of its readers sees."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import wait_until

import aerotape
from aerotape import ConfigurationError, LedgerError, QualifiedId
from aerotape.archive.features.ledger.entry_lookup import LedgerRecording
from aerotape.archive.features.ledger.log import Log
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.client.ledger import writing
from aerotape.counter_keys import CounterType
from aerotape.driver_tasks import add_publication
from aerotape.errors import (
    EntryDigestError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    LedgerInUseError,
    LedgerPasswordError,
    UnconfirmedEntryError,
    UnknownLedgerError,
)
from aerotape.waiting import Pause, Task, Wait

TYPES = ("PD_JOURNAL", "VD_JOURNAL")


def payloads(count: int, first: int = 0) -> list[bytes]:
    """Payloads of different lengths that contain their numbers."""
    return [b"entry %d " % index * (index % 7 + 1) for index in range(first, first + count)]


def read(reader: aerotape.LedgerReader, first: int = 0, last: int | None = None) -> list[bytes]:
    """The payloads of confirmed entries."""
    return [entry.payload for entry in reader.read(first, last)]


@pytest.mark.parametrize("kind", TYPES)
def test_the_behaviour_of_a_real_run(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, kind: str
) -> None:
    """LAC and reads after adds, sync, close and recovery are those of BookKeeper with and without
    DEFERRED_SYNC, except that closing syncs.
    """
    is_durable = kind == "PD_JOURNAL"
    written = payloads(11)
    with client.create_ledger(kind) as writer:  # type: ignore[arg-type]
        ledger = writer.qualified_id
        assert [writer.add(payload) for payload in written[:10]] == list(range(10))
        assert writer.last_add_confirmed == (9 if is_durable else -1)
        with other.open_ledger_read_only(ledger) as reader:
            assert reader.last_add_confirmed == (9 if is_durable else -1)
            assert [each.payload for each in reader.read_unconfirmed(0, 9)] == written[:10]
            if is_durable:
                assert read(reader, 0, 9) == written[:10]
            else:
                assert read(reader) == []
                with pytest.raises(UnconfirmedEntryError, match="last add confirmed is -1"):
                    reader.read(0, 9)
            assert writer.sync() == writer.last_add_confirmed == 9
            assert read(reader, 0, 9) == written[:10]
        assert writer.add(written[10]) == 10
    info = other.ledger_info(ledger)
    assert (info.state, info.last_add_confirmed, info.last_add_pushed) == ("CLOSED", 10, 10)
    assert info.length == sum(map(len, written))
    with other.open_ledger_read_only(ledger) as reader:
        assert read(reader) == written


@pytest.mark.parametrize("kind", TYPES)
def test_opening_recovers_and_fences(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, kind: str
) -> None:
    """Who opens a ledger gets all that was acknowledged; the old writer can add no more."""
    written = payloads(5)
    writer = client.create_ledger(kind)  # type: ignore[arg-type]
    for payload in written:
        writer.add(payload)
    with other.open_ledger(writer.qualified_id) as reader:
        assert (reader.is_closed, reader.last_add_confirmed) == (True, 4)
        assert read(reader) == written
        with pytest.raises(LedgerClosedError, match=r"closed by another client.* entry is 4"):
            writer.add(b"late")
        with pytest.raises(LedgerClosedError):
            writer.add(b"again")
        with pytest.raises(LedgerClosedError):
            writer.sync()
        assert writer.last_add_confirmed == 4
        assert read(reader) == written
    writer.close()


@pytest.mark.parametrize("kind", TYPES)
def test_a_writer_is_fenced_before_the_ledger_is_closed(
    client: aerotape.ArchiveClient,
    other: aerotape.ArchiveClient,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """While a recovery takes its time, the writer gets the error that it gets afterwards.

    Only `flush` may return, if all that was added before the fence was acknowledged.
    """
    await_durable_end = Log.await_durable_end

    def settle_late(
        self: Log, metadata: LedgerMetadata
    ) -> Generator[Wait, None, LedgerRecording]:
        yield Pause(1_000_000_000)
        return (yield from await_durable_end(self, metadata))

    monkeypatch.setattr(Log, "await_durable_end", settle_late)
    writer = client.create_ledger(kind)  # type: ignore[arg-type]
    assert writer.add(b"first") == 0
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(other.open_ledger, writer.qualified_id)
        with pytest.raises(LedgerClosedError, match="closed by another client"):
            while True:
                writer.add(b"more")
        assert not opening.done()
        for refused in (writer.sync, lambda: writer.add_many([b"late"])):
            with pytest.raises(LedgerClosedError):
                refused()
        flushed = 0
        with contextlib.suppress(LedgerClosedError):
            flushed = writer.flush()
        with opening.result(30) as reader:
            assert reader.last_add_confirmed >= flushed
    writer.close()


def test_streaming_adds(client: aerotape.ArchiveClient) -> None:
    """Adds that are not awaited get consecutive ids, and are acknowledged by a flush."""
    written = payloads(20_000)
    with client.create_ledger() as writer:
        for first in range(0, 20_000, 1_000):
            assert writer.add_async(*written[first : first + 1_000]) == first + 999
        assert writer.last_add_pushed == 19_999
        assert writer.flush() == 19_999
        assert writer.last_add_confirmed == 19_999
        assert writer.length == sum(map(len, written))
        assert writer.add_many(payloads(3, 20_000)) == range(20_000, 20_003)
        assert writer.add_many([]) == range(20_003, 20_003)
        with client.open_ledger_read_only(writer.qualified_id) as reader:
            assert read(reader) == payloads(20_003)
            for first, last in ((0, 0), (19_999, 20_002), (7_777, 7_778), (20_003, 20_002)):
                assert read(reader, first, last) == payloads(last - first + 1, first)


def test_entries_carry_what_was_confirmed(client: aerotape.ArchiveClient) -> None:
    """Each entry has the LAC of its add, which never decreases, and the length up to it."""
    with client.create_ledger("VD_JOURNAL", 4_711) as writer:
        for round in range(4):
            writer.add_many([b"12345"] * 10)
            assert writer.sync() == 10 * round + 9
    with client.open_ledger(4_711) as reader:
        found = list(reader.read())
    assert [each.last_add_confirmed for each in found] == [
        10 * (index // 10) - 1 for index in range(40)
    ]
    assert [each.length for each in found] == [5 * (index + 1) for index in range(40)]
    assert {(each.scope_id, each.ledger_id) for each in found} == {(0, 4_711)}


def test_entries_of_all_lengths(client: aerotape.ArchiveClient) -> None:
    """Empty entries, and those of many frames, are read back; longer ones are refused."""
    with client.create_ledger(digest_type="CRC32") as writer:
        longest = writer.max_payload_length
        written = [b"", b"x", bytes(range(256)) * 10, bytes(longest)]
        writer.add_many(written)
        for add in (writer.add, writer.add_async, lambda payload: writer.add_many([b"", payload])):
            with pytest.raises(ConfigurationError, match=f"at most {longest} bytes"):
                add(bytes(longest + 1))
        ledger = writer.qualified_id
    with client.open_ledger_read_only(ledger) as reader:
        assert read(reader) == written
        assert read(reader, 3) == written[3:]


def test_ids(client: aerotape.ArchiveClient) -> None:
    """Ids are given or generated, in any form; one that exists is refused."""
    with client.create_ledger() as generated:
        assert generated.scope_id != 0
        assert QualifiedId(generated.scope_id, generated.id) == generated.qualified_id
    name = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
    given = QualifiedId.parse(name)
    for ledger in (given, str(given), name):
        if ledger is given:
            client.create_ledger("VD_JOURNAL", ledger).close()
        else:
            with pytest.raises(LedgerExistsError) as caught:
                client.create_ledger("PD_JOURNAL", ledger)
            assert caught.value.ledger == given
        assert client.ledger_info(ledger).type == "VD_JOURNAL"
    client.create_ledger(qualified_id=12).close()
    assert client.ledger_info(12).id == QualifiedId(0, 12)
    with pytest.raises(UnknownLedgerError) as missing:
        client.ledger_info(QualifiedId(12, 12))
    assert missing.value.ledger == QualifiedId(12, 12)
    with pytest.raises(aerotape.errors.QualifiedIdError):
        client.ledger_info("12")


def test_ledgers_of_two_scopes_never_mix(client: aerotape.ArchiveClient) -> None:
    """Ledgers with one number in two scopes have their own entries."""
    ids = [QualifiedId(0, 7), QualifiedId(1, 7), QualifiedId(1 << 63, 7)]
    writers = [client.create_ledger(qualified_id=each) for each in ids]
    for index in range(10):
        for number, writer in enumerate(writers):
            writer.add(b"%d of %d" % (index, number))
    for number, writer in enumerate(writers):
        with client.open_ledger(writer.qualified_id) as reader:
            assert read(reader) == [b"%d of %d" % (index, number) for index in range(10)]
        listed = [info.id for info in client.list_ledgers(writer.scope_id, 7, 1)]
        assert listed == [writer.qualified_id]
        writer._writing.release()


def test_listing(client: aerotape.ArchiveClient) -> None:
    """A scope is listed in unsigned order, over several pages; other scopes are not."""
    numbers = sorted({0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, *range(100, 340)})
    for number in reversed(numbers):
        client.declare_ledger(qualified_id=QualifiedId(55, number))
    found = list(client.list_ledgers(55))
    assert [info.id.ledger_id for info in found] == numbers
    assert all(info.recording_id == -1 and not info.has_writer for info in found)
    assert [info.id.ledger_id for info in client.list_ledgers(55, 1 << 63)] == numbers[-2:]
    assert len(list(client.list_ledgers(55, count=201))) == 201
    assert list(client.list_ledgers(54)) == []
    empty = client.open_ledger(QualifiedId(55, 1))
    assert (read(empty), empty.last_add_confirmed, empty.is_closed) == ([], -1, True)


def test_listing_all_scopes(archive: ServedArchive) -> None:
    """Ledgers with generated ids are listed with the others, each once, up to a count."""
    with archive.connect() as client:
        created = {client.declare_ledger() for _ in range(5)}
        created |= {client.declare_ledger(qualified_id=901), client.declare_ledger()}
        found = [info.id for info in client.list_ledgers(None)]
        assert found == sorted(set(found))
        assert created <= set(found)
        for count in (0, 1, len(found) - 1, len(found) + 1):
            assert [info.id for info in client.list_ledgers(None, count=count)] == found[:count]


def test_two_writers(client: aerotape.ArchiveClient, other: aerotape.ArchiveClient) -> None:
    """A ledger with a writer refuses a second one; detached, it continues with another."""
    with client.create_ledger() as first:
        ledger = first.qualified_id
        first.add(b"one")
        for refused in (other, client):
            with pytest.raises(LedgerInUseError, match="has a writer") as caught:
                refused.open_ledger_writer(ledger)
            assert caught.value.ledger == ledger
        assert first.add(b"two") == 1
        first.detach()
        with other.open_ledger_writer(ledger) as second:
            assert (second.last_add_pushed, second.last_add_confirmed) == (1, 1)
            assert second.add(b"three") == 2
            assert second.length == 11
    with pytest.raises(LedgerClosedError, match="is closed"):
        client.open_ledger_writer(ledger)
    with client.open_ledger_read_only(ledger) as reader:
        assert read(reader) == [b"one", b"two", b"three"]
        assert [each.length for each in reader.read()] == [3, 6, 11]


def test_attaching_many_times_at_once(archive: ServedArchive) -> None:
    """Of several writers that attach at the same time one is accepted."""
    with archive.connect() as client:
        ledger = client.declare_ledger()

        def attach(_: int) -> aerotape.LedgerWriter | None:
            try:
                return client.open_ledger_writer(ledger)
            except LedgerInUseError:
                return None

        with ThreadPoolExecutor(4) as threads:
            writers = [each for each in threads.map(attach, range(4)) if each is not None]
        assert len(writers) == 1
        assert writers[0].add(b"accepted") == 0
        writers[0].close()


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_writer_that_attaches_between_two_requests_of_another(
    client: aerotape.ArchiveClient,
    other: aerotape.ArchiveClient,
    monkeypatch: pytest.MonkeyPatch,
    is_new: bool,
    leaves: bool,
) -> None:
    """The other one has prepared where it continues, and is refused: that is no longer the end."""
    ledger = client.declare_ledger()
    if not is_new:
        writer = client.open_ledger_writer(ledger)
        writer.add(b"first")
        writer.detach()
    original = add_publication
    writers: list[aerotape.LedgerWriter] = []

    def interrupted(*args: Any) -> Task[Any]:
        monkeypatch.setattr(writing, "add_publication", original)
        writers.append(other.open_ledger_writer(ledger, take_over=True))
        writers[0].add(b"second")
        if leaves:
            writers[0].detach()
        return (yield from original(*args))

    monkeypatch.setattr(writing, "add_publication", interrupted)
    with pytest.raises(LedgerFencedError if leaves else LedgerInUseError):
        client.open_ledger_writer(ledger, take_over=True)
    if not leaves:
        assert writers[0].add(b"third") == 2 - is_new
        writers[0].detach()
    with client.open_ledger_writer(ledger) as writer:
        assert writer.add(b"last") == 3 - is_new - leaves


def test_a_writer_that_vanishes(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient
) -> None:
    """The ledger stays open with what was recorded, for another writer."""
    written = payloads(3)
    writer = client.create_ledger("VD_JOURNAL")
    for payload in written:
        writer.add(payload)
    writer._writing.release()
    wait_until(lambda: not other.ledger_info(writer.qualified_id).has_writer, "the writer's end")
    info = other.ledger_info(writer.qualified_id)
    assert (info.state, info.last_add_pushed, info.last_add_confirmed) == ("OPEN", 2, 2)
    with other.open_ledger_writer(writer.qualified_id) as again:
        assert again.add(b"more") == 3
    with pytest.raises(aerotape.ClosedError, match="its writer is closed"):
        writer.add(b"closed")


def test_deleting(client: aerotape.ArchiveClient) -> None:
    """A ledger with a writer is not deleted; afterwards its id is free, its recording is gone."""
    writer = client.create_ledger(qualified_id=99)
    writer.add(b"first")
    with pytest.raises(LedgerInUseError):
        client.delete_ledger(99)
    writer.close()
    recording_id = client.ledger_info(99).recording_id
    client.delete_ledger(99)
    assert client.list_recording(recording_id) is None
    for request in (client.ledger_info, client.delete_ledger, client.open_ledger):
        with pytest.raises(UnknownLedgerError):
            request(99)
    with client.create_ledger("VD_JOURNAL", 99) as again:
        assert again.add(b"second") == 0
    with client.open_ledger_read_only(99) as reader:
        assert read(reader) == [b"second"]


@pytest.mark.parametrize("digest_type", ["HMAC", "CRC32C", "DUMMY"])
def test_passwords(client: aerotape.ArchiveClient, digest_type: str) -> None:
    """Without the password nothing is written, recovered or read."""
    writer = client.create_ledger(digest_type=digest_type, password=b"secret")  # type: ignore[arg-type]
    ledger = writer.qualified_id
    writer.add(b"private")
    writer.detach()
    for wrong in (b"", b"other"):
        opens = (client.open_ledger_writer, client.open_ledger, client.open_ledger_read_only)
        for request in opens:
            with pytest.raises(LedgerPasswordError, match="wrong password for ledger"):
                request(ledger, wrong)
    with client.open_ledger_writer(ledger, b"secret") as again:
        assert again.add(b"too") == 1
    with client.open_ledger(ledger, b"secret") as reader:
        assert read(reader) == [b"private", b"too"]
        if digest_type == "HMAC":
            reader._reading.password = b"other"
            with pytest.raises(EntryDigestError):
                read(reader)


def test_requests_of_plain_clients(client: aerotape.ArchiveClient) -> None:
    """The recording of a ledger cannot be changed as others can, but replayed."""
    with client.create_ledger() as writer:
        writer.add(b"entry")
        ledger = writer.qualified_id
    recording_id = client.ledger_info(ledger).recording_id
    requests: list[Callable[[], object]] = [
        lambda: client.purge_recording(recording_id),
        lambda: client.truncate_recording(recording_id, 0),
        lambda: client.extend_recording(recording_id, "aeron:ipc", 1_018),
        lambda: client.purge_segments(recording_id, 65_536),
        lambda: client.detach_segments(recording_id, 65_536),
        lambda: client.migrate_segments(recording_id, recording_id),
        lambda: client.update_channel(recording_id, "aeron:ipc"),
    ]
    for request in requests:
        with pytest.raises(aerotape.ArchiveError, match=f"is that of ledger {ledger}"):
            request()
    with client.replay(recording_id) as messages:
        assert [message.payload[-5:] for message in messages] == [b"entry"]


def test_the_confirmed_counter(client: aerotape.ArchiveClient) -> None:
    """Any client of the driver can follow LAC by a counter, and bound a replay by it."""
    with client.create_ledger("VD_JOURNAL") as writer:
        ledger, recording_id = writer.qualified_id, writer._info.recording_id
        rows = client.aeron.counters().rows(CounterType.CONFIRMED_POSITION)
        [row] = [each for each in rows if each[2][8:24] == ledger.key]
        assert str(ledger) in row[3]
        writer.add_many([b"one", b"two"])
        writer.sync()
        writer.add(b"three")
        info = client.ledger_info(ledger)
        assert info.confirmed_counter_id == row[0]
        assert client.aeron.counters().value(row[0]) == info.confirmed_position
        assert info.confirmed_position < info.recorded_position
        with client.replay(
            recording_id, 0, info.confirmed_position, limit_counter_id=row[0]
        ) as messages:
            assert [each.payload[-3:] for each in messages] == [b"one", b"two"]


def test_sync_with_a_callback(client: aerotape.ArchiveClient) -> None:
    """The callback and the future receive what is on storage, or the error."""
    called: list[tuple[object, int]] = []
    writer = client.create_ledger("VD_JOURNAL")
    assert writer.sync() == -1
    writer.add_many(payloads(3))
    future = writer.sync_async(lambda error, last: called.append((error, last)))
    assert future.result(30) == 2
    assert called == [(None, 2)]
    client.open_ledger(writer.qualified_id).close()
    with pytest.raises(LedgerClosedError):
        writer.add(b"late")
    failing = writer.sync_async(lambda error, last: called.append((error, last)))
    assert isinstance(failing.exception(30), LedgerError)
    assert isinstance(called[1][0], LedgerClosedError)
    writer.close()


def test_adds_and_syncs_of_several_threads(client: aerotape.ArchiveClient) -> None:
    """Ids are given once; a sync is never beyond LAP, and never decreases."""
    with client.create_ledger("VD_JOURNAL") as writer:
        ids: list[int] = []
        synced: list[int] = []
        done = threading.Event()

        def sync() -> None:
            while not done.is_set():
                synced.append(writer.sync())
                assert synced[-1] <= writer.last_add_pushed

        with ThreadPoolExecutor(5) as threads:
            syncing = threads.submit(sync)
            adding = [
                threads.submit(lambda: ids.extend(writer.add(b"x") for _ in range(200)))
                for _ in range(4)
            ]
            for each in adding:
                each.result(60)
            done.set()
            syncing.result(60)
        assert sorted(ids) == list(range(800))
        assert synced == sorted(synced)
        ledger = writer.qualified_id
    with client.open_ledger_read_only(ledger) as reader:
        assert len(read(reader)) == 800


def test_batches_of_several_threads(client: aerotape.ArchiveClient) -> None:
    """The ids that `add_many` returns are those of its own payloads, one after the other."""
    with client.create_ledger("VD_JOURNAL") as writer:
        ids: dict[int, bytes] = {}

        def add(number: int) -> None:
            for round in range(20):
                sent = [b"%d %d %d" % (number, round, index) for index in range(3 * number)]
                ids.update(zip(writer.add_many(sent), sent, strict=True))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(add, range(4)))
        with client.open_ledger_read_only(writer.qualified_id) as reader:
            assert {each.entry_id: each.payload for each in reader.read_unconfirmed()} == ids


def test_reading_past_the_end(client: aerotape.ArchiveClient) -> None:
    """The error has the last entry; of a closed ledger it does not advise to sync."""
    with client.create_ledger("VD_JOURNAL") as writer:
        writer.add(b"entry")
        with client.open_ledger_read_only(writer.qualified_id) as reader:
            with pytest.raises(UnconfirmedEntryError, match=r"confirmed is -1; sync the ledger"):
                reader.read(0, 0)
            with pytest.raises(UnconfirmedEntryError, match=r"last add pushed is 0$"):
                reader.read_unconfirmed(0, 1)
    with pytest.raises(aerotape.ClosedError, match="its writer is closed"):
        writer.sync()
    with client.open_ledger(writer.qualified_id) as reader:
        with pytest.raises(UnconfirmedEntryError, match=r"last add confirmed is 0$"):
            reader.read(0, 1)
        for first, last in ((-1, None), (1, -1)):
            with pytest.raises(ConfigurationError, match="in ascending order"):
                reader.read(first, last)


def test_refused_arguments(client: aerotape.ArchiveClient) -> None:
    """Types and digests that do not exist, and impossible quorums, create nothing."""
    before = list(client.list_ledgers())
    with pytest.raises(ConfigurationError, match="'ND_JOURNAL' is unknown"):
        client.create_ledger("ND_JOURNAL")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'MD5' is unknown"):
        client.create_ledger(digest_type="MD5")  # type: ignore[arg-type]
    with pytest.raises(aerotape.ArchiveError, match="ack quorum 2"):
        client.create_ledger(qualified_id=1_000, ack_quorum=2)
    assert list(client.list_ledgers()) == before


def test_a_closed_client(archive: ServedArchive) -> None:
    """A writer without its client fails, and does not hang."""
    client = archive.connect()
    writer = client.create_ledger()
    writer.add(b"x")
    client.close()
    begin_s = time.monotonic()
    with pytest.raises(aerotape.AerotapeError):
        for _ in range(100):
            writer.add(b"y")
    assert time.monotonic() - begin_s < 10
    assert writer.last_add_confirmed == 0


def test_a_first_entry_past_the_end_is_refused(client: aerotape.ArchiveClient) -> None:
    """The entry after the last one is the first that may be missing; later ones are an error."""
    with client.create_ledger("VD_JOURNAL") as writer:
        id = writer.qualified_id
        with client.open_ledger_read_only(id) as reader:
            assert list(reader.read(0)) == []
            with pytest.raises(ConfigurationError, match="last add confirmed is -1; begin with 0"):
                list(reader.read(1))
        for number in range(10):
            writer.add(b"%d" % number)
        with client.open_ledger_read_only(id) as reader:
            assert list(reader.read_unconfirmed(10)) == []
            with pytest.raises(ConfigurationError, match="last add pushed is 9; begin with 10"):
                list(reader.read_unconfirmed(11))
            with pytest.raises(ConfigurationError, match="or sync the ledger, or read unconf"):
                list(reader.read(10))
        writer.sync()
        with client.open_ledger_read_only(id) as reader:
            assert list(reader.read(10)) == []
            assert [each.entry_id for each in reader.read(9)] == [9]
            for limit in (None, 3):
                with pytest.raises(ConfigurationError, match=r"entries 100 to the end of ledger"):
                    list(reader.read(100, max_entries=limit))
    with client.open_ledger_read_only(id) as reader:
        assert reader.is_closed
        assert list(reader.read(10, follow=True)) == []
        for follow in (False, True):
            with pytest.raises(ConfigurationError, match=r"confirmed is 9; begin with 10 or a lo"):
                list(reader.read(11, follow=follow))
