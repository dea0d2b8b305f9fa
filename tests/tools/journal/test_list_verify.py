"""`aerotape journal list` and `aerotape journal verify`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.journals import raft_bytes as built
from support.journals.written_journal import files

from aerotape.tools._cli.main import main

MEMBERS = [(3, 1_700_000_000_000, b"0"), (0, 5, "é".encode())]


def run(capsys: pytest.CaptureFixture[str], *args: object, expect: int = 0) -> tuple[str, str]:
    """Run `aerotape journal`; return its standard output and standard error."""
    assert main(["journal", *map(str, args)]) == expect
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of format 8.3 in three segments with all types of entries."""
    entries = [
        (-1, built.initial(1, 2)),
        (-1, built.configuration(9, MEMBERS, MEMBERS[:1], version=2)),
        (-1, built.configuration(9, MEMBERS, version=1)),
        (1, built.application(1, 3, b"data", 1, 2)),
        (4, built.application(4, 4, b"", 1, 2)),
        (-1, b"not a raft entry"),
    ]
    records = [built.record(n, asqn, data, 2) for n, (asqn, data) in enumerate(entries, start=1)]
    for number, (begin, end) in enumerate(((0, 2), (2, 4), (4, 6)), start=1):
        built.write_segment(tmp_path, number, begin + 1, records[begin:end], size=1024)
    return tmp_path


def test_list_prints_an_object_a_line(capsys: pytest.CaptureFixture[str], journal: Path) -> None:
    """The names that programs rely on, for each type of entry."""
    out, _ = run(capsys, "list", journal, "--json")
    rows = lines(out)
    names = ["index", "asqn", "checksum", "term", "type", "lowest_asqn", "highest_asqn"]
    assert [list(row)[:9] for row in rows] == [["journal", *names, "raft_record"]] * 6
    members = [
        {"member_id": "0", "type": "ACTIVE", "updated": 1_700_000_000_000},
        {"member_id": "é", "type": "INACTIVE", "updated": 5},
    ]
    initial, joint, single, application, _, other = rows
    raft_record = built.initial(1, 2)
    record = built.record(1, -1, raft_record, 2)
    assert initial == {
        "journal": built.NAME,
        "index": 1, "asqn": -1, "checksum": built.crc32c(record[21:]), "term": 1, "type": "INITIAL",
        "lowest_asqn": None, "highest_asqn": None, "raft_record": raft_record.hex(),
    }  # fmt: skip
    assert (joint["type"], joint["timestamp"]) == ("CONFIGURATION", 9)
    assert (joint["members"], joint["old_members"]) == (members, members[:1])
    assert (single["members"], single["old_members"]) == (members, None)
    assert (application["type"], application["asqn"]) == ("APPLICATION", 1)
    assert (application["lowest_asqn"], application["highest_asqn"]) == (1, 3)
    assert "members" not in application
    assert (other["type"], other["term"]) == (None, None)
    assert other["raft_record"] == b"not a raft entry".hex()
    assert all(0 <= row["checksum"] < 1 << 32 for row in rows)


def test_list_for_people(capsys: pytest.CaptureFixture[str], journal: Path) -> None:
    """A table whose columns are of a fixed width, so that it is printed row by row."""
    out, _ = run(capsys, "list", journal)
    head, *rows = out.splitlines()
    assert head.split()[:4] == ["index", "asqn", "term", "type"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert "0 ACTIVE, é INACTIVE, before 0 ACTIVE" in rows[1]
    assert rows[3].split() == ["4", "1", "1", "APPLICATION", "1", "3", "98"]


def test_list_a_part(capsys: pytest.CaptureFixture[str], journal: Path) -> None:
    """From an index, and at most a number of records."""
    out, _ = run(capsys, "list", journal, "--json", "--from-index", 2, "--count", 3)
    assert [row["index"] for row in lines(out)] == [2, 3, 4]
    assert run(capsys, "list", journal, "--json", "--from-index", 7)[0] == ""


def test_verify_a_sound_journal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing on standard output, and exit code 0."""
    built.write_journal(tmp_path, (3, 4, 2))
    for options in ((), ("--json",)):
        out, err = run(capsys, "verify", tmp_path, *options)
        assert (out, err) == ("", f"{built.NAME}: 9 records in 3 segments, no damage\n")


def test_damage_is_listed_and_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], journal: Path
) -> None:
    """Each finding is an object with its place; list shows the records before the damage. No
    file is changed."""
    path = journal / f"{built.NAME}-2.log"
    content = bytearray(path.read_bytes())
    offset = content.index(b"data")
    content[offset] ^= 1
    path.write_bytes(content)
    before = files(journal)
    begin = offset - 94
    out, err = run(capsys, "verify", journal, "--json", expect=3)
    first, second = lines(out)
    why = first.pop("why")
    place = {"segment": path.name, "offset": begin, "index": 4, "problem": "InvalidChecksum"}
    assert first == place
    assert "checksum" in why
    assert (second["index"], second["problem"]) == (6, "InvalidEntry")
    assert "findings: 2" in err
    out, _ = run(capsys, "verify", journal, expect=3)
    assert "InvalidChecksum" in out and path.name in out
    out, err = run(capsys, "list", journal, "--json", expect=3)
    assert [row["index"] for row in lines(out)] == [1, 2, 3]
    assert "record 4: the checksum is" in err and "journal verify" in err
    assert files(journal) == before
    # A damaged descriptor, too.
    content[9] ^= 1
    path.write_bytes(content)
    out, err = run(capsys, "list", journal, "--json", expect=3)
    assert [row["index"] for row in lines(out)] == [1, 2]
    assert "segment descriptor" in err


def test_a_file_that_was_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The finding names the length and the bytes that are left."""
    (path,) = built.write_journal(tmp_path, (3,))
    path.write_bytes(path.read_bytes()[:150])
    out, _ = run(capsys, "verify", tmp_path, "--json", expect=3)
    (finding,) = lines(out)
    assert (finding["index"], finding["problem"]) == (2, "CorruptJournal")
    assert finding["why"] == (
        "the length of its data is 87, but 6 bytes are left in the segment; the rest of the "
        "segment is not checked"
    )


def test_commands_that_read_change_nothing(
    capsys: pytest.CaptureFixture[str], journal: Path
) -> None:
    """Not a byte and not a time of a file, in a directory without write access."""
    path = journal / f"{built.NAME}-3.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    for file in journal.iterdir():
        file.chmod(0o444)
    journal.chmod(0o555)
    before = state(journal)
    try:
        for options in ((), ("--json",)):
            run(capsys, "list", journal, *options, expect=3)
            run(capsys, "verify", journal, *options, expect=3)
        assert state(journal) == before
    finally:
        journal.chmod(0o755)


def state(folder: Path) -> dict[str, tuple[str, int, int]]:
    """The content and the times of the files in a folder, and the time of the folder."""
    paths = [folder, *folder.iterdir()]
    contents = [path.read_bytes() if path.is_file() else b"" for path in paths]
    return {
        path.name: (hashlib.sha256(data).hexdigest(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path, data in zip(paths, contents, strict=True)
    }


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], journal: Path) -> None:
    """No journal is a failure, several journals without a name are a usage error."""
    for command in ("list", "verify"):
        _, err = run(capsys, command, journal / "missing", expect=1)
        assert err.count("\n") == 1 and "cannot read" in err
        (journal / "empty").mkdir(exist_ok=True)
        _, err = run(capsys, command, journal / "empty", expect=1)
        assert err.count("\n") == 1 and "holds no journal" in err
        (journal / "other-1.log").write_bytes(bytes(100))
        _, err = run(capsys, command, journal, expect=2)
        assert err.count("\n") == 1 and "give the name of one" in err
        assert run(capsys, command, journal, "--name", "other", "--json")[0] == ""
