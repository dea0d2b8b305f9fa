"""Ledgers on three archives: one leads, two mirror it; archives are stopped, slow and killed."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.daemon.mirrored import Three, cut, payloads, running
from support.damage.sync_shim import build_shim
from support.processes import free_port

import aerotape
from aerotape.archive.features.ledger.protocol.member_record import MirrorStep
from aerotape.catalog.segment_files import list_segment_files
from aerotape.codecs.generated.ledger_control import (
    DigestType,
    LedgerInfoRequest,
    LedgerType,
    MirrorLedgerRequest,
)
from aerotape.errors import (
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    LedgerClosedError,
    LedgerError,
    UnknownLedgerError,
)

TYPES = ("PD_JOURNAL", "VD_JOURNAL")
# So long do archives wait for one that is stopped, was killed or does not exist.
BRIEF = {"aeron.archive.connect.timeout": "2500ms", "aeron.archive.message.timeout": "2500ms"}


@pytest.fixture
def three() -> Iterator[Three]:
    """Three archives for one test."""
    with running(properties=BRIEF) as three:
        yield three


@pytest.fixture(scope="module")
def shared() -> Iterator[Three]:
    """Three archives for tests that do not kill any."""
    with running(properties=BRIEF) as three:
        yield three


@pytest.mark.parametrize("kind", TYPES)
def test_all_archives_have_the_entries(shared: Three, kind: str) -> None:
    """The same recording, and the ledger is closed in all of them."""
    with shared.client() as client:
        with shared.create(client, kind) as writer:
            ledger = writer.qualified_id
            sent = payloads(0, 1_000)
            assert [writer.add(payload) for payload in sent[:10]] == list(range(10))
            assert writer.add_many(sent[10:]) == range(10, 1_000)
            assert writer.sync() == 999
        found = client.ledger_info(ledger)
        assert (found.last_add_confirmed, found.is_closed) == (999, True)
    shared.await_equal(ledger, sent)
    recording_ids = [shared.info(index, ledger).recording_id for index in range(3)]
    files = [
        [segment.path.read_bytes() for segment in list_segment_files(archive.archive_dir, found_id)]
        for archive, found_id in zip(shared.archives, recording_ids, strict=True)
    ]
    assert files[0] == files[1] == files[2]
    await_true(lambda: all(shared.info(index, ledger).is_closed for index in (1, 2)))
    assert {shared.info(index, ledger).type for index in range(3)} == {kind}


def test_a_mirror_request_that_fails_leaves_nothing(shared: Three) -> None:
    """An archive forgets a ledger whose leader, by the request to mirror it, does not respond."""
    scope_id, ledger_id = aerotape.QualifiedId.generate().signed
    with aerotape.Aeron(shared.archives[1].aeron_dir) as aeron:
        raw = RawClient(aeron._native, "aeron:ipc", response_stream_id=902)
        raw.connect()
        refused = raw.call(
            MirrorLedgerRequest,
            scope_id=scope_id,
            ledger_id=ledger_id,
            source_recording_id=0,
            source_channel=f"aeron:udp?endpoint=localhost:{free_port()}",
            source_stream_id=10,
            step=MirrorStep.FOLLOW,
            ledger_type=LedgerType.PD_JOURNAL,
            digest_type=DigestType.CRC32C,
        )
        assert "cannot mirror ledger" in refused.error_message
        found = raw.call(LedgerInfoRequest, scope_id=scope_id, ledger_id=ledger_id)
        assert "unknown ledger" in found.error_message


@pytest.mark.parametrize("kind", TYPES)
def test_an_ack_quorum_is_enough_and_necessary(shared: Three, kind: str) -> None:
    """One mirror that does not respond delays nothing; with two, nothing is acknowledged."""
    with shared.client(timeout_s=3.0) as client:
        writer = shared.create(client, kind)
        writer.add(b"first")
        with shared.stopped(1):
            assert writer.add_many(payloads(0, 100))[-1] == 100
            assert writer.sync() == 100
            with shared.stopped(2):
                with pytest.raises((AeronTimeoutError, LedgerError)):
                    writer.add(b"not acknowledged")
                assert client.ledger_info(writer.qualified_id).last_add_confirmed == 100
                assert writer.last_add_confirmed == 100


def test_a_leader_that_has_lost_confirmed_entries_has_them_again(
    three: Three, tmp_path: Path
) -> None:
    """Its directory is put back to an older state: it gets them back from the mirrors."""
    directory, backup = three.archives[0].archive_dir, tmp_path / "backup"
    sent = payloads(0, 120)
    with three.client() as client, three.create(client, "PD_JOURNAL") as writer:
        ledger = writer.qualified_id
        writer.add_many(sent[:20])
        writer.detach()
    three.archives[0].stop()
    shutil.copytree(directory, backup)
    three.archives[0] = three.start(0)
    with three.client() as client, client.open_ledger_writer(ledger) as writer:
        for payload in sent[20:]:
            writer.add(payload)
        writer.detach()
    three.await_equal(ledger, sent)
    three.archives[0].stop()
    shutil.rmtree(directory)
    shutil.copytree(backup, directory)
    three.archives[0] = three.start(0)

    await_true(lambda: three.info(0, ledger).last_add_confirmed == 119)
    for index in range(3):
        assert three.entries(index, ledger) == sent


@pytest.mark.parametrize("kind", TYPES)
def test_confirmed_is_what_an_ack_quorum_has_synced(
    three: Three, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows the other two while the syncs of one mirror hang, and no one with two."""
    monkeypatch.setenv("LD_PRELOAD", str(build_shim(tmp_path)))
    holds = {index: tmp_path / str(index) / "0-0.rec.hold" for index in (1, 2)}
    for index, hold in holds.items():
        hold.parent.mkdir()
        monkeypatch.setenv("SYNC_CONTROL", str(hold.parent))
        three.archives[index].stop()
        three.archives[index] = three.start(index)
    monkeypatch.undo()
    holds[1].touch()
    with three.client() as client, three.create(client, kind) as writer:
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 100))
        assert writer.sync() == 99
        synced = [three.info(index, ledger).last_add_confirmed for index in range(3)]
        assert synced == [99, -1, 99]
        assert three.info(1, ledger).last_add_pushed == 99, "it is recorded"
        holds[2].touch()
        writer.add_async(*payloads(100, 110))
        await_true(lambda: three.info(2, ledger).last_add_pushed == 109)
        if kind == "VD_JOURNAL":
            assert writer.sync() == 99, "what the quorum has"
        assert client.ledger_info(ledger).last_add_confirmed == 99
        holds[1].unlink()
        assert writer.sync() == 109
        holds[2].unlink()
    three.await_equal(ledger, payloads(0, 110))


def test_the_status_shows_each_mirror(three: Three) -> None:
    """Whether it is connected, how far it is, and why not."""
    first, second = three.mirrors
    with three.client() as client, three.create(client, "PD_JOURNAL") as writer:
        writer.add_many(payloads(0, 100))

        def members() -> dict[str, aerotape.LedgerMirror]:
            found = client.ledger_info(writer.qualified_id)
            return {each.channel: each for each in found.members}

        end = client.ledger_info(writer.qualified_id).recorded_position
        await_true(lambda: all(each.confirmed_position == end for each in members().values()))
        assert all(each.is_connected and not each.error for each in members().values())
        three.kill(1)
        writer.add(b"next")
        await_true(lambda: bool(members()[first].error), 60)
        assert not members()[first].is_connected
        assert first in members()[first].error
        assert members()[second].is_connected


def test_nothing_volatile_is_confirmed_before_a_sync(shared: Three) -> None:
    """Although all archives have recorded it."""
    with shared.client() as client, shared.create(client, "VD_JOURNAL", ack_quorum=3) as writer:
        writer.add_many(payloads(0, 50))
        assert writer.last_add_confirmed == -1
        assert client.ledger_info(writer.qualified_id).last_add_confirmed == -1
        assert writer.sync() == 49
        assert client.ledger_info(writer.qualified_id).last_add_confirmed == 49


def test_a_persistent_ledger_continues_without_a_mirror_that_catches_up(three: Three) -> None:
    """The mirror is killed, and has all entries once it is back."""
    with three.client() as client:
        with three.create(client, "PD_JOURNAL") as writer:
            ledger = writer.qualified_id
            writer.add_many(payloads(0, 100))
            three.kill(1)
            writer.add_many(payloads(100, 500))
            three.restart(1)
            writer.add_many(payloads(500, 600))
            await_true(lambda: three.entries(1, ledger) == payloads(0, 600))
        assert client.ledger_info(ledger).last_add_confirmed == 599
    three.await_equal(ledger, payloads(0, 600))


def test_a_mirror_that_fails_ends_the_writer_of_a_volatile_ledger(three: Three) -> None:
    """It cannot be replaced; what was acknowledged stays, and the others close the ledger."""
    with three.client(timeout_s=30.0) as client:
        writer = three.create(client, "VD_JOURNAL")
        ledger = writer.qualified_id
        added = writer.add_many(payloads(0, 100))[-1]
        three.kill(1)
        with pytest.raises(LedgerError, match=rf"mirror .*:{three.ports[1]}"):
            deadline_s = time.monotonic() + 30
            while time.monotonic() < deadline_s:
                added = writer.add(payloads(added + 1, added + 2)[0])
                time.sleep(0.01)
        writer.close()
        with pytest.raises(AerotapeError, match="mirror"):
            client.open_ledger_writer(ledger)
        three.restart(1)
        with client.open_ledger_writer(ledger) as writer:
            begin = writer.last_add_pushed + 1
            assert begin > added
            writer.add(b"last")
        reader = client.open_ledger(ledger)
        assert reader.last_add_confirmed == begin
    three.await_equal(ledger, [*payloads(0, begin), b"last"])


def test_a_mirror_that_cannot_be_reached_is_reported(shared: Three) -> None:
    """No ledger is created, in none of the archives, and nothing of it is left."""
    nobody = f"aeron:udp?endpoint=localhost:{free_port()}"
    ledger = aerotape.QualifiedId.generate()
    with (
        shared.client(timeout_s=30.0) as client,
        pytest.raises(LedgerError, match=re.escape(f"mirror {nobody}")),
    ):
        client.create_ledger(
            "PD_JOURNAL",
            ledger,
            write_quorum=3,
            ack_quorum=2,
            mirrors=[shared.mirrors[0], nobody],
        )
    for index in (0, 1):
        with shared.client(index) as client, pytest.raises(UnknownLedgerError):
            client.ledger_info(ledger)


def test_a_mirror_with_another_ledger_of_the_same_id_is_reported(shared: Three) -> None:
    """The error has the mirror's channel and the fields that differ."""
    ledger = aerotape.QualifiedId.generate()
    with shared.client(1) as mirror:
        mirror.create_ledger("VD_JOURNAL", ledger, digest_type="CRC32")
        with shared.client() as client, pytest.raises(ArchiveError) as refused:
            client.create_ledger(
                "PD_JOURNAL", ledger, write_quorum=3, ack_quorum=2, mirrors=shared.mirrors
            )
    for index in (0, 2):
        # The other mirror has it no longer.
        with shared.client(index) as client, pytest.raises(UnknownLedgerError):
            client.ledger_info(ledger)
    assert f"mirror {shared.mirrors[0]} of ledger {ledger}" in str(refused.value)
    assert "of another kind (type, digest type) already: delete it in the mirror" in str(
        refused.value
    )


def test_only_mirrors_of_persistent_ledgers_can_be_replaced(shared: Three) -> None:
    """The other archive has all entries, and the ledger's metadata names it."""
    first, second = shared.mirrors
    with shared.client() as client:
        ledger = aerotape.QualifiedId.generate()
        with client.create_ledger(
            "PD_JOURNAL", ledger, write_quorum=2, ack_quorum=2, mirrors=[first]
        ) as writer:
            writer.add_many(payloads(0, 100))
            with pytest.raises(ArchiveError, match="the mirrors of ledger"):
                client.replace_mirror(ledger, second, first)
            client.replace_mirror(ledger, first, second)
            writer.add_many(payloads(100, 110))
        assert client.ledger_info(ledger).mirrors == (second,)
        assert shared.entries(2, ledger) == payloads(0, 110)
        with pytest.raises(LedgerClosedError):
            client.replace_mirror(ledger, second, first)
        with (
            client.create_ledger(
                "VD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[first]
            ) as writer,
            pytest.raises(ArchiveError, match="only those of a PD_JOURNAL"),
        ):
            client.replace_mirror(writer.qualified_id, first, second)


def test_one_archive_under_two_names_does_not_count_twice(shared: Three) -> None:
    """Neither a mirror that is named twice, nor the leader itself."""
    first = shared.mirrors[0]
    again = first.replace("localhost", "127.0.0.1")
    own = shared.archives[0].control_channel.replace("localhost", "127.0.0.1")
    with shared.client(timeout_s=30.0) as client:
        for mirrors in ([first, again], [first, own]):
            with pytest.raises(ArchiveError, match="which stores the ledger already"):
                client.create_ledger("PD_JOURNAL", write_quorum=3, ack_quorum=3, mirrors=mirrors)
        with pytest.raises(ArchiveError, match="is named twice"):
            client.create_ledger("PD_JOURNAL", write_quorum=3, ack_quorum=3, mirrors=[first, first])
        same = shared.archives[0].control_channel
        with pytest.raises(ArchiveError, match="expected 1 <= ack quorum"):
            client.create_ledger("PD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[same])


def test_a_mirror_of_a_ledger_without_a_writer_is_replaced(three: Three) -> None:
    """Both groups agree, then the first mirror is no member and does not count any more."""
    first, second = three.mirrors
    with three.client(timeout_s=30.0) as client:
        with client.create_ledger(
            "PD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[first]
        ) as writer:
            ledger = writer.qualified_id
            writer.add_many(payloads(0, 100))
            writer.detach()
        client.replace_mirror(ledger, first, second)

        def members() -> list[str]:
            return [each.channel for each in client.ledger_info(ledger).members]

        await_true(lambda: members() == [second])
        assert three.entries(2, ledger) == payloads(0, 100)
        three.kill(1)
        with client.open_ledger_writer(ledger) as writer:
            assert writer.add(b"next") == 100
    assert three.entries(2, ledger) == [*payloads(0, 100), b"next"]


def test_a_leader_that_is_lost_is_replaced(three: Three) -> None:
    """Its mirror continues with a third archive."""
    first, second = three.mirrors
    with three.client() as client:
        writer = client.create_ledger("PD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[first])
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 100))
        lost = three.archives[0].control_channel
        three.kill(0)
    with three.client(1, timeout_s=30.0) as client:
        with pytest.raises(LedgerError, match=re.escape(lost)):
            client.open_ledger_writer(ledger)
        client.replace_mirror(ledger, lost, second, is_lost=True)
        with client.open_ledger_writer(ledger) as writer:
            assert writer.add(b"next") == 100
    assert three.entries(2, ledger) == [*payloads(0, 100), b"next"]


def test_a_mirror_that_is_lost_is_replaced(three: Three) -> None:
    """With both quorums 2 nothing is acknowledged without it, until another archive has all."""
    first, second = three.mirrors
    with three.client(timeout_s=30.0) as client:
        writer = client.create_ledger("PD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[first])
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 100))
        three.kill(1)
        client.replace_mirror(ledger, first, second, is_lost=True)
        assert writer.add(b"next") == 100
        writer.close()
        assert client.ledger_info(ledger).mirrors == (second,)
    assert three.entries(2, ledger) == [*payloads(0, 100), b"next"]
    await_true(lambda: three.info(2, ledger).is_closed)


def test_a_volatile_ledger_is_not_striped(shared: Three) -> None:
    """More archives than the write quorum are refused for it."""
    with shared.client() as client, pytest.raises(ArchiveError, match="cannot be striped"):
        client.create_ledger("VD_JOURNAL", write_quorum=2, mirrors=shared.mirrors)


@pytest.mark.crash
@pytest.mark.parametrize("kind", TYPES)
def test_a_leader_that_lost_unsynced_entries_and_its_mirrors_agree(three: Three, kind: str) -> None:
    """Power cut: the leader loses what was not confirmed, and has it again from its mirrors.

    A second writer then continues after it.
    """
    with three.client() as client:
        writer = three.create(client, kind)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 50))
        assert writer.sync() == 49
        confirmed = client.ledger_info(ledger).confirmed_position
        writer.add_many([b"carries 49"])
        if kind == "VD_JOURNAL":
            writer.add_many([b"lost"] * 20)
            await_true(lambda: len(three.entries(2, ledger)) == 71)
        three.kill(0)
    kept = 51
    if kind == "VD_JOURNAL":
        kept = 71
        cut(three.archives[0].archive_dir, 0, confirmed)
    three.restart(0)
    with three.client() as client:
        reader = client.open_ledger_read_only(ledger)
        assert [entry.payload for entry in reader.read()][:50] == payloads(0, 50)
        with client.open_ledger_writer(ledger) as writer:
            assert writer.add_many([b"other"] * 30)[-1] == kept + 29
        assert client.ledger_info(ledger).last_add_confirmed == kept + 29
    expected = payloads(0, 50) + [b"carries 49"] + [b"lost"] * (kept - 51) + [b"other"] * 30
    three.await_equal(ledger, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_a_mirror_can_be_opened_when_the_leader_is_gone(three: Three, kind: str) -> None:
    """The operator decides so; what was confirmed is in an ack quorum, here in all archives."""
    with three.client() as client:
        writer = three.create(client, kind, ack_quorum=3)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 50))
        assert writer.sync() == 49
        three.kill(0)
    with three.client(1, timeout_s=30.0) as client:
        found = [entry.payload for entry in client.open_ledger(ledger).read()]
        assert found == payloads(0, 50)
        assert client.ledger_info(ledger).is_closed


@pytest.mark.crash
@pytest.mark.parametrize("kind", TYPES)
def test_a_power_cut_of_all_archives_loses_nothing_confirmed(three: Three, kind: str) -> None:
    """Each loses what it had not on storage; recovery finds all up to the last confirmed one."""
    with three.client() as client:
        writer = three.create(client, kind)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 100))
        told = writer.sync()
        writer.add_async(*payloads(100, 130))
        told = max(told, client.ledger_info(ledger).last_add_confirmed or -1)
        positions = [three.info(index, ledger).confirmed_position for index in range(3)]
        for index in range(3):
            three.kill(index)
    for archive, position in zip(three.archives, positions, strict=True):
        cut(archive.archive_dir, 0, position)
    for index in range(3):
        three.restart(index)
    with three.client(timeout_s=30.0) as client:
        reader = client.open_ledger(ledger)
        found = [entry.payload for entry in reader.read()]
        assert told >= 99
        assert len(found) > told
        assert found == payloads(0, len(found))
    three.await_equal(ledger, found)
