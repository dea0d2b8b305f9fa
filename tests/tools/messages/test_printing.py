"""The formats in which `cat` and `subscribe` print messages, of a recording that is built."""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape
from support.damage.tool_commands import Done
from support.jvm.java import ROOT

MARKET = ROOT / "examples" / "market.xml"
HOSTILE = [
    b"\x1b]0;title\x07\x1b[2J",
    b"line\r\nline\0\x9b31m\xff",
    "\u202etxt.exe \x85 \u2028 \U000e0041".encode(),
    b"\\x1b [plain] \xc3\xa9 tab\t",
    b"",
]


def built(directory: Path, payloads: Sequence[bytes]) -> Path:
    """Write an archive directory whose recording 0 has these messages."""
    directory.mkdir()
    builder = SegmentBuilder()
    for payload in payloads:
        builder.message(payload)
    add_recording(directory, builder)
    return directory


def cat(directory: Path, *options: object, expect: int = 0) -> Done:
    """Run `aerotape cat` in this process."""
    return aerotape("cat", directory, 0, *options, expect=expect)


def cat_bytes(directory: Path, *options: object, **environment: str) -> bytes:
    """Run `aerotape cat` in a separate process and return its standard output."""
    return subprocess.run(
        [sys.executable, "-m", "aerotape", "cat", str(directory), "0", *map(str, options)],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | environment,
    ).stdout


def test_text_is_a_line_a_message_and_printable(tmp_path: Path) -> None:
    """No control character, and no character that changes the order of others, is printed."""
    lines = cat(built(tmp_path / "archive", HOSTILE)).out.split("\n")
    assert len(lines) == len(HOSTILE) + 1
    assert all(line.isprintable() for line in lines)
    assert lines[0] == r"\x1b]0;title\x07\x1b[2J"
    assert lines[1] == r"line\r\nline\x00\x9b31m\xff"
    assert lines[3] == r"\x1b [plain] é tab\t"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp037"])
def test_text_for_another_encoding_of_standard_output(tmp_path: Path, encoding: str) -> None:
    """Characters that it lacks are escaped."""
    archive = built(tmp_path / "archive", ["é€".encode()])
    printed = cat_bytes(archive, PYTHONIOENCODING=encoding)
    assert printed.decode(encoding).strip() in ("\\xe9\\u20ac", "é\\u20ac")


def test_hex_raw_and_length(tmp_path: Path) -> None:
    """They have all bytes."""
    archive = built(tmp_path / "archive", HOSTILE)
    assert [bytes.fromhex(line) for line in cat(archive, "--format", "hex").out.splitlines()] == (
        HOSTILE
    )
    assert cat_bytes(archive, "--format", "raw") == b"".join(HOSTILE)
    framed = b"".join(struct.pack("<I", len(each)) + each for each in HOSTILE)
    assert cat_bytes(archive, "--format", "length") == framed


@pytest.mark.parametrize("format", ["raw", "length"])
def test_a_terminal_never_receives_the_bytes(tmp_path: Path, format: str) -> None:
    """Formats with the bytes as they are are refused where standard output is a terminal."""
    archive = built(tmp_path / "archive", HOSTILE)
    reader, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "aerotape", "cat", str(archive), "0", "--format", format],
            stdout=terminal,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(terminal)
    assert done.returncode == 2
    assert b"could control the terminal: redirect standard output" in done.stderr
    with pytest.raises(OSError):  # nothing was written
        os.read(reader, 1)
    os.close(reader)


def test_json_payloads_are_printed_as_they_are(tmp_path: Path) -> None:
    """On one line and printable, numbers with their digits; others are left out with code 3."""
    given = [
        b'{"price": 1.10000000000000000001, "big": 123456789012345678901234567890}',
        b"[\r\n\t1,\n2]",
        '"\x7f \u202e \U000e0041 é"'.encode(),
        b"{",
        b"NaN",
        b'"\xff"',
        b'"\x1b"',
        b"[" * 10_000,
        b"7",
    ]
    done = cat(built(tmp_path / "archive", given), "--format", "json", expect=3)
    lines = done.out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert lines[0] == given[0].decode()
    assert lines[1] == "[   1, 2]"
    assert lines[2] == '"\\u007f \\u202e \\udb40\\udc41 é"'
    assert json.loads(lines[2]) == json.loads(given[2])
    assert lines[3:] == ["7"]
    warnings = done.err.splitlines()
    assert len(warnings) == 5
    assert all("its payload is not JSON: " in line for line in warnings)
    assert done.err.isascii() and "\x1b" not in done.err


def test_rows(tmp_path: Path) -> None:
    """With --json a message is a row with its header, the payload in the chosen format."""
    archive = built(tmp_path / "archive", [b'{"a": 1.0}', b"\x1b\xff"])
    rows = [json.loads(line) for line in cat(archive, "--json").out.splitlines()]
    assert rows[0] == {
        "position": 0,
        "end_position": 64,
        "session_id": -42,
        "stream_id": 1001,
        "term_id": 7,
        "term_offset": 0,
        "flags": 0xC0,
        "reserved_value": 0,
        "length": 10,
        "payload": b'{"a": 1.0}'.hex(),
    }
    assert rows[1]["payload"] == "1bff"
    texts = cat(archive, "--json", "--format", "text").out.splitlines()
    assert [json.loads(line)["payload"] for line in texts] == ['{"a": 1.0}', "\x1b\\xff"]
    assert texts[1].isprintable()
    [only] = cat(archive, "--json", "--format", "json", expect=3).out.splitlines()
    assert '"payload": {"a": 1.0}}' in only


def trade(price: float, symbol: bytes = b"ABC") -> bytes:
    """A message of the template Trade."""
    return struct.pack("<4Hq8scdI", 29, 1, 7, 0, -5, symbol, b"B", price, 7)


def book(*bids: tuple[float, int]) -> bytes:
    """A message of the template Book."""
    groups = b"".join(struct.pack("<dI", *bid) for bid in bids)
    return struct.pack("<4Hq8s2H", 16, 2, 7, 0, 3, b"\x1b[2J", 12, len(bids)) + groups


FOREIGN = struct.pack("<4Hq", 8, 1, 8, 0, 1)
TRADE = {"time_ns": -5, "symbol": "ABC", "side": "BUY", "price": 0.1, "quantity": 7}
BOOK = {"time_ns": 3, "symbol": "\x1b[2J", "bids": [{"price": 2.5, "quantity": 4}]}


def test_payloads_of_a_schema(tmp_path: Path) -> None:
    """Their fields are printed as JSON; malformed ones are left out with exit code 3."""
    payloads = [trade(0.1), FOREIGN, book((2.5, 4)), trade(float("nan")), trade(float("-inf"))]
    archive = built(tmp_path / "archive", payloads)
    done = cat(archive, "--schema", MARKET)
    assert done.out.isascii() and "\x1b" not in done.out
    rows = [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]
    assert rows[:2] == [{"template": "Trade", "Trade": TRADE}, {"template": "Book", "Book": BOOK}]
    assert [row["Trade"]["price"] for row in rows[2:]] == ["NaN", "-Infinity"]
    [only] = cat(archive, "--schema", MARKET, "--template", "Book").out.splitlines()
    assert json.loads(only) == BOOK
    limited = cat(archive, "--schema", MARKET, "--template", "Book", "--limit", 1)
    assert limited.out == only + "\n"  # the others do not count
    [row] = cat(archive, "--schema", MARKET, "--template", 2, "--json").out.splitlines()
    assert (json.loads(row)["payload"], json.loads(row)["position"]) == (BOOK, 160)

    torn = built(tmp_path / "torn", [trade(0.1)[:20], b"", trade(0.1)])
    done = cat(torn, "--schema", MARKET, "--template", "Trade", expect=3)
    assert json.loads(done.out) == TRADE
    assert "warning: message at position 0: its payload does not match the schema: " in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--format", "raw", "--json"], "--format raw prints bytes: leave out --json"),
        (["--template", "Trade"], "--template is of a schema: give --schema"),
        (["--schema", MARKET, "--format", "hex"], "leave out --format hex"),
        (["--schema", "/nowhere.sbeir"], "/nowhere.sbeir: No such file"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, options: list[Any], words: str) -> None:
    """They are refused before anything is printed."""
    done = cat(built(tmp_path / "archive", [b"a"]), *options, expect=2)
    assert words in done.err and done.out == ""


def test_an_unknown_template(tmp_path: Path) -> None:
    """The error names it."""
    archive = built(tmp_path / "archive", [b"a"])
    done = cat(archive, "--schema", MARKET, "--template", "Order", expect=1)
    assert "'Order'" in done.err and done.out == ""
