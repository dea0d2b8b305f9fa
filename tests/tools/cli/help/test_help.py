"""The help of every command: an imperative first line in plain words."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Protocol

import pytest
from support.daemon.command_line import aerotape

from aerotape.tools import entity, journal, ledger, tool
from aerotape.tools._cli.main import command_files


class Group(Protocol):
    """A command that has commands."""

    MODULES: Mapping[str, str]

    def configure_for(self, parser: ArgumentParser, arguments: Sequence[str]) -> None:
        """Add the commands."""


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
        *(["segments", each] for each in ("detach", "delete", "purge", "attach", "migrate")),
    ],
    ids=" ".join,
)
def test_help_is_imperative_and_plain(command: list[str]) -> None:
    """The help of each command starts with a verb and contains no word of the list."""
    check(aerotape(*command, "--help").out)


@pytest.mark.parametrize(
    ("group", "command"),
    [(group, command) for group in (entity, journal, ledger, tool) for command in group.MODULES],
)
def test_help_of_commands_of_groups_is_imperative_and_plain(
    group: Group, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for the commands of `aerotape entity`, `journal`, `ledger` and `tool`."""
    # `--help` anywhere lists the commands, so the parser of the command itself is used.
    parser = ArgumentParser(prog="tool")
    directory = ["x"] if group.MODULES is tool.MODULES else []
    group.configure_for(parser, [command])
    with pytest.raises(SystemExit):
        parser.parse_args([*directory, command, "--help"])
    check(capsys.readouterr().out)


def test_the_overview_is_plain() -> None:
    """The list of commands contains no word of the list either."""
    plain = " ".join(aerotape("--help").out.split())
    assert not REFUSED.search(plain), plain
