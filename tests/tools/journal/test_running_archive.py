"""`aerotape journal` and `replay --from-index` with a running archive, the Java one or ours."""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine
from support.daemon.recording import recorded, wait_until
from support.journals.raft_bytes import application
from support.journals.raft_recording import records
from support.journals.written_journal import files, write_journal

import aerotape
from aerotape.codecs.raft.record import decode_partially, encode_record
from aerotape.codecs.raft_journal.directory import RaftJournal

NAME = "raft-partition-partition-1"
_stream_ids = count(7001)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of more than ten terms of 64 KiB."""
    directory = tmp_path_factory.mktemp("source") / "journal"
    write_journal(directory, "8.3", records(1200, first_index=50), first_index=50, unused=1)
    return directory


@pytest.fixture
def imported(cli: CommandLine, journal: Path) -> dict[str, Any]:
    """The result of its import."""
    options = ("--stream-id", next(_stream_ids), "--term-length", "64k")
    row: dict[str, Any] = cli.json("journal", "import", journal, *options)
    return row


def printed(cli: CommandLine, recording_id: int, *options: object) -> list[tuple[int, int]]:
    """Index and asqn of the records that `replay` prints."""
    lines = cli.run("replay", recording_id, *options, "--print", "--json").stdout.splitlines()
    found = [decode_partially(bytes.fromhex(json.loads(line)["payload"])) for line in lines]
    return [(each.index, each.asqn) for each in found if each is not None]


def test_an_export_restores_what_was_imported(
    cli: CommandLine,
    client: aerotape.ArchiveClient,
    journal: Path,
    imported: dict[str, Any],
    tmp_path: Path,
) -> None:
    """The recording is complete and stopped; its export has the same files."""
    assert (imported["records"], imported["first_index"], imported["last_index"]) == (
        1200,
        50,
        1249,
    )
    found = client.list_recording(imported["recording_id"])
    assert found is not None
    assert found.stop_position == imported["stop_position"] > 10 * 65_536
    assert f"alias={NAME}|" in f"{found.original_channel}|"
    out = tmp_path / "out"
    row = cli.json("journal", "export", imported["recording_id"], out)
    assert row == {
        "recording_id": imported["recording_id"],
        "directory": str(out),
        "records": 1200,
        "damage": None,
    }
    assert files(out) == files(journal)


def test_replay_begins_at_a_record(
    cli: CommandLine, journal: Path, imported: dict[str, Any]
) -> None:
    """By index or asqn, found over the protocol or with the archive's directory."""
    recording_id = imported["recording_id"]
    every = [(each.index, each.asqn) for each in RaftJournal.open(journal).records()]
    rng = random.Random(1)
    for where in ((), ("--archive-dir", cli.archive.archive_dir)):
        for index in (50, rng.randint(51, 1248), 1249)[len(where) :]:
            found = printed(cli, recording_id, "--from-index", index, *where)
            assert found == [each for each in every if each[0] >= index]
        for asqn in (0, rng.randint(100, 2000), 1 << 40)[len(where) :]:
            begin = max((n for n, (_, own) in enumerate(every) if -1 < own <= asqn), default=0)
            assert printed(cli, recording_id, "--from-asqn", asqn, *where) == every[begin:]
        problem = cli.error("replay", recording_id, "--from-index", 1250, *where)
        assert f"recording {recording_id} has no record with index 1250 or higher" in problem


def test_other_recordings_are_refused(
    cli: CommandLine, client: aerotape.ArchiveClient, journal: Path, tmp_path: Path
) -> None:
    """They can be neither searched nor exported."""
    made = recorded(client, 3)
    assert "is not a record of a raft journal" in cli.error(
        "replay", made.recording_id, "--from-index", 1
    )
    out = tmp_path / "out"
    assert "position 0: " in cli.error("journal", "export", made.recording_id, out)
    assert not out.exists()
    assert "unknown recording id: 9999" in cli.error("journal", "export", 9999, out)
    assert "not allowed with" in cli.error(
        "replay", made.recording_id, "--from-index", 1, "--position", 0, code=2
    )


def test_a_record_that_is_too_long_leaves_no_recording(
    cli: CommandLine, client: aerotape.ArchiveClient, tmp_path: Path
) -> None:
    """The recording is purged, because it is not complete."""
    directory, stream_id = tmp_path / "journal", next(_stream_ids)
    (index, asqn, record), *_ = (each for each in records(9) if each[1] >= 0)
    long = encode_record(index + 1, asqn + 9, application(asqn + 9, asqn + 9, bytes(9000)))
    write_journal(
        directory, found=[(index, asqn, record), (index + 1, asqn + 9, long)], first_index=index
    )
    problem = cli.error(
        "journal", "import", directory, "--stream-id", stream_id, "--term-length", "64k", code=2
    )
    assert "bytes is too long for the stream: the longest has 8192" in problem
    assert list(client.list_recordings_for_uri("", stream_id)) == []


@pytest.mark.crash
def test_a_killed_import_leaves_a_recording_that_says_so(
    cli: CommandLine, client: aerotape.ArchiveClient, tmp_path: Path
) -> None:
    """Its alias ends in ``-incomplete``."""
    directory, stream_id = tmp_path / "journal", next(_stream_ids)
    write_journal(directory, found=records(15_000))
    process = cli.start("journal", "import", directory, "--stream-id", stream_id)

    def found() -> list[Any]:
        return list(client.list_recordings_for_uri("", stream_id))

    wait_until(lambda: bool(found()), "the recording's start")
    process.kill()
    process.communicate()
    [recording] = found()
    assert f"alias={NAME}-incomplete" in recording.original_channel
