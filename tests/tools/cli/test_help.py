"""The help of every command: an imperative first line in plain words."""

from __future__ import annotations

import importlib
import re
from argparse import ArgumentParser

import pytest
from support.daemon.command_line import aerotape

from aerotape.tools import journal, tool
from aerotape.tools._cli.main import command_files

# From the project's glossary: words that the help must not use, as whole words.
REFUSED = re.compile(
    r"\b(anew|nobody|whoever|elsewhere|told|tells?|goes on|go on|gone on|behind|once more|at all"
    r"|of its own|is none|give up|gives back|says who|what becomes of|come to|shall)\b",
    re.IGNORECASE,
)
# First words of help lines that are not verbs in the imperative.
NOT_IMPERATIVE = re.compile(
    r"(\w+(s|ed|ing)|the|a|an|what|who|where|how|let|have)\b", re.IGNORECASE
)


def tool_commands() -> list[str]:
    """The commands of `aerotape tool`."""
    found: list[str] = []
    for name in tool.MODULES:
        added = ArgumentParser().add_subparsers()
        importlib.import_module(f"aerotape.tools._tool.{name}").add_commands(added)
        found += added.choices
    return found


def check(text: str) -> None:
    """Check the help of one command."""
    description = text.partition("\n\n")[2].lstrip()
    first_word = description.split()[0]
    assert first_word[0].isupper(), description
    assert not NOT_IMPERATIVE.fullmatch(first_word), description
    plain = " ".join(text.split())
    assert not (found := REFUSED.search(plain)), f"{found[0]!r} in {plain}"


@pytest.mark.parametrize(
    "command",
    [
        *([command] for command in command_files()),
        *(["journal", name.rstrip("_")] for name in journal.MODULES),
        *(["segments", each] for each in ("detach", "delete", "purge", "attach", "migrate")),
    ],
    ids=" ".join,
)
def test_help_is_imperative_and_plain(command: list[str]) -> None:
    """The help of each command starts with a verb and contains no word of the list."""
    check(aerotape(*command, "--help").out)


@pytest.mark.parametrize("command", tool_commands())
def test_help_of_tool_commands_is_imperative_and_plain(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as for the commands, also for those of `aerotape tool`."""
    # `--help` anywhere lists the commands, so the parser of the command itself is used.
    parser = ArgumentParser(prog="tool")
    tool.configure_for(parser, ["x", command])
    with pytest.raises(SystemExit):
        parser.parse_args(["x", command, "--help"])
    check(capsys.readouterr().out)


def test_the_overview_is_plain() -> None:
    """The list of commands contains no word of the list either."""
    plain = " ".join(aerotape("--help").out.split())
    assert not REFUSED.search(plain), plain
