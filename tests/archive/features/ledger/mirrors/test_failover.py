"""The leader of a ledger is lost: another archive recovers or continues it, and it returns."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.daemon.mirrored import Three, payloads, running

import aerotape
from aerotape import driver_tasks
from aerotape.client.ledger import writing
from aerotape.errors import ArchiveError, LedgerClosedError, LedgerError, LedgerInUseError

TYPES = ("PD_JOURNAL", "VD_JOURNAL")
pytestmark = pytest.mark.crash


@pytest.fixture
def three() -> Iterator[Three]:
    with running() as three:
        yield three


def recover(three: Three, index: int, ledger: aerotape.QualifiedId) -> list[bytes]:
    """Recover a ledger in an archive, and read it there."""
    with three.client(index, timeout_s=30.0) as client:
        return [entry.payload for entry in client.open_ledger(ledger).read()]


def kill_leader(
    three: Three, sent: list[bytes], behind: int, killed: tuple[int, ...] = (0,)
) -> aerotape.QualifiedId:
    """Add entries to a new ledger, and kill its leader while a mirror has only some of them.

    Args:
        sent: what is added and acknowledged.
        behind: the number of entries that archive 1 has.
        killed: the archives that are killed; 0 is the leader.
    """
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL")
        ledger = writer.qualified_id
        writer.add_many(sent[:behind])
        # With a quorum of two, the third may not know the ledger yet.
        await_true(lambda: three.entries(1, ledger) == sent[:behind])
        with three.stopped(1):
            assert writer.add_many(sent[behind:])[-1] == len(sent) - 1
            for index in killed:
                three.kill(index)
    return ledger


def test_a_mirror_that_is_behind_recovers_all_that_was_acknowledged(three: Three) -> None:
    """It has them from the other mirror; the old leader adopts the end when it returns."""
    sent = payloads(0, 3_000)
    ledger = kill_leader(three, sent, behind=34)
    assert recover(three, 1, ledger) == sent
    three.restart(0)
    assert recover(three, 0, ledger) == sent
    assert three.info(0, ledger).last_add_confirmed == 2_999


def test_too_few_members_change_nothing(three: Three) -> None:
    """The error names those that do not respond; once one of them does, all is recovered."""
    sent = payloads(0, 100)
    ledger = kill_leader(three, sent, behind=10, killed=(0, 2))
    before = three.info(1, ledger)
    with three.client(1, timeout_s=30.0) as client, pytest.raises(LedgerError) as refused:
        client.open_ledger(ledger)
    for index in (0, 2):
        assert f"mirror {three.archives[index].control_channel} of ledger" in str(refused.value)
    assert three.info(1, ledger) == before
    three.restart(2)
    assert recover(three, 1, ledger) == sent
    assert three.info(2, ledger).is_closed


def test_a_lost_leader_of_two_archives(three: Three) -> None:
    """With both quorums 2 the mirror has all; the leader closes at the same end later.

    The leader reaches the mirror by another name than that has for itself.
    """
    sent = payloads(0, 100)
    mirror = three.mirrors[0].replace("localhost", "127.0.0.1")
    with three.client() as client:
        writer = client.create_ledger("PD_JOURNAL", write_quorum=2, ack_quorum=2, mirrors=[mirror])
        ledger = writer.qualified_id
        writer.add_many(sent)
        three.kill(0)
    assert recover(three, 1, ledger) == sent
    three.restart(0)
    await_true(lambda: three.info(0, ledger).is_closed)
    assert recover(three, 0, ledger) == sent


@pytest.mark.parametrize("kind", TYPES)
def test_a_ledger_that_is_closed_while_a_writer_is_opened(
    three: Three, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is refused, also if another client closes it after the first of its requests."""
    with three.client() as client, three.client() as other:
        writer = three.create(client, kind, ack_quorum=1, mirrors=1)
        ledger = writer.qualified_id
        writer.add(b"entry")
        writer.detach()
        publish = driver_tasks.add_publication

        def close_first(*arguments: Any) -> Any:
            assert other.open_ledger(ledger).last_add_confirmed == 0
            return publish(*arguments)

        monkeypatch.setattr(writing, "add_publication", close_first)
        with pytest.raises(LedgerClosedError):
            client.open_ledger_writer(ledger)
        assert client.open_ledger(ledger).last_add_confirmed == 0


@pytest.mark.parametrize("kind", TYPES)
def test_a_leader_without_its_mirror_closes(three: Three, kind: str) -> None:
    """With both quorums 2 it closes alone, also under a writer; the mirror does when it returns."""
    with three.client(timeout_s=30.0) as client:
        writer = three.create(client, kind, ack_quorum=2, mirrors=1)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 20))
        three.kill(1)
        await_true(lambda: not client.ledger_info(ledger).members[0].is_connected)
        assert [each.payload for each in client.open_ledger(ledger).read()] == payloads(0, 20)
        with pytest.raises(LedgerError):
            writer.add(b"closed")
        three.restart(1)
        await_true(lambda: three.info(1, ledger).is_closed)


@pytest.mark.parametrize("kind", TYPES)
def test_a_mirror_that_is_away_while_others_are_at_the_end(three: Three, kind: str) -> None:
    """The others close the ledger; the one that was away closes it when it returns."""
    with three.client(timeout_s=30.0) as client:
        writer = three.create(client, kind)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 20))
        await_true(lambda: three.entries(2, ledger) == payloads(0, 20))
        with three.stopped(1):
            writer.detach()
            await_true(lambda: not three.info(2, ledger).has_writer)
            assert client.open_ledger(ledger).last_add_confirmed == 19
            await_true(lambda: three.info(2, ledger).is_closed)
        await_true(lambda: three.info(1, ledger).is_closed)
    assert three.entries(1, ledger) == payloads(0, 20)


@pytest.mark.parametrize("kind", TYPES)
def test_another_archive_continues(three: Three, kind: str) -> None:
    """The writer of the first leader is fenced; both leaders' entries are in all archives."""
    with three.client() as client, three.client(1, timeout_s=30.0) as other:
        writer = three.create(client, kind)
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 50))
        await_true(lambda: three.entries(1, ledger) == payloads(0, 50))
        with pytest.raises(LedgerInUseError):
            client.open_ledger_writer(ledger)
        with pytest.raises(LedgerInUseError, match="a writer in another archive"):
            other.open_ledger_writer(ledger)
        assert writer.add(b"not fenced") == 50
        second = other.open_ledger_writer(ledger, take_over=True)
        with pytest.raises(LedgerClosedError):
            for _ in range(1_000):
                writer.add(b"fenced")
        begin = second.last_add_pushed + 1
        assert begin >= 51
        assert second.add_many(payloads(50, 100)) == range(begin, begin + 50)
        second.close()
    sent = [*payloads(0, 50), b"not fenced"] + [b"fenced"] * (begin - 51) + payloads(50, 100)
    three.await_equal(ledger, sent)
    for index in range(3):
        assert recover(three, index, ledger) == sent


def test_two_recoveries_at_the_same_time_agree(three: Three) -> None:
    """One may have to be repeated, but both find the same entries."""
    with three.client() as client:
        writer = three.create(client, "PD_JOURNAL")
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 200))
        writer.add_async(*payloads(200, 400))
        three.kill(0)
    found: dict[int, list[bytes]] = {}

    def run(index: int) -> None:
        for _ in range(5):
            try:
                found[index] = recover(three, index, ledger)
                return
            except ArchiveError:
                continue

    threads = [threading.Thread(target=run, args=(index,)) for index in (1, 2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found[1]) >= 200
    assert found[1] == found[2] == payloads(0, len(found[1]))


def test_a_directory_that_was_put_back_does_not_count(three: Three, tmp_path: Path) -> None:
    """The leader and one mirror have lost entries: with that mirror alone nothing is recovered."""
    backup = tmp_path / "backup"
    with three.client() as client, three.create(client, "PD_JOURNAL") as writer:
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 20))
        writer.detach()
    three.archives[2].stop()
    shutil.copytree(three.archives[2].archive_dir, backup)
    three.archives[2] = three.start(2)
    sent = payloads(0, 120)
    with three.client() as client:
        writer = client.open_ledger_writer(ledger)
        with three.stopped(1):
            writer.add_many(sent[20:])
            three.kill(0)
    three.archives[2].stop()
    shutil.rmtree(three.archives[2].archive_dir)
    shutil.copytree(backup, three.archives[2].archive_dir)
    three.archives[2] = three.start(2, {"aerotape.ledgers.restored": "true"})
    with (
        three.client(1, timeout_s=30.0) as client,
        pytest.raises(LedgerError, match="1 of its 3 archives respond that have lost nothing"),
    ):
        client.open_ledger(ledger)
    three.restart(0)
    assert recover(three, 1, ledger) == sent
    await_true(lambda: three.entries(2, ledger) == sent)


def test_a_writer_that_is_taken_over(three: Three) -> None:
    """Its further adds raise LedgerClosedError, and the other writer continues at once."""
    with three.client() as client, three.client() as other:
        writer = three.create(client, "PD_JOURNAL")
        ledger = writer.qualified_id
        writer.add_many(payloads(0, 10))
        second = other.open_ledger_writer(ledger, take_over=True)
        assert second.add(b"next") == 10
        with pytest.raises(LedgerClosedError):
            writer.add(b"fenced")
        second.close()
    three.await_equal(ledger, [*payloads(0, 10), b"next"])


def test_an_empty_directory_does_not_count(three: Three) -> None:
    """A mirror without its volume is not a vote for an older log: that of the leader is awaited."""
    sent = payloads(0, 200)
    ledger = kill_leader(three, sent, behind=20)
    three.archives[2].stop()
    shutil.rmtree(three.archives[2].archive_dir)
    three.archives[2] = three.start(2)
    with (
        three.client(1, timeout_s=30.0) as client,
        pytest.raises(LedgerError, match="1 of its 3 archives respond that have lost nothing"),
    ):
        client.open_ledger(ledger)
    three.restart(0)
    assert recover(three, 1, ledger) == sent
    await_true(lambda: three.entries(2, ledger) == sent)
