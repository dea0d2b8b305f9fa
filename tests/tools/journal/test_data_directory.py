"""`aerotape journal` with the data directory of a broker: the journals of its partitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.daemon.command_line import aerotape
from support.journals import raft_bytes as built

NUMBERS = (1, 2, 10)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three partitions, whose records are all flushed."""
    for number in NUMBERS:
        folder = partition(tmp_path, number)
        folder.mkdir(parents=True)
        for path in built.write_journal(folder, (3, 4, 2)):
            path.rename(folder / path.name.replace(built.NAME, name(number)))
        (folder / f"{name(number)}.meta").write_bytes(built.meta(9))
    return tmp_path


def partition(data: Path, number: int) -> Path:
    return data / "raft-partition" / "partitions" / str(number)


def name(number: int) -> str:
    return f"raft-partition-partition-{number}"


def test_list_the_records_of_each_partition(data: Path) -> None:
    """In the order of the partitions; or those of the one that is named."""
    out = aerotape("journal", "list", data, "--json").out
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["journal"], row["index"]) for row in rows] == [
        (name(number), index) for number in NUMBERS for index in range(1, 10)
    ]
    text = aerotape("journal", "list", data, "--from-index", 9).out.splitlines()
    assert text[0] == f"{partition(data, 1)}:" and len(text) == 9
    out = aerotape("journal", "list", data, "--name", name(2), "--json").out
    assert {json.loads(line)["journal"] for line in out.splitlines()} == {name(2)}


def test_verify_each_partition(data: Path) -> None:
    """The exit code is that of the worst; the others are checked too."""
    done = aerotape("journal", "verify", data)
    assert done.err == "".join(
        f"{name(number)}: 9 records in 3 segments, no damage\n" for number in NUMBERS
    )
    (partition(data, 2) / f"{name(2)}-3.log").unlink()
    done = aerotape("journal", "verify", data, "--json", expect=3)
    (finding,) = (json.loads(line) for line in done.out.splitlines())
    assert (finding["segment"], finding["index"]) == (f"{name(2)}-2.log", 8)
    assert finding["problem"] == "MissingRecords"
    assert f"{name(2)}: 7 records in 2 segments, findings: 1" in done.err
    assert f"{name(10)}: 9 records in 3 segments, no damage" in done.err
    for path in partition(data, 1).glob("*.log"):
        path.unlink()
    done = aerotape("journal", "verify", data, expect=3)
    assert f"{partition(data, 1)} holds no journal" in done.err
    assert f"{name(10)}: 9 records" in done.err
    for path in partition(data, 2).glob("*.log"):
        path.unlink()
    assert "holds no journal" in aerotape("journal", "verify", data, expect=1).err


def test_one_partition_is_shown_and_imported(data: Path, tmp_path: Path) -> None:
    """Of several, one must be named."""
    for command in (("show", data, 9), ("import", data, "--to", tmp_path / "archive")):
        error = aerotape("journal", *command, expect=2).err
        assert f"{data} has the partitions 1, 2, 10: give the directory of one" in error
        assert str(partition(data, 1)) in error
        done = aerotape("journal", *command, "--name", name(10), "--json")
        assert done.json.get("journal", name(10)) == name(10)
    assert not (tmp_path / "archive" / "1-0.rec").exists()


def test_a_name_that_no_partition_has(data: Path) -> None:
    """It is an error of all commands."""
    for command in (("list", data), ("verify", data), ("show", data, 1), ("import", data)):
        error = aerotape("journal", *command, "--name", "other", expect=1).err
        assert error.count("\n") == 1 and "no partition in" in error and "other" in error
