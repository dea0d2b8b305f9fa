"""Output of commands: tables, records, JSON, progress."""

from __future__ import annotations

import argparse
import enum
import io
import json
from dataclasses import dataclass

import pytest

from aerotape.formatting import printable
from aerotape.tools._cli.output import ABSENT, Absent, Json, Progress, emit, json_object

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


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (60, "id  session  channel\n 7    -1234  aeron:udp?endpoint=localhost:40123\n"),
        (40, "id  session  channel\n 7    -1234  aeron:udp?en...alhost:40123\n"),
        (30, "id  channel\n 7  aeron:udp?en...lhost:40123\n"),
        (12, "id  channel\n 7  aer...23\n"),
    ],
)
def test_a_table_is_fitted_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, expected: str
) -> None:
    """One column is shortened in the middle, and others are omitted before it is unreadable."""
    row = {"id": 7, "session": -1234, "channel": "aeron:udp?endpoint=localhost:40123"}
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    emit([row], PLAIN, shortened="channel", omitted=["session"])
    assert terminal.getvalue() == expected


def test_a_table_in_a_pipe_is_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text is not shortened, and no column omitted, for a program that reads it."""
    monkeypatch.setenv("COLUMNS", "10")
    emit([{"id": 7, "channel": "a" * 30}], PLAIN, shortened="channel", omitted=["id"])
    assert capsys.readouterr().out == f"id  channel\n 7  {'a' * 30}\n"


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


@dataclass(frozen=True)
class Line:
    """A record with a field that may be absent."""

    note: str | Absent
    payload: object


def test_an_absent_field_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in JSON nor for people; None is."""
    for is_json, shown in ((True, '{"payload": null}\n'), (False, "payload: -\n")):
        emit(Line(ABSENT, None), argparse.Namespace(json=is_json))
        assert capsys.readouterr().out == shown


def test_json_in_rows_of_a_list_is_as_it_is() -> None:
    lines = [Line("a", Json('{"x":1.50}')), Line(ABSENT, "b")]
    assert json_object({"lines": lines, "numbers": [1]}) == (
        '{"lines": [{"note": "a", "payload": {"x":1.50}}, {"payload": "b"}], "numbers": [1]}'
    )
