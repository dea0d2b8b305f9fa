"""`aerotape subscribe`: the messages of a live stream, and of its recording first."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.daemon import AerotapeArchive
from support.daemon.live import Live
from support.daemon.recording import new_stream_id, recorded, start_recording, stop, wait_until
from support.jvm.java import ROOT, JavaClient
from support.model.messages import message

from aerotape import ArchiveClient, Publication

IPC = "aeron:ipc"


class Subscriber:
    """A running `aerotape subscribe`."""

    def __init__(self, cli: CommandLine, channel: str, stream_id: int, *options: object) -> None:
        self.process = cli.start("subscribe", channel, stream_id, *options)
        assert self.process.stdout is not None and self.process.stderr is not None
        self.output, self.error = self.process.stdout, self.process.stderr
        self.subscribed = self.error.readline().decode()
        assert self.subscribed.startswith(f"subscribed to {channel} stream {stream_id}")

    def read(self, count: int) -> bytes:
        """Read so many bytes as they arrive."""
        data = b""
        while len(data) < count:
            more = os.read(self.output.fileno(), count - len(data))
            assert more, self.error.read().decode()
            data += more
        return data

    def lines(self, count: int) -> list[str]:
        """Read so many lines as they arrive."""
        return [self.output.readline().decode().removesuffix("\n") for _ in range(count)]

    def end(self, expect: int) -> tuple[bytes, str]:
        """Wait for the end; return the rest of both outputs."""
        out, error = self.process.communicate(timeout=30)
        assert self.process.returncode == expect, error.decode()
        assert b"Traceback" not in error
        return out, error.decode()


@contextmanager
def subscribing(
    cli: CommandLine, channel: str, stream_id: int, *options: object
) -> Iterator[Subscriber]:
    """Run `aerotape subscribe` until the end of the block at the latest."""
    subscriber = Subscriber(cli, channel, stream_id, *options)
    try:
        yield subscriber
    finally:
        subscriber.process.kill()
        subscriber.process.communicate()


@contextmanager
def publishing(client: ArchiveClient, stream_id: int) -> Iterator[Publication]:
    """Publish on a stream."""
    with client.aeron.add_publication(IPC, stream_id) as publication:
        yield publication


def test_messages_are_printed_as_they_arrive(cli: CommandLine, client: ArchiveClient) -> None:
    """A line each, what is not printable escaped, until Ctrl-C."""
    stream_id = new_stream_id()
    with subscribing(cli, IPC, stream_id) as it, publishing(client, stream_id) as publication:
        for payload, line in (
            (b"first", "first"),
            (b"\x1b[2J\n\xff", r"\x1b[2J\n\xff"),
            (b"", ""),
            ("é\u202e".encode(), r"é\u202e"),
            (b"x" * 5000, "x" * 5000),
        ):
            publication.send(payload)
            assert it.lines(1) == [line]
        it.process.send_signal(signal.SIGINT)
        assert it.end(130) == (b"", "")


def test_sigterm_ends_it(cli: CommandLine) -> None:
    """As Ctrl-C does, while there is no publisher."""
    with subscribing(cli, IPC, new_stream_id()) as it:
        it.process.send_signal(signal.SIGTERM)
        assert it.end(143) == (b"", "")


def test_rows(cli: CommandLine, client: ArchiveClient) -> None:
    """With --json a row has the header, and when the message was received."""
    stream_id = new_stream_id()
    options = ["--json", "--count", 2]
    with subscribing(cli, IPC, stream_id, *options) as it:
        began_ms = time.time_ns() // 1_000_000
        with publishing(client, stream_id) as publication:
            publication.send(b"\x1b", reserved_value=-7)
            publication.send(b"{}")
            session_id, term_id = publication.session_id, publication.initial_term_id
            out, _ = it.end(0)
        ended_ms = time.time_ns() // 1_000_000
    first, second = map(json.loads, out.splitlines())
    assert began_ms <= first.pop("received_timestamp_ms") <= ended_ms
    assert first == {
        "position": 0,
        "end_position": 64,
        "session_id": session_id,
        "stream_id": stream_id,
        "term_id": term_id,
        "term_offset": 0,
        "flags": 0xC0,
        "reserved_value": -7,
        "length": 1,
        "payload": "1b",
    }
    assert (second["position"], second["payload"]) == (64, b"{}".hex())


def test_other_formats(cli: CommandLine, client: ArchiveClient) -> None:
    """Bytes are written as they are received, with their lengths, or decoded by a schema."""
    market = ROOT / "examples" / "market.xml"
    trade = struct.pack("<4Hq8scdI", 29, 1, 7, 0, -5, b"A", b"S", 0.5, 7)
    stream_id = new_stream_id()
    with (
        subscribing(cli, IPC, stream_id, "--format", "length") as length,
        subscribing(cli, IPC, stream_id, "--format", "raw") as raw,
        subscribing(cli, IPC, stream_id, "--schema", market, "--count", 1) as schema,
        publishing(client, stream_id) as publication,
    ):
        for payload in (b"\x1b\n", b"", b"not of the schema", trade):
            publication.send(payload)
            assert length.read(4 + len(payload)) == struct.pack("<I", len(payload)) + payload
            assert raw.read(len(payload)) == payload
        out, _ = schema.end(3)  # the payload that is not of the schema does not count
    assert json.loads(out)["Trade"] == {
        "time_ns": -5,
        "symbol": "A",
        "side": "SELL",
        "price": 0.5,
        "quantity": 7,
    }


def test_count_and_time(cli: CommandLine, client: ArchiveClient) -> None:
    """--count ends it, with the messages after it not printed; so does --time."""
    stream_id = new_stream_id()
    with (
        subscribing(cli, IPC, stream_id, "--count", 3) as counted,
        subscribing(cli, IPC, stream_id, "--time", "1500ms") as timed,
        subscribing(cli, IPC, stream_id, "--time", "1500ms", "--count", 9) as both,
        publishing(client, stream_id) as publication,
    ):
        for number in range(5):
            publication.send(b"%d" % number)
        assert counted.end(0) == (b"0\n1\n2\n", "")
        assert timed.end(0) == (b"0\n1\n2\n3\n4\n", "")
        out, error = both.end(1)
    assert out == b"0\n1\n2\n3\n4\n"
    assert f"5 of 9 messages on {IPC} stream {stream_id} within 1.5 s" in error


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_closed_pipe_ends_it(cli: CommandLine, client: ArchiveClient, is_quiet: bool) -> None:
    """Also if no message is received afterwards."""
    stream_id = new_stream_id()
    with subscribing(cli, IPC, stream_id) as it, publishing(client, stream_id) as publication:
        publication.send(b"first")
        assert it.lines(1) == ["first"]
        it.output.close()
        if not is_quiet:
            publication.send(b"second")
        assert it.process.wait(20) == 141
        assert it.error.read() == b""


def test_no_driver(tmp_path: Path) -> None:
    """It is reported at once, from -D too, on one line."""
    for options in (["--aeron-dir", tmp_path], [f"-Daeron.dir={tmp_path}"]):
        started = time.monotonic()
        done = aerotape("subscribe", IPC, 1, *options, expect=1)
        assert str(tmp_path) in done.err and done.err.count("\n") == 1
        assert time.monotonic() - started < 5


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--from-start"]])
def test_the_end_of_the_driver_ends_it(tmp_path: Path, options: list[str]) -> None:
    """When Aeron's client notices it, with one line."""
    aeron_dir, archive_dir = tmp_path / "aeron", tmp_path / "archive"
    with AerotapeArchive(archive_dir, aeron_dir) as archive:
        served = ServedArchive("aerotape", aeron_dir, archive_dir, archive.control_channel)
        with served.connect() as client:
            made = recorded(client, 1)
        with subscribing(
            CommandLine(served), IPC, made.stream_id, "--format", "hex", *options
        ) as it:
            if options:
                assert it.lines(1) == [made.sent[0][0].hex()]
            archive.kill()
            out, error = it.end(1)
    assert out == b""
    assert error.splitlines()[-1].startswith("aerotape subscribe: ")


def test_recording_requires_from_start() -> None:
    """It would be ignored otherwise."""
    done = aerotape("subscribe", IPC, 1, "--recording", 3, expect=2)
    assert "--recording requires --from-start" in done.err


def test_from_the_start_of_a_recording_into_the_live_stream(
    cli: CommandLine, client: ArchiveClient
) -> None:
    """Every message once and in order, while more are sent."""
    live = Live(client, 200, channel="aeron:ipc?term-length=64k")
    made = live.made
    channel = "aeron:ipc?mtu=4k"  # parameters of publishers do not matter
    with subscribing(cli, channel, made.stream_id, "--from-start", "--json") as it:
        assert it.subscribed.endswith(f", from the start of recording {made.recording_id}\n")
        rows = 0
        with live.sending():
            while rows < 600:
                rows += check_rows(it, made.sent, rows, 50)
        check_rows(it, made.sent, rows, len(made.sent) - rows)
        made.send([b"last"])  # it is live
        check_rows(it, made.sent, len(made.sent) - 1, 1)
        it.process.send_signal(signal.SIGINT)
        assert it.end(130)[0] == b""
    stop(client, made)


def check_rows(it: Subscriber, sent: list[tuple[bytes, int, int]], first: int, count: int) -> int:
    """Read the next rows, and compare them with what was sent; return their number."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in it.lines(count)]
    assert [
        (bytes.fromhex(row["payload"]), row["end_position"], row["reserved_value"]) for row in rows
    ] == sent[first : first + count]
    return count


def test_from_the_start_of_a_stopped_recording(cli: CommandLine, client: ArchiveClient) -> None:
    """It is printed without a publisher; --recording names one of another channel."""
    first = recorded(client, 5)
    expected = b"".join(payload.hex().encode() + b"\n" for payload, _, _ in first.sent)
    options = ["--from-start", "--count", 5, "--format", "hex"]
    with subscribing(cli, IPC, first.stream_id, *options) as it:
        assert it.end(0) == (expected, "")
    other = "aeron:udp?endpoint=localhost:24331"
    error = cli.error("subscribe", other, first.stream_id, *options)
    assert f"no recording of {other} stream {first.stream_id}" in error
    options += ["--recording", first.recording_id]
    with subscribing(cli, other, first.stream_id, *options) as it:
        assert it.end(0) == (expected, "")
    error = cli.run(
        "subscribe", IPC, first.stream_id, "--from-start", "--recording", 9999, expect=1
    ).stderr.decode()
    assert "9999" in error.splitlines()[-1]


def test_the_last_of_several_recordings(cli: CommandLine, client: ArchiveClient) -> None:
    """Of the same channel and stream, unless another is named."""
    stream_id = new_stream_id()
    subscription_id = client.start_recording(IPC, stream_id)
    ids: list[int] = []

    def are_listed(count: int) -> bool:
        ids[:] = [each.recording_id for each in client.list_recordings_for_uri("", stream_id)]
        return len(ids) == count

    with client.aeron.add_exclusive_publication(IPC, stream_id) as one:
        one.send(b"one")
        wait_until(lambda: are_listed(1), "the first recording")
        with client.aeron.add_exclusive_publication(IPC, stream_id) as two:
            two.send(b"two")
            wait_until(lambda: are_listed(2), "the second recording")
            options = ["--from-start", "--count", 1]
            with subscribing(cli, IPC, stream_id, *options) as it:
                assert it.end(0)[0] == b"two\n"
                assert it.subscribed.endswith(f"recording {ids[1]}\n")
            with subscribing(cli, IPC, stream_id, *options, "--recording", ids[0]) as it:
                assert it.end(0)[0] == b"one\n"
    client.stop_recording_subscription(subscription_id)


@pytest.mark.jvm
def test_a_java_publisher(cli: CommandLine) -> None:
    """Its messages are printed, fragmented ones too."""
    stream_id = new_stream_id()
    with (
        JavaClient(cli.archive.aeron_dir) as java,
        subscribing(cli, IPC, stream_id, "--format", "hex", "--count", 10) as it,
    ):
        publication = java.add_publication(IPC, stream_id)
        java.offer(publication, seed=9, count=10, max_length=2500)
        out, _ = it.end(0)
    expected = [message(9, index, 32, 2500) for index in range(10)]
    assert [bytes.fromhex(line) for line in out.decode().splitlines()] == expected


def test_what_is_subscribed_can_be_published(cli: CommandLine, client: ArchiveClient) -> None:
    """The formats hex and length of one command are those of the other."""
    made = start_recording(client)
    made.send([b"\x1b\n\0", b"", os.urandom(5000), b"\xff"])
    wait_until(lambda: client.recording_position(made.recording_id) == made.end, "the recording")
    stop(client, made)
    for format in ("hex", "length"):
        stream_id = new_stream_id()
        with subscribing(cli, IPC, stream_id, "--count", 4, "--format", "hex") as it:
            printed = cli.run(
                "cat", cli.archive.archive_dir, made.recording_id, "--format", format
            ).stdout
            publisher = cli.start(
                "publish", IPC, stream_id, "--format", format, stdin=subprocess.PIPE
            )
            publisher.communicate(printed, timeout=60)
            assert publisher.returncode == 0
            lines = it.end(0)[0].decode().splitlines()
        assert [bytes.fromhex(line) for line in lines] == [payload for payload, _, _ in made.sent]
