"""Commands parse the options of reading into one selection, or refuse them by their names."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.orders import SCHEMA
from support.builders.segment_builder import SegmentBuilder
from support.selections import has_it, texts_of

from aerotape.errors import ConfigurationError
from aerotape.replay.offline import reader, table
from aerotape.replay.offline.selection import OPTIONS
from aerotape.tools._cli import selecting, statistics, table_job
from aerotape.tools._cli.main import _parser_for
from aerotape.tools.messages import cat, sql

OPTIONS_OF: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cat": (("DIR", "0"), (*selecting.OF_MESSAGES, *selecting.OF_SCHEMAS)),
    "sql": (("DIR", "select * from messages(0)"), sql._SELECTING),
    "parquet": (("DIR", "OUT"), table_job._SELECTING),
    "table": (("DIR", "TABLE"), table_job._SELECTING),
    "plot": (("DIR", "0"), statistics._RANGE),
    "subscribe": (("aeron:ipc", "1001"), selecting.OF_SCHEMAS),
    "replay": (("0",), (*selecting.TIMES, *selecting.SEEKING)),
}
STREAM_OF_REPLAY = ("replay", "stream_id")  # the stream of --to


class SelectedError(Exception):
    """Ends a command with its selection."""


@pytest.mark.parametrize("command", OPTIONS_OF)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_command_passes_each_option_on_or_refuses_its_name(
    command: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`cat`, `sql` and table jobs up to where messages are read."""
    if (command, name) == STREAM_OF_REPLAY:
        return
    add_recording(tmp_path, SegmentBuilder())
    monkeypatch.chdir(tmp_path)
    Path("orders.xml").write_text(SCHEMA)
    arguments, names = OPTIONS_OF[command]
    words = [*(str(tmp_path) if each == "DIR" else each for each in arguments)]
    words += [f"{selecting.flag(each)}={text}" for each, text in texts_of(name).items()]
    parser = _parser_for(command, words)
    if name not in names:
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert selecting.flag(name) in capsys.readouterr().err
        return
    args = parser.parse_args(words)
    args.json = False
    assert has_it(selecting.selected(args, names), name)
    if command in ("parquet", "table"):
        read = table_job._read_options(args)
        assert getattr(read, name) == getattr(selecting.selected(args, names), name)
        assert (read.payloads is not None) == (read.schema is not None or name == "payload")

    def arrive(recording: object, selection: Any) -> None:
        raise SelectedError(selection)

    monkeypatch.setattr(reader, "selected_messages", arrive)
    monkeypatch.setattr(table, "read_batches", arrive)
    if command in ("cat", "sql"):
        with pytest.raises(SelectedError) as found:
            (cat if command == "cat" else sql).run(args)
        [selection] = found.value.args
        if selection.schema is None or command == "cat":
            assert has_it(selection, name)
        else:
            assert selection.schema.plan is not None and selection.template is None


def test_errors_have_the_names_of_commands() -> None:
    args = argparse.Namespace(first=1, last=2)
    with pytest.raises(ConfigurationError, match="--first and --last exclude each other") as found:
        selecting.selected(args, selecting.COUNTS)
    assert found.value.name == "--first"
