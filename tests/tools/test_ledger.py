"""`aerotape ledger`, run as a user runs it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.builders.scoped_store import build, payloads
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.command_line import aerotape as command
from support.damage.tool_commands import Done

import aerotape
from aerotape.replay.offline.directory import open_directory

SCOPE, NUMBER = 0xF47AC10B58CC4372, 0xA5670E02B2C3D479
NAME = "f47ac10b58cc4372a5670e02b2c3d479"
UUID = "F47AC10B-58CC-4372-A567-0E02B2C3D479"


@dataclass(frozen=True)
class Ledger:
    """Runs `aerotape ledger` with the connection to an archive."""

    archive: ServedArchive

    def done(self, *args: object, code: int = 0) -> Done:
        """Run an action and check its exit code."""
        connection = (
            "--aeron-dir",
            self.archive.aeron_dir,
            "--control-channel",
            self.archive.control_channel,
        )
        return command("ledger", *args, *(connection if args else ()), expect=code)

    def text(self, *args: object) -> str:
        """Run an action and return what it printed."""
        return self.done(*args).out

    def json(self, *args: object) -> Any:
        """Run an action with --json and return what it printed."""
        return self.done(*args, "--json").json

    def lines(self, *args: object) -> list[Any]:
        """Run an action with --json and return the object of each line."""
        return [json.loads(line) for line in self.text(*args, "--json").splitlines()]

    def error(self, *args: object, code: int = 1) -> str:
        """Run an action that must fail with one line on standard error; return the line."""
        done = self.done(*args, code=code)
        assert done.out == ""
        [line] = done.err.splitlines()
        return line


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    """The command, with an archive for these tests."""
    with serve("aerotape") as served:
        yield Ledger(served)


def test_the_life_of_a_ledger(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create, add, sync, read, list, status, open and delete; JSON has ids as texts."""
    both = {"scope_id": str(SCOPE), "ledger_id": str(NUMBER), "qualified_name": NAME}
    ids = ("--ledger-scope-id", SCOPE, "--ledger-id", hex(NUMBER))
    created = ledger.json("create", "--type", "VD_JOURNAL", *ids)
    assert both.items() <= created.items()
    assert (created["type"], created["state"], created["recording_id"]) == (
        "VD_JOURNAL",
        "OPEN",
        -1,
    )
    added = ledger.json("add", "one", "two", "--ledger-qualified-name", UUID)
    assert both.items() <= added.items()
    assert (added["entries_added"], added["last_entry_id"]) == (2, 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"three\nfour")))
    more = ledger.json("add", *ids)
    assert (more["entries_added"], more["last_entry_id"]) == (2, 3)
    # A name and numbers that agree name one ledger.
    synced = ledger.json("sync", *ids, "--ledger-qualified-name", NAME)
    assert synced == {**both, "last_add_confirmed": 3}
    rows = ledger.lines("read", *ids)
    assert [bytes.fromhex(row["payload"]) for row in rows] == [b"one", b"two", b"three", b"four"]
    assert [row["entry_id"] for row in rows] == [0, 1, 2, 3]
    assert all(both.items() <= row.items() for row in rows)
    assert ledger.text("read", *ids, "--first", 1, "--last", 2) == "1 two\n2 three\n"
    listed = ledger.lines("list", "--ledger-scope-id", SCOPE)
    assert [row["qualified_name"] for row in listed] == [NAME]
    table = ledger.text("list", "--ledger-scope-id", SCOPE)
    assert all(text in table for text in (NAME, str(SCOPE), str(NUMBER), "VD_JOURNAL"))
    assert ledger.json("close", *ids)["state"] == "CLOSED"
    status = ledger.json("status", *ids)
    assert (status["state"], status["last_add_confirmed"], status["length_bytes"]) == (
        "CLOSED",
        3,
        15,
    )
    assert "is closed" in ledger.error("add", "five", *ids)
    refused = ledger.error("delete", *ids, code=2)
    assert f"delete ledger {NAME} with its recording 0: give --yes" in refused
    assert ledger.json("delete", "--yes", *ids)["deleted"] is True
    unknown = ledger.error("status", *ids)
    assert f"unknown ledger {NAME}: `aerotape ledger list --ledger-scope-id {SCOPE}`" in unknown


def test_a_ledger_is_named_by_an_argument(ledger: Ledger) -> None:
    """By its number, or by its qualified name; not by an option, too."""
    name = f"{82:032x}"
    assert ledger.json("create", 82)["qualified_name"] == name
    assert ledger.json("add", 82, "7", "8")["entries_added"] == 2
    assert ledger.json("add", name, "9")["last_entry_id"] == 2
    assert ledger.text("read", name) == "0 7\n1 8\n2 9\n"
    assert re.search(r"^created: +20\d\d-\d\d-\d\d ", ledger.text("status", 82), re.MULTILINE)
    twice = ledger.error("status", 82, "--ledger-id", 82, code=2)
    assert "LEDGER 82 and an option name a ledger: give one of them" in twice
    neither = ledger.error("status", "orders", code=2)
    assert "LEDGER 'orders' is neither a number nor a qualified name" in neither
    assert "give LEDGER" in ledger.error("status", code=2)
    # In another scope, and with the name that BookKeeper has for closing.
    ledger.json("create", 3, "--ledger-scope-id", 9)
    assert ledger.json("open", 3, "--ledger-scope-id", 9)["state"] == "CLOSED"


def test_a_generated_id(ledger: Ledger) -> None:
    """Without an id a random one is created, not in scope 0."""
    created = ledger.json("create")
    name = created["qualified_name"]
    assert aerotape.QualifiedId.parse(name).scope_id == int(created["scope_id"]) != 0
    listed = ledger.lines("list", "--all-scopes")
    assert name in [row["qualified_name"] for row in listed]
    assert ledger.lines("list", "--all-scopes", "--count", 1) == listed[:1]
    refused = ledger.error("list", "--all-scopes", "--ledger-scope-id", 1, code=2)
    assert "--all-scopes and --ledger-scope-id exclude each other" in refused
    assert ledger.lines("list", "--ledger-scope-id", 12345) == []
    added = ledger.json("add", "x", "--close", "--ledger-qualified-name", name)
    assert added["last_add_confirmed"] == 0
    assert f"{created['ledger_id']}" in ledger.text("status", "--ledger-qualified-name", name)


def test_following(ledger: Ledger) -> None:
    """Each entry is printed once it is confirmed; the command ends with the ledger."""
    named = ("--ledger-id", 81)
    with ledger.archive.connect() as client, client.create_ledger(qualified_id=81) as writer:
        writer.add(b"before")
        reading = CommandLine(ledger.archive).start("ledger", "read", "--follow", *named)
        with reading as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"0 before\n"
            writer.add(b"meanwhile")
            assert process.stdout.readline() == b"1 meanwhile\n"
            writer.close()
            assert process.stdout.read() == b""
        assert process.returncode == 0
    refused = ledger.error("read", "--follow", "--unconfirmed", *named, code=2)
    assert "--follow reads confirmed entries: leave out --unconfirmed" in refused


def test_a_ledger_without_entries(ledger: Ledger) -> None:
    """It has no recording yet; it can be read, synced, closed and deleted."""
    named = ("--ledger-id", 78)
    ledger.json("create", *named)
    assert ledger.text("read", *named) == ""
    assert ledger.json("sync", *named)["last_add_confirmed"] == -1
    closed = ledger.json("open", *named)
    assert (closed["state"], closed["recording_id"]) == ("CLOSED", -1)
    refused = ledger.error("delete", *named, code=2)
    assert f"to delete ledger {78:032x}: give --yes" in refused
    assert ledger.json("delete", "--yes", *named)["deleted"] is True


def test_mirrors(ledger: Ledger) -> None:
    """A ledger is created only if they respond; one without them has none to replace."""
    first, second = (f"aeron:udp?endpoint=localhost:{port}" for port in (1, 2))
    quorums = ("--write-quorum", 2, "--ack-quorum", 2)
    refused = ledger.error("create", "--ledger-id", 80, *quorums, "--mirror", first)
    assert f"all of its archives have to respond: mirror {first}" in refused
    assert "unknown ledger" in ledger.error("status", "--ledger-id", 80)
    ledger.json("create", "--ledger-id", 8_180)
    refused = ledger.error("replace-mirror", first, second, "--ledger-id", 8_180)
    assert f"the mirrors of ledger {8_180:032x} are none" in refused
    assert "Aeron URIs" in ledger.error("replace-mirror", "x", first, "--ledger-id", 8_180, code=2)


def test_each_action_has_scopes() -> None:
    """All but the list of scopes itself take --ledger-scope-id."""
    text = command("ledger", "--help").out
    actions = re.findall(r"^    ([a-z-]+) ", text, re.MULTILINE)
    assert {"create", "open", "add", "read", "list", "delete", "sync", "status"} < set(actions)
    for action in set(actions) - {"scopes"}:
        assert "--ledger-scope-id" in command("ledger", action, "--help").out


def test_a_damaged_entry(ledger: Ledger) -> None:
    """It ends `read` with exit code 3, after the entries that precede it."""
    named = ("--ledger-id", 79)
    ledger.json("create", *named)
    ledger.text("add", "sound", "to be damaged", "--close", *named)
    recording_id = ledger.json("status", *named)["recording_id"]
    segment = ledger.archive.archive_dir / f"{recording_id}-0.rec"
    with segment.open("r+b") as file:
        file.seek(file.read(4_096).index(b"to be"))
        file.write(b"TO BE")
    done = ledger.done("read", *named, code=3)
    assert done.out == "0 sound\n"
    [line] = done.err.splitlines()
    assert f"entry 1 of ledger {79:032x} has digest CRC32C" in line


def test_unconfirmed_entries(ledger: Ledger) -> None:
    """They are read with --unconfirmed only."""
    with ledger.archive.connect() as client, client.create_ledger("VD_JOURNAL", 77) as writer:
        writer.add(b"volatile")
        assert ledger.text("read", "--ledger-id", 77) == ""
        assert "last add confirmed is -1" in ledger.error("read", "--ledger-id", 77, "--last", 0)
        assert ledger.text("read", "--ledger-id", 77, "--unconfirmed") == "0 volatile\n"
        status = ledger.json("status", "--ledger-id", 77)
        assert (status["has_writer"], status["last_add_pushed"]) == (True, 0)
        assert "has a writer" in ledger.error("add", "x", "--ledger-id", 77)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("status",), "no ledger is named"),
        (("status", "--ledger-scope-id", 7), "--ledger-scope-id alone"),
        (("status", "--ledger-qualified-name", "abc"), "'abc' is not a qualified name"),
        (("status", "--ledger-qualified-name", NAME, "--ledger-id", 7), "different ledgers"),
        (
            ("status", "--ledger-qualified-name", NAME, "--ledger-scope-id", 7),
            "--ledger-scope-id 7",
        ),
        (("status", "--ledger-id", -1), "is not between"),
        (("status", "--ledger-id", 1 << 63), "too large for scope 0"),
        (("list", "--ledger-scope-id", 1 << 64), "is not between"),
        (("create", "--type", "other"), "PD_JOURNAL"),
        ((), "COMMAND"),
    ],
)
def test_usage_errors(ledger: Ledger, arguments: tuple[object, ...], text: str) -> None:
    """Ids that disagree, are incomplete or cannot exist are usage errors, and nothing is done."""
    assert text in ledger.error(*arguments, code=2)


def test_an_imported_recording(ledger: Ledger, tmp_path: Path) -> None:
    """It is listed between ledgers, shown and read; actions that change a ledger refuse it."""
    source = build(tmp_path / "source", archive_id=6)
    expected = payloads(open_directory(source).recording(0))
    command("ledger", "import-archive", source, "--archive-dir", ledger.archive.archive_dir)
    named = ("--ledger-scope-id", 6, "--ledger-id", 0)
    ledger.json("create", "--ledger-scope-id", 6, "--ledger-id", 1)
    scopes = {row["scope_id"]: row["is_own"] for row in ledger.lines("scopes")}
    assert scopes["6"] is False and sorted(scopes.values())[-2:] == [False, True]
    listed = ledger.lines("list", "--ledger-scope-id", 6)
    assert [(row["ledger_id"], row["type"]) for row in listed] == [
        ("0", "RECORDING"),
        ("1", "PD_JOURNAL"),
    ]
    assert ledger.lines("list", "--ledger-scope-id", 6, "--count", 1) == listed[:1]
    assert ledger.json("status", *named) == listed[0]
    rows = ledger.lines("read", *named)
    assert [bytes.fromhex(row["payload"]) for row in rows] == expected
    assert [row["entry_id"] for row in rows] == list(range(len(expected)))
    few = ledger.lines("read", *named, "--first", 2, "--last", 3)
    assert few == rows[2:4]
    for action in (("add", "x"), ("sync",), ("open",), ("delete", "--yes")):
        refused = ledger.error(*action, *named)
        assert f"{6:016x}{0:016x} is an imported recording, not a ledger" in refused
    assert "is the id of an imported recording" in ledger.error("create", *named)


def test_a_password(ledger: Ledger, tmp_path: Path) -> None:
    """It comes from a file, and is required for everything that reads or writes entries."""
    file = tmp_path / "password"
    file.write_text("secret\n")
    file.chmod(0o600)
    name = ledger.json("create", "--digest-type", "HMAC", "--password-file", file)["qualified_name"]
    named = ("--ledger-qualified-name", name)
    ledger.text("add", "x", *named, "--password-file", file)
    for action in (("add", "y"), ("read",), ("open",)):
        assert "wrong password for ledger" in ledger.error(*action, *named)
    assert ledger.text("read", *named, "--password-file", file) == "0 x\n"
