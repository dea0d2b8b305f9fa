"""Errors for unknown names propose the most similar one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.daemon.command_line import aerotape


@pytest.mark.parametrize(
    ("arguments", "proposed"),
    [
        (["lst"], "list"),
        (["list", "--chanel", "x"], "--channel"),
        (["list", "--id", "1", "--streamid=3"], "--stream-id"),
        (["ledger", "craete"], "create"),
        (["ledger", "list", "--al-scopes"], "--all-scopes"),
        (["completion", "bsh"], "bash"),
        (["archive", "--print-config", "-Daeron.archive.dri=x"], "aeron.archive.dir"),
        (["list", "-Daeron.archive.contol.channel=aeron:ipc"], "aeron.archive.control.channel"),
    ],
    ids=" ".join,
)
def test_a_similar_name_is_proposed(arguments: list[str], proposed: str) -> None:
    """For commands, options, choices and properties."""
    done = aerotape(*arguments, expect=None)
    assert f"did you mean {proposed}?" in done.err.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["replay", "7", "--last", "5"], "cat"),
        (["table", "DIR", "TABLE", "--last=5"], "cat"),
        (["subscribe", "aeron:ipc", "1", "--since", "5m"], "cat"),
        (["cat", "DIR", "7", "--alias", "x"], "parquet"),
        (["cat", "DIR", "7", "--mode", "DROPMALFORMED"], "sql"),
        (["sql", "DIR", "select 1", "--columns", "position"], ""),
    ],
    ids=" ".join,
)
def test_an_option_of_another_command(arguments: list[str], command: str) -> None:
    """An option of reading that a command lacks: nothing similar, but where it is."""
    done = aerotape(*arguments, expect=2)
    option = next(each for each in arguments if each.startswith("--")).partition("=")[0]
    where = f": it is an option of `aerotape {command}`" if command else ""
    assert f"unrecognized arguments: {option}{where} (see" in done.err


@pytest.mark.parametrize("arguments", [["qqqqq"], ["list", "--qqqqq"], ["completion", "qqqqq"]])
def test_nothing_similar_is_not_proposed(arguments: list[str]) -> None:
    """A name that resembles none has an error without a proposal."""
    done = aerotape(*arguments, expect=2)
    assert "qqqqq" in done.err
    assert "did you mean" not in done.err


def test_a_command_that_succeeds_does_not_load_difflib() -> None:
    """It is imported for errors only."""
    script = (
        "import sys; from aerotape.tools._cli.main import main; "
        "main(['completion', 'bash']); assert 'difflib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
