"""No command lets control characters of others reach a terminal, or forge lines of its output."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.damage.tool_commands import run
from support.terminal import run_on_terminal

import aerotape
from aerotape.counter_keys import CounterType
from aerotape.tools._cli.daemon.logs import log_to_standard_error
from aerotape.tools._cli.escaping import escaping_streams
from aerotape.tools._cli.help.overview import GROUPS
from aerotape.tools._cli.main import _parser_for, main
from aerotape.tools._cli.output import Json

C0_C1 = "".join(map(chr, (*range(1, 32), *range(127, 160))))
BIDI = "".join(map(chr, (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x61C)))
HOSTILE = f"\x1b]0;x\x07\x1b[2J\x9b31m{C0_C1}{BIDI}\u2028\u2029\ufeff"
# As the arguments of a process have bytes that are not UTF-8.
HOSTILE_ARGUMENT = f"evil{HOSTILE}\udcff"
# "/" and line ends are possible in names of files too; these are for all file systems.
HOSTILE_NAME = f"evil\x1b[2J\r\x07\x9b{BIDI}\u2028\x7f"
# Channels are ASCII.
ASCII = HOSTILE.encode("ascii", "ignore").decode()
CHANNEL = f"aeron:ipc?term-length=64k|alias={ASCII}"
PAYLOADS = (
    HOSTILE.encode(),
    b"\xff\xfe" + HOSTILE.encode(),
    json.dumps({"a": BIDI + "\x7f\x9b\u2028"}, ensure_ascii=False).encode(),
)
# These run until they are ended, or take a media driver and minutes.
NOT_RUN = {"archive", "driver", "web", "bench", "doctor"}
OPTIONS = {"parquet": ["--dry-run"], "table": ["--dry-run"]}
# Values of arguments by their names; others are hostile.
VALUES = {
    "query": "select payload, original_channel from messages(0), recordings",
    "shell": "bash",
    "action": "list",
    "checksum": "crc-32",
    "stream_id": "1",
    "session_id": "1",
    "index": "1",
    "position": "0",
    "--to": "1",
    "--max-age": "1s",
}


class Terminal(io.StringIO):
    """A stream that counts as a terminal."""

    def isatty(self) -> bool:
        return True


def commands() -> Iterator[tuple[str, list[str], list[argparse.ArgumentParser]]]:
    """Iterate the commands of the overview and theirs, with the parsers that they have."""

    def walk(
        words: list[str], parsers: list[argparse.ArgumentParser]
    ) -> Iterator[tuple[str, list[str], list[argparse.ArgumentParser]]]:
        groups = [
            each for each in parsers[-1]._actions if isinstance(each, argparse._SubParsersAction)
        ]
        if not groups:
            yield " ".join(words), words, parsers
        for group in groups:
            for name, parser in group.choices.items():
                yield from walk([*words, name], [*parsers, parser])

    for names in GROUPS.values():
        for name in names:
            yield from walk([name], [_parser_for(name, ["--help"])])


COMMANDS = {name: (words, parsers) for name, words, parsers in commands()}


def arguments_of(name: str, values: dict[str, str]) -> list[str]:
    """Return a command line with values for its required arguments, hostile ones by default."""
    words, parsers = COMMANDS[name]
    line: list[str] = []
    for word, parser in zip(words, parsers, strict=True):
        line.append(word)
        for action in parser._actions:
            if not action.required or isinstance(action, argparse._SubParsersAction):
                continue
            option = action.option_strings[:1]
            value = values.get(option[0] if option else action.dest, HOSTILE_ARGUMENT)
            line += [*option, value]
    return line


def is_safe(text: str) -> bool:
    """Whether a terminal shows the text as it is, the progress bar's carriage returns aside."""
    lines = text.replace("\r", "").replace("\n", "").replace("\t", "")
    return lines.isprintable() and "evil\r" not in text and "x\r" not in text


def printed(
    monkeypatch: pytest.MonkeyPatch, line: list[str], stream: type[io.StringIO] = Terminal
) -> tuple[int, str, str]:
    """Run a command on a terminal; return its code and what is on standard output and error."""
    out, err = stream(), stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main(line)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive directory of a hostile name with recordings of hostile channels and payloads."""
    place = tmp_path_factory.mktemp("hostile") / HOSTILE_NAME
    place.mkdir()
    for _ in range(2):
        builder = SegmentBuilder()
        for payload in PAYLOADS:
            builder.message(payload)
        add_recording(
            place,
            builder,
            stripped_channel=CHANNEL,
            original_channel=CHANNEL,
            source_identity=ASCII,
        )
    return place


@pytest.fixture
def values(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Arguments of commands for that directory, where there is no media driver."""
    aside = tmp_path / HOSTILE_NAME
    aside.mkdir()
    monkeypatch.setenv("AERON_DIR", str(aside))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    places = ("archive_dir", "directory", "source", "other")
    ids = ("recording_id", "src_recording_id", "source_id", "target_id", "replication_id")
    return {
        **VALUES,
        **dict.fromkeys(places, str(directory)),
        **dict.fromkeys(ids, "0"),
        "out": str(aside / "out"),
        "file": str(aside / "file"),
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_refused_arguments(
    name: str, values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each argument of each command: the error quotes it escaped, on one line."""
    # Nothing runs: an option that does not exist is refused after all others.
    unknown = f"--{HOSTILE_ARGUMENT}"
    lines = [[*arguments_of(name, values), unknown]]
    for parser in COMMANDS[name][1]:
        for action in parser._actions:
            if not (action.type or action.choices) or action.nargs == argparse.PARSER:
                continue
            if action.option_strings:
                given = [action.option_strings[0], HOSTILE_ARGUMENT]
                lines.append([*arguments_of(name, values), *given, unknown])
            elif action.required:
                hostile = {**values, action.dest: HOSTILE_ARGUMENT}
                lines.append([*arguments_of(name, hostile), unknown])
    for line in lines:
        code, out, err = printed(monkeypatch, line)
        assert (code, out, is_safe(err)) == (2, "", True), (line, err)
        assert len(err.splitlines()) == 1, (line, err)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN])
def test_output(name: str, values: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, notes and errors of each command, on a terminal and in a pipe."""
    line = [*arguments_of(name, values), *OPTIONS.get(name, ())]
    for options in ([], ["--json"], ["--verbose"]):
        for stream in (Terminal, io.StringIO):
            code, out, err = printed(monkeypatch, [*line, *options], stream)
            assert code in (0, 1, 2, 3, 130), (code, err)
            assert is_safe(out), out
            assert is_safe(err), err


def test_json_has_the_same_text(directory: Path) -> None:
    """JSON escapes control characters as JSON does, so what was recorded can be read from it."""
    (row, _) = json.loads(run("sql", directory, "from recordings", "--json").out)
    assert row["original_channel"] == CHANNEL
    shown = run("cat", directory, 0, "--format", "json")
    assert shown.out.isascii()
    assert [json.loads(line) for line in shown.out.splitlines()] == [json.loads(PAYLOADS[-1])]
    text = '{\n"a":\t"\u202e\U000e0001"}'
    assert json.loads(Json.of(text)) == json.loads(text)
    assert is_safe(Json.of(text))


def test_csv_is_exact_in_a_pipe(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a program reads it; on a terminal it is escaped."""
    line = ["sql", str(directory), "select original_channel as c from recordings limit 1", "--csv"]
    assert run(*line).out == f'c\n"{CHANNEL}"\n'
    _, out, _ = printed(monkeypatch, line)
    assert "\\x1b[2J" in out
    assert is_safe(out)


def test_bytes_are_refused_on_a_terminal(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets no payload as it is."""
    code, out, err = printed(monkeypatch, ["cat", str(directory), "0", "--format", "raw"])
    assert (code, out) == (2, "")
    assert "could control the terminal" in err


def test_log_lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A message of a daemon's log is one line; a traceback after it keeps its lines."""
    stream, root = io.StringIO(), logging.Logger("root")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(logging, "root", root)
    with escaping_streams():
        log_to_standard_error("archive", logging.INFO)
        root.warning("cannot add %s", HOSTILE)
        try:
            raise ValueError(HOSTILE)
        except ValueError as error:
            root.warning("failed", exc_info=error)
    first, second, *others = stream.getvalue().split("\n")
    assert first.endswith("\\ufeff")
    assert second.endswith("aerotape archive: failed")
    assert others[0] == "Traceback (most recent call last):"
    assert is_safe(stream.getvalue())


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    """A running archive that records a stream with a hostile alias, beside hostile counters."""
    with (
        serve("aerotape") as served,
        served.connect() as client,
        aerotape.Aeron(served.aeron_dir) as aeron,
    ):
        key = struct.pack("<qq", client.archive_id, client.archive_id)
        counters = [aeron.native.add_counter(each, key, HOSTILE) for each in (0, *CounterType)]
        publication = client.add_recorded_publication(CHANNEL, 1001)
        for payload in PAYLOADS:
            publication.offer(payload)
        await_true(lambda: any(client.list_recordings()))
        yield served
        publication.close()
        for counter in counters:
            counter.close()


@pytest.mark.parametrize(
    "line",
    [
        ["list"],
        ["list", "--json"],
        ["find", "alias", "1001", "0"],
        ["subscriptions"],
        ["counters"],
        ["errors"],
        ["metrics", "DIR"],
        ["metrics", "DIR", "--json"],
        ["cat", "DIR", "0"],
        ["cat", "DIR", "0", "--json"],
        ["cat", "DIR", "0", "--format", "json"],
        ["sql", "DIR", "from recordings", "--csv"],
        ["sql", "DIR", "select decode(payload[:9]) from messages(0)"],
        ["record", CHANNEL, "1001"],
        ["extend", "0", CHANNEL, "1001"],
        ["update-channel", "0", CHANNEL],
        ["publish", CHANNEL, "1001", HOSTILE, "--timeout", "100ms"],
    ],
    ids=lambda line: " ".join(line[:4]).encode("unicode_escape").decode(),
)
def test_a_running_archive(archive: ServedArchive, line: list[str]) -> None:
    """Its recordings, counters, errors and messages on a terminal."""
    environment = CommandLine(archive).environment
    wanted = ("AERON_DIR", "AERON_ARCHIVE_CONTROL_CHANNEL", "PYTHONPATH")
    connection = {name: environment[name] for name in wanted} | {"NO_COLOR": "1"}
    line = [str(archive.archive_dir) if word == "DIR" else word for word in line]
    shown = run_on_terminal(line, connection)
    assert "Traceback" not in shown
    assert is_safe(shown), shown


def test_metrics_in_a_pipe(archive: ServedArchive) -> None:
    """A label has the escaped text, which Prometheus reads; in JSON it has the channel."""
    command = CommandLine(archive)
    text = command.run("metrics", archive.archive_dir).stdout.decode()
    assert is_safe(text)
    channels = {
        sample.labels["channel"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "channel" in sample.labels and "recording_id" in sample.labels
    }
    assert len(channels) == 1
    assert "\\x1b]0;x\\x07\\x1b[2J" in channels.pop()
    labels = [row["labels"] for row in command.json("metrics", archive.archive_dir)]
    assert any("\x1b]0;x\x07" in each.get("channel", "") for each in labels)


def test_help_and_completion_are_as_they_are() -> None:
    """The guard changes nothing of our own text."""
    assert os.linesep.join(run("--help").out.splitlines()[:1]).startswith("usage: aerotape")
    assert "IFS" in run("completion", "bash").out
