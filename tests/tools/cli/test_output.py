"""Output of commands: tables, records, JSON, progress."""

from __future__ import annotations

import argparse
import enum
import io
import json
from dataclasses import dataclass

import pytest

from aerotape.formatting import printable
from aerotape.tools._cli.output import Progress, emit

PLAIN = argparse.Namespace(json=False)
JSON = argparse.Namespace(json=True)


class Colour(enum.IntEnum):
    """An enumeration to print."""

    RED = 1


@dataclass
class Point:
    """A record to print."""

    x: int
    colour: Colour


class Terminal(io.StringIO):
    """A stream that counts as a terminal."""

    def isatty(self) -> bool:
        return True


def test_rows_are_an_aligned_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are right-aligned, text left-aligned, without trailing spaces."""
    emit([{"id": 7, "channel": "aeron:ipc"}, {"id": 1234, "channel": None}], PLAIN)
    assert capsys.readouterr().out == "  id  channel\n   7  aeron:ipc\n1234  -\n"


def test_rows_are_one_json_array(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON rows are one document; bytes are hexadecimal and enumerations names."""
    emit(iter([{"a": b"\x01\xff"}, Point(3, Colour.RED)]), JSON)
    out = capsys.readouterr().out
    assert json.loads(out) == [{"a": "01ff"}, {"x": 3, "colour": "red"}]
    assert out.count("\n") == 2


def test_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    """A record is a JSON object, or a list of names and values."""
    emit(Point(3, Colour.RED), JSON)
    emit({"name": "x", "long_name": True}, PLAIN)
    assert capsys.readouterr().out == '{"x": 3, "colour": "red"}\nname:      x\nlong_name: yes\n'


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in a channel are printed as text."""
    emit([{"channel": "a\x1b[2J\nb"}], PLAIN)
    assert capsys.readouterr().out == "channel\na\\x1b[2J\\nb\n"
    assert printable("plain text") == "plain text"


def test_progress_draws_on_a_terminal_only() -> None:
    """On a terminal the bar shows the share and is cleared at the end; elsewhere nothing is
    written."""
    terminal, pipe = Terminal(), io.StringIO()
    with Progress(4, "reading", unit="files", stream=terminal) as progress:
        progress.update(2)
        assert "reading [" in terminal.getvalue()
        assert " 50% 2/4 files" in terminal.getvalue()
    assert terminal.getvalue().endswith(" \r")
    with Progress(None, "reading", stream=pipe) as progress:
        progress.update(2)
    assert pipe.getvalue() == ""
