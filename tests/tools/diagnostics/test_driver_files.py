"""The commands counters and errors with both drivers, compared with Aeron's own tools."""

from __future__ import annotations

import json
import re
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.mark_files import acquire
from support.daemon.archives import EMBEDDED_DRIVER
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.control_rig import RawClient, await_true
from support.daemon.recording import wait_until
from support.jvm import java

from aerotape import _native
from aerotape.cnc import CncFile
from aerotape.errors import AeronError

LOCAL = "aeron:ipc?term-length=64k"
# A message header of SBE with the id of another schema.
FOREIGN_MESSAGE = struct.pack("<HHHH", 8, 1, 4_711, 0) + bytes(8)


def java_tool(main_class: str, aeron_dir: Path, *args: str) -> str:
    command = java.java_command(main_class, *args, properties={"aeron.dir": str(aeron_dir)})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def aeron(cli: CommandLine) -> Iterator[_native.AeronClient]:
    """A client of the archive's driver."""
    client = _native.AeronClient(str(cli.archive.aeron_dir))
    yield client
    client.close()


def test_counters_are_those_of_an_aeron_client(
    cli: CommandLine, aeron: _native.AeronClient
) -> None:
    """Ids, types, keys, labels and owners of all that a client sees, and values that do not
    change."""
    own = aeron.add_counter(1_234, b"key", "a counter of the tests")
    own.set(-5)
    before = aeron.counters().rows()
    shown = {row["counter_id"]: row for row in cli.json("counters")}
    # Counters of clients are temporary; only permanent ones are compared.
    after = {(row[0], row[4]) for row in aeron.counters().rows()}
    rows = {row[0]: row for row in before if (row[0], row[4]) in after}
    assert len(rows) > 30
    for counter_id, (_, type_id, key, label, registration_id, owner_id, ref, _) in rows.items():
        found = shown[counter_id]
        assert found["type_id"] == type_id
        assert found["label"].startswith(label)  # a heartbeat gets the name later
        assert bytes.fromhex(found["key"]).ljust(112, b"\0") == key
        assert (found["registration_id"], found["owner_id"]) == (registration_id, owner_id)
        assert found["reference_id"] == ref
    [only] = cli.json("counters", "--type", 1_234)
    assert (only["counter_id"], only["value"], only["key"]) == (own.id, -5, b"key".hex())
    own.close()
    wait_until(lambda: cli.json("counters", "--type", 1_234) == [], "the driver to free it")


@pytest.mark.jvm
def test_counters_are_those_of_aeron_stat(cli: CommandLine) -> None:
    """Every line of AeronStat has its row in the table."""
    printed = java_tool("io.aeron.samples.AeronStat", cli.archive.aeron_dir, "watch=false")
    lines = printed.splitlines()
    theirs = {}
    for line in lines:
        # The labels of heartbeats become longer when the clients have set their names.
        found = re.fullmatch(r"\s*(\d+):\s+[-\d,]+ - (?!client-heartbeat)(.*)", line)
        if found is not None:
            theirs[int(found[1])] = found[2]
    table = cli.run("counters").stdout.decode().splitlines()
    ours = {}
    for line in table[1:]:
        counter_id, _, _, label = line.split(None, 3)
        ours[int(counter_id)] = label
    assert len(theirs) > 30
    assert theirs.items() <= ours.items()


def test_archive_keys_are_explained(cli: CommandLine) -> None:
    """The archive, session and recording of a counter are in its row."""
    with cli.archive.connect() as client:
        [sessions] = cli.json("counters", "--type", 102)
        [session] = cli.json("counters", "--type", 113)
        assert sessions["archive_id"] == session["archive_id"] == client.archive_id
        assert session["control_session_id"] == client.control_session_id
        stream = client.aeron.add_publication(LOCAL, 3_001)
        client.start_recording(LOCAL, 3_001)
        await_true(lambda: len(cli.json("counters", "--type", 100)) == 1)
        [position] = cli.json("counters", "--type", 100)
        assert position["session_id"] == stream.session_id
        assert position["archive_id"] == client.archive_id
        assert client.list_recording(position["recording_id"]) is not None
        client.stop_recording(LOCAL, 3_001)


def test_watch_repeats_until_interrupted(cli: CommandLine) -> None:
    """A line of JSON at each interval; Ctrl-C ends it without a traceback."""
    arguments = ["counters", "--watch", "--interval", "0.05", "--type", "102", "--json"]
    process = cli.start(*arguments, text=True)
    assert process.stdout is not None and process.stderr is not None
    seen = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    process.wait(20)
    assert process.returncode == 130
    assert process.stderr.read() == ""
    times = [one["timestamp_ms"] for one in seen]
    assert times == sorted(set(times))
    assert all(len(one["counters"]) == 1 for one in seen)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.jvm
def test_an_error_that_repeats_is_one_error(cli: CommandLine, aeron: _native.AeronClient) -> None:
    """Counted in the file while the archive runs, for our command and for ArchiveTool."""
    raw = RawClient(aeron, LOCAL, response_stream_id=55)
    raw.connect()
    before = error_count(cli)
    for _ in range(3):
        raw.send(FOREIGN_MESSAGE)
    await_true(lambda: error_count(cli) == before + 3)
    directory = cli.archive.archive_dir
    # The Java archive in one process with its driver uses the driver's log, too.
    sources = ["archive"] if cli.archive.kind == "aerotape" else ["archive", "driver"]
    found: list[dict[str, Any]] = []

    def is_written() -> bool:
        found[:] = [row for row in cli.json("errors", directory) if "4711" in row["text"]]
        return [row["source"] for row in found] == sources

    await_true(is_written)  # the counter precedes the text in the file
    assert {row["count"] for row in found} == {3}
    assert found[0]["first_timestamp_ms"] <= found[0]["last_timestamp_ms"]
    first_line = found[0]["text"].splitlines()[0]
    printed = java.archive_tool(directory, "errors").stdout.splitlines()
    at = next(index for index, line in enumerate(printed) if first_line in line)
    assert "3 observations from" in "\n".join(printed[max(0, at - 1) : at + 1])
    text = cli.run("errors", directory).stdout.decode()
    assert "archive: 3 times, first at" in text
    assert first_line in text
    assert first_line in cli.run("tool", directory, "errors").stdout.decode()
    by_driver = cli.json("errors", "--aeron-dir", cli.archive.aeron_dir)
    assert [row["source"] for row in by_driver] == ["driver"] * len(by_driver)
    raw.close()


def error_count(cli: CommandLine) -> int:
    """The error counter of the archive, or of the driver where both are in one process."""
    counters = cli.json("counters", "--type", 101) or cli.json("counters", "--type", 0)
    [found] = [row for row in counters if row["label"].startswith(("Archive Errors", "Errors"))]
    return int(found["value"])


@pytest.mark.jvm
def test_the_drivers_errors_are_those_of_error_stat(tmp_path: Path, aeron_dir: Path) -> None:
    """The C driver's log while it runs; after its end, a warning."""
    driver = _native.MediaDriver.launch(
        {
            "aeron.dir": str(aeron_dir),
            **EMBEDDED_DRIVER,
            "aeron.dir.delete.on.shutdown": "true",
        }
    )
    client = _native.AeronClient(str(aeron_dir))
    shown = aerotape("errors", "--aeron-dir", aeron_dir)
    assert (shown.out, shown.err) == ("", "no errors\n")
    with pytest.raises(AeronError):
        client.add_publication("aeron:udp?endpoint=256.1.1.1:5", 1)
    rows = aerotape("errors", "--aeron-dir", aeron_dir, "--json").json
    assert rows
    theirs = java_tool("io.aeron.samples.ErrorStat", aeron_dir)
    assert f"{len(rows)} distinct errors observed." in theirs
    for row in rows:
        assert f"{row['count']} observations from" in theirs
        assert row["text"].splitlines()[0] in theirs
    with acquire(tmp_path, aeron_directory=str(aeron_dir)) as mark_file:
        mark_file.record_error("no paper", 5)
        mark_file.record_error("no paper", 6)
        both = aerotape("errors", tmp_path, "--json").json
        assert [row["source"] for row in both] == ["archive", *["driver"] * len(rows)]
        client.close()
        driver.close()
        shown = aerotape("errors", tmp_path)
        assert shown.out.splitlines()[0].startswith("archive: 2 times, first at 1970-01-01")
        assert shown.out.splitlines()[1:] == ["  no paper"]
        assert "errors of the media driver cannot be read: no media driver in" in shown.err
        assert (
            "no media driver"
            in aerotape("errors", tmp_path, "--aeron-dir", aeron_dir, expect=1).err
        )


def test_files_of_a_dead_driver_are_read(aeron_dir: Path) -> None:
    """Its files are shown, with a note on its state."""
    driver = _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), **EMBEDDED_DRIVER})
    file = CncFile(aeron_dir)
    assert file.is_active()
    left = file.path.read_bytes()
    driver.close()
    aeron_dir.mkdir(exist_ok=True)
    (aeron_dir / "cnc.dat").write_bytes(left)
    assert CncFile(aeron_dir).start_timestamp_ms == file.start_timestamp_ms
    patched = bytearray(left)
    heartbeat_at = 128 + int.from_bytes(left[4:8], "little") - 128
    patched[heartbeat_at : heartbeat_at + 8] = (1_000).to_bytes(8, "little")
    (aeron_dir / "cnc.dat").write_bytes(patched)
    shown = aerotape("counters", "--aeron-dir", aeron_dir, "--json")
    assert len(json.loads(shown.out)) > 30
    assert "no heartbeat of the driver" in shown.err
    # Commands that connect to an archive there wait only as long as their options say.
    [line] = aerotape("list", "--aeron-dir", aeron_dir, expect=1).err.splitlines()
    assert f"no sign of life from the media driver in {aeron_dir}; is it dead" in line
    [line] = aerotape("list", "--aeron-dir", aeron_dir, "--wait", "20ms", expect=1).err.splitlines()
    assert f"no sign of life from the media driver in {aeron_dir} (waited 0.02 s)" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes long"),
        (b"x" * 100, "100 bytes long"),
        (bytes(4_096), "version 0.0.0"),
        (struct.pack("<i", 0x010000) + bytes(4_092), "version 1.0.0"),
        (struct.pack("<iiiiii", 0x0200, -1, 1, 1, 1, 1) + bytes(4_072), "is damaged"),
    ],
)
def test_files_that_are_not_of_a_driver(tmp_path: Path, content: bytes, words: str) -> None:
    """One line that names the file and what is wrong."""
    (tmp_path / "cnc.dat").write_bytes(content)
    for command in ("counters", "errors"):
        [line] = aerotape(command, "--aeron-dir", tmp_path, expect=1).err.splitlines()
        assert words in line and str(tmp_path) in line
