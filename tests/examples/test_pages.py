"""The Python examples of pages that need an archive or its directory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders import scoped_store
from support.daemon.archives import ServedArchive, serve
from support.daemon.authenticator import Actions, Guard
from support.journals.raft_bytes import application
from support.journals.raft_recording import record_into, records
from support.journals.written_journal import write_journal
from support.page_examples import examples, run
from support.processes import FAST_ARCHIVE, FAST_DRIVER

import aerotape
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.codecs.raft.record import encode_record
from aerotape.codecs.raft_journal.directory import RaftJournal

MESSAGES = [b"first", b"second", b"third"]


@pytest.fixture(scope="module")
def served() -> Iterator[ServedArchive]:
    """An archive with the recordings 0 to 3."""
    with serve("aerotape") as started:
        with started.connect() as client, aerotape.Aeron(started.aeron_dir) as aeron:
            for stream_id in (1001, 1002, 1003, 1004):
                client.start_recording("aeron:ipc", stream_id)
                publication = aeron.add_publication("aeron:ipc", stream_id)
                for message in MESSAGES:
                    publication.send(message)
                publication.close()
                client.await_signal(aerotape.RecordingSignal.STOP)
                client.stop_recording("aeron:ipc", stream_id)
        yield started


def test_client(served: ServedArchive, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocking one waits for a publication and replays what is there; asyncio does the same."""
    given = {"directory": served.aeron_dir, "channel": served.control_channel}
    blocking, asynchronous = examples("client.md")
    with (
        aerotape.Aeron(served.aeron_dir) as aeron,
        contextlib.closing(aeron.add_publication("aeron:ipc", 1001)),
    ):
        started = run(blocking, **given)["started"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{started.recording_id} 0"
    assert f"recording_id={started.recording_id}," in "".join(printed)
    ends = run(asynchronous, **given)["ends"]
    assert ends == [192, 192, 192]
    assert [f"b'{each.decode()}'" for each in MESSAGES] == [
        line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()[-3:]
    ]


def test_ledgers(
    served: ServedArchive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = served.connect()
    monkeypatch.setattr(aerotape, "connect", lambda: client)
    (example,) = examples("ledgers.md")
    run(example)
    assert capsys.readouterr().out.splitlines() == [
        "0 b'first'",
        "1 b'second'",
        "2 b'third'",
        "3 b'fourth'",
    ]


def test_statistics(
    served: ServedArchive,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By position, over time, and as pictures."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    (tmp_path / "recordings").symlink_to(served.archive_dir)
    monkeypatch.chdir(tmp_path)
    by_position, over_time, pictures = examples("statistics.md")
    stats = run(by_position)["stats"]
    assert stats.messages == len(MESSAGES)
    assert len(capsys.readouterr().out.splitlines()) == len(stats.bins)
    recording = aerotape.open_directory("recordings").recording(3)
    assert run(over_time, recording=recording)["stats"].messages == len(MESSAGES)
    _, ax = __import__("matplotlib.pyplot").pyplot.subplots()
    run(pictures, recording=recording, ax=ax)
    assert Path("day.png").stat().st_size > 1_000


def test_raft_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a recording, and from the journal's own directory; the Spark one is in `tests/spark`."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("recordings").mkdir()
    record_into(Path("recordings"), records(300, first_index=119_900))
    of_recording, _, of_directory = examples("raft-journal.md")
    shown = run(of_recording)
    assert shown["table"].num_rows > 0
    last = list(shown["recording"].messages())[-1]
    assert shown["message"].position == last.position
    without_data = (
        (index, index, encode_record(index, index, application(index, index, b"", 1, 1)))
        for index in range(119_900, 120_100)
    )
    write_journal(Path("partitions/1"), "8.2", without_data, first_index=119_900)
    variables = run(of_directory)
    copied = [each.record for each in RaftJournal.open("copy").records()]
    assert copied == [each.record for each in variables["journal"].records()]
    assert len(copied) == 200


def test_scopes(served: ServedArchive, tmp_path: Path) -> None:
    """Of a store, and as a client of an archive that has it."""
    pytest.importorskip("pyarrow")
    of_store, of_client = examples("scopes.md")
    scoped_store.do_import(
        served.archive_dir, scoped_store.build(tmp_path / "imported", archive_id=7), 7
    )
    store = run(of_store.replace("/var/lib/aeron-archive", str(served.archive_dir)))["store"]
    assert 7 in store.scopes()
    with served.connect() as client:
        variables = run(
            of_client.replace("aeron:udp?endpoint=host:4000", "aeron:ipc"), client=client
        )
        assert variables["messages"] is not None
        assert 7 in client.scopes()


def test_security(aeron_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the file is let in, another is not; plug-ins decide in their stead."""
    monkeypatch.chdir(tmp_path)
    connecting, plug_ins = examples("security.md")
    put_user(Path("users"), make_user("alice", Role.ADMIN, b"right", 4096))
    connected = []

    def connect(**options: Any) -> aerotape.ArchiveClient:
        connected.append(real_connect(aeron_dir=aeron_dir, **options))
        return connected[-1]

    def launch(directory: str, **options: Any) -> aerotape.Archive:
        stack.enter_context(started := real_launch(directory, aeron_dir, **options, **others))
        return started

    others: Any = {"properties": {**FAST_ARCHIVE, **FAST_DRIVER, "aeron.archive.id": 3}}
    real_connect, real_launch = aerotape.connect, aerotape.Archive.launch
    monkeypatch.setattr(aerotape, "connect", connect)
    monkeypatch.setattr(aerotape.Archive, "launch", launch)
    with contextlib.ExitStack() as stack:
        launch("with-users", users_file="users")
        run(connecting, secret=b"right")
        with contextlib.closing(connected.pop()) as client:
            assert client.archive_id == 3
        with pytest.raises(aerotape.ArchiveError, match="authentication"):
            run(connecting, secret=b"wrong")
    with contextlib.ExitStack() as stack:
        run(plug_ins, authenticator=Guard(), rules=Actions())
        with contextlib.closing(connect(credentials=b"open:reader")) as client:
            assert list(client.list_recordings()) == []
            with pytest.raises(aerotape.errors.UnauthorisedError):
                client.start_recording("aeron:ipc", 1)
