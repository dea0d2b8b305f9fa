"""`aerotape publish`: messages from the arguments and from standard input."""

from __future__ import annotations

import itertools
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.recording import new_stream_id
from support.jvm.java import ROOT, JavaClient

from aerotape import ArchiveClient, Subscription
from aerotape.tools.messages.publish import paced

HOSTILE = b"\x1b[2J\xff\0\r"


@contextmanager
def subscribed(client: ArchiveClient, channel: str = "aeron:ipc") -> Iterator[Subscription]:
    """Subscribe to a new stream."""
    with client.aeron.add_subscription(channel, new_stream_id()) as subscription:
        yield subscription


def publish(
    cli: CommandLine, to: Subscription, *args: object, given: bytes = b"", expect: int = 0
) -> tuple[dict[str, Any], str]:
    """Publish to a subscription's stream; return what was printed as JSON, and the error."""
    process = cli.start("publish", "--json", to.channel, to.stream_id, *args, stdin=subprocess.PIPE)
    out, error = process.communicate(given, timeout=60)
    assert process.returncode == expect, error.decode()
    assert b"Traceback" not in error
    return json.loads(out or b"{}"), error.decode()


def received(subscription: Subscription, count: int) -> list[bytes]:
    """Return the next payloads; more must not follow."""
    payloads = [each.payload for each in itertools.islice(subscription, count)]
    assert subscription.poll(timeout_ns=50_000_000) == []
    return payloads


def test_arguments(cli: CommandLine, client: ArchiveClient) -> None:
    """Each is a message, with the bytes that it has."""
    with subscribed(client) as subscription:
        row, error = publish(cli, subscription, "one", b"\xff\x1b".decode(errors="surrogateescape"))
        assert received(subscription, 2) == [b"one", b"\xff\x1b"]
    assert error == ""
    assert isinstance(row.pop("session_id"), int)
    assert row == {
        "channel": "aeron:ipc",
        "stream_id": subscription.stream_id,
        "messages": 2,
        "bytes": 5,
        "dropped": 0,
        "position": 128,
    }


def test_arguments_among_options(cli: CommandLine, client: ArchiveClient) -> None:
    """Messages may be before and after options; after --, also with a hyphen in front."""
    with subscribed(client) as subscription:
        publish(cli, subscription, "one", "--exclusive", "two", "--rate", "1000", "--", "-3", "--x")
        assert received(subscription, 4) == [b"one", b"two", b"-3", b"--x"]


def test_lines(cli: CommandLine, client: ArchiveClient) -> None:
    """A line is a message without its end, also an empty one and one without an end."""
    with subscribed(client) as subscription:
        given = b"first\n\n" + HOSTILE + b"\n" + b"x" * 5000 + b"\nlast"
        assert publish(cli, subscription, given=given)[0]["messages"] == 5
        assert received(subscription, 5) == [b"first", b"", HOSTILE, b"x" * 5000, b"last"]
        assert publish(cli, subscription)[0]["messages"] == 0


def test_a_line_is_sent_as_soon_as_it_is_read(cli: CommandLine, client: ArchiveClient) -> None:
    """Ctrl-C ends the command while it waits for the next one."""
    with subscribed(client) as subscription:
        process = cli.start(
            "publish", "aeron:ipc", subscription.stream_id, "--exclusive", stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        for line in (b"one", b"two"):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            assert next(iter(subscription)).payload == line
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
        assert (process.returncode, out, error) == (130, b"", b"")


def test_json_lines(cli: CommandLine, client: ArchiveClient) -> None:
    """They are checked, and sent as they are; empty lines are ignored."""
    with subscribed(client) as subscription:
        given = b'{"a":  1.00}\n\n \n[1]\n'
        publish(cli, subscription, "--format", "json", given=given)
        assert received(subscription, 2) == [b'{"a":  1.00}', b"[1]"]
        _, error = publish(cli, subscription, "--format", "json", given=b"1\n{\x1b\n3\n", expect=1)
        assert error.startswith("aerotape publish: line 2: '{\\x1b' is not JSON: ")
        assert error.endswith("; only the preceding lines were sent\n")
        assert received(subscription, 1) == [b"1"]


def test_payloads_of_a_schema(cli: CommandLine, client: ArchiveClient) -> None:
    """JSON is encoded, as `cat --schema` prints it."""
    options = ["--schema", ROOT / "examples" / "market.xml", "--template", "Trade"]
    line = b'{"time_ns": -5, "symbol": "A", "side": "SELL", "price": "NaN", "quantity": 7}'
    with subscribed(client) as subscription:
        publish(cli, subscription, *options, given=line + b"\n\n" + line)
        expected = struct.pack("<4Hq8scdI", 29, 1, 7, 0, -5, b"A", b"S", float("nan"), 7)
        assert received(subscription, 2) == [expected, expected]
        for bad, words in (
            (line.replace(b"7", b"-7"), "line 1: quantity: -7 does not fit uint32"),
            (b"{", "line 1: '{' is not JSON"),
            (b"[" * 10_000, "is not JSON"),
            (b'{"quantity": ' + b"9" * 5000 + b"}", "line 1: "),
        ):
            _, error = publish(cli, subscription, *options, given=bad, expect=1)
            assert words in error and error.count("\n") == 1
        _, error = publish(cli, subscription, *options, "{}", expect=2)
        assert "MESSAGE time_ns: expected an integer, got nothing" in error
        assert received(subscription, 0) == []


def test_hexadecimal_lines(cli: CommandLine, client: ArchiveClient) -> None:
    """What `subscribe --format hex` prints; an empty line is an empty message."""
    with subscribed(client) as subscription:
        publish(cli, subscription, "--format", "hex", given=b"00fF\n\n0a 0b\r\n")
        assert received(subscription, 3) == [b"\0\xff", b"", b"\n\x0b"]
        for bad in (b"0g", b"123", b"\xff"):
            _, error = publish(cli, subscription, "--format", "hex", given=bad, expect=1)
            assert "line 1: " in error and "is not hexadecimal" in error
        assert received(subscription, 0) == []


def test_framed_messages(cli: CommandLine, client: ArchiveClient) -> None:
    """A length of four bytes precedes each; damage is an error, and its length is not believed."""

    def framed(*payloads: bytes) -> bytes:
        return b"".join(len(each).to_bytes(4, "little") + each for each in payloads)

    with subscribed(client) as subscription:
        publish(cli, subscription, "--format", "length", given=framed(b"a\nb", b"", HOSTILE))
        assert received(subscription, 3) == [b"a\nb", b"", HOSTILE]
        for tail, words in (
            (b"\xff\xff\xff\xff", "message 2: its length is 4294967295, but"),
            (b"\1\0", "message 2: standard input ends within it"),
            (b"\3\0\0\0ab", "message 2: standard input ends within it"),
        ):
            _, error = publish(
                cli, subscription, "--format", "length", given=framed(b"1") + tail, expect=1
            )
            assert words in error and "only the preceding ones were sent" in error
            assert received(subscription, 1) == [b"1"]


def test_a_message_that_is_too_long(cli: CommandLine, client: ArchiveClient) -> None:
    """It is refused with the limit, and not sent in part."""
    with subscribed(client) as subscription:
        _, error = publish(cli, subscription, given=b"a\n" + b"x" * 2_000_000, expect=1)
        assert "2000000" in error and error.count("\n") == 1
        assert received(subscription, 1) == [b"a"]


def test_arguments_are_checked_before_anything_is_sent(tmp_path: Path) -> None:
    """Without a media driver, the exit code is that of invalid arguments."""

    def refused(*args: object) -> str:
        given = ["publish", "aeron:ipc", 1, *args, "--aeron-dir", tmp_path / "none"]
        return aerotape(*given, expect=2).err

    assert "MESSAGE '{' is not JSON" in refused("1", "{", "--format", "json")
    assert "MESSAGE '0' is not hexadecimal" in refused("00", "0", "--format", "hex")
    assert "MESSAGE '' is not JSON" in refused("1", "", "--format", "json")
    market = ROOT / "examples" / "market.xml"
    assert "--schema and --template are used together" in refused("1", "--schema", market)
    with_schema = ["--schema", market, "--template", "Trade"]
    assert "leave out --format hex" in refused("1", "--format", "hex", *with_schema)
    assert "leave out MESSAGE" in refused("1", "--format", "length")
    assert "--count repeats arguments: give MESSAGE" in refused("--count", "2")
    for rate in ("0", "-1", "nan", "inf", "x", "1/m", "1e999", "1e-300"):
        assert "is not a rate like" in refused("1", f"--rate={rate}")
    assert not (tmp_path / "none").exists()


def test_no_driver(tmp_path: Path) -> None:
    """It is reported at once."""
    started = time.monotonic()
    done = aerotape("publish", "aeron:ipc", 1, "a", "--aeron-dir", tmp_path, expect=1)
    assert str(tmp_path) in done.err and done.err.count("\n") == 1
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=localhost:24329"])
def test_no_subscriber(cli: CommandLine, channel: str) -> None:
    """It is awaited for a limited time."""
    stream_id = new_stream_id()
    error = cli.error("publish", channel, stream_id, "a", "--timeout", "300ms")
    assert f"{channel} stream {stream_id}: no subscriber is connected for 0.3 s" in error


def test_a_subscriber_is_awaited(cli: CommandLine, client: ArchiveClient) -> None:
    """Nothing that is sent before it subscribes is lost."""
    stream_id = new_stream_id()
    process = cli.start("publish", "aeron:ipc", stream_id, "a", "b")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    with client.aeron.add_subscription("aeron:ipc", stream_id) as subscription:
        assert received(subscription, 2) == [b"a", b"b"]
        assert process.wait(20) == 0
        process.communicate()


def test_without_waiting(cli: CommandLine, client: ArchiveClient) -> None:
    """Messages without a subscriber are dropped, and counted: exit code 3."""
    stream_id = new_stream_id()
    process = cli.start(
        "publish", "aeron:ipc", stream_id, "--no-wait", "--json", stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b"lost\n")
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    with client.aeron.add_subscription("aeron:ipc", stream_id) as subscription:
        subscription.wait_connected()
        time.sleep(0.5)
        out, _ = process.communicate(b"sent\n", timeout=20)
        assert received(subscription, 1) == [b"sent"]
    row = json.loads(out)
    assert (process.returncode, row["messages"], row["dropped"]) == (3, 1, 1)


def test_repeated_arguments(cli: CommandLine, client: ArchiveClient) -> None:
    """--count repeats all arguments, at most as fast as --rate."""
    with subscribed(client) as subscription:
        started = time.monotonic()
        row, _ = publish(cli, subscription, "a", "b", "--count", 5, "--rate", "20/s")
        assert time.monotonic() - started > 9 / 20
        assert row["messages"] == 10
        assert received(subscription, 10) == [b"a", b"b"] * 5
        assert publish(cli, subscription, "a", "--count", 0)[0]["messages"] == 0


def test_a_rate_is_not_exceeded_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that take too long are made up for, pauses of standard input are not."""
    now_ns = 5_000_000_000

    def sleep(seconds: float) -> None:
        nonlocal now_ns
        now_ns += round(seconds * 1e9) + 60_000  # longer than wanted

    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    monkeypatch.setattr(time, "sleep", sleep)

    def given() -> Iterator[bytes]:
        nonlocal now_ns
        for number in range(3000):
            if number == 1000:
                now_ns += 10_000_000_000
            yield b""

    times = []
    for _ in paced(given(), 10_000):
        times.append(now_ns)
    first, second = times[:1000], times[1000:]
    for part in (first, second):
        took_s = (part[-1] - part[0]) / 1e9
        assert len(part) / 10_000 - 0.0102 <= took_s <= len(part) / 10_000 + 0.001
    # In no part of it, except for what may be made up for.
    for begin in range(0, 2900, 10):
        assert times[begin + 100] - times[begin] >= 99 * 100_000 - 10_100_000
    assert first[-1] - first[0] >= 999 * 100_000 - 60_000


@pytest.mark.jvm
def test_a_java_subscriber(cli: CommandLine) -> None:
    """It receives the messages, fragmented ones too."""
    stream_id = new_stream_id()
    with JavaClient(cli.archive.aeron_dir) as java:
        subscription = java.add_subscription("aeron:ipc", stream_id)
        given = b"one\n" + b"y" * 5000 + b"\n"
        process = cli.start("publish", "aeron:ipc", stream_id, stdin=subprocess.PIPE)
        process.communicate(given, timeout=60)
        assert process.returncode == 0
        polled = java.poll(subscription, 2, details=True)
    assert polled["bytes"] == 5003
    assert [bytes.fromhex(each["payload"]) for each in polled["messages"]] == [
        b"one",
        b"y" * 5000,
    ]


def test_a_closed_standard_output(cli: CommandLine, client: ArchiveClient) -> None:
    """The messages are sent; the summary has no reader."""
    reader, writer = os.pipe()
    os.close(reader)
    with subscribed(client) as subscription:
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                "aerotape",
                "publish",
                "aeron:ipc",
                str(subscription.stream_id),
                "a",
            ],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=cli.environment,
        )
        os.close(writer)
        assert (process.returncode, process.stderr) == (141, b"")
        assert received(subscription, 1) == [b"a"]
