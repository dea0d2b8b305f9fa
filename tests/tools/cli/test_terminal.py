"""Commands on a terminal: tables that fit its width, and colours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.terminal import run_on_terminal

CHANNEL = "aeron:ipc?term-length=64k|alias=a-rather-long-name-of-a-stream-of-quotes"
RED, GREEN, YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
CONNECTION = ("AERON_DIR", "AERON_ARCHIVE_CONTROL_CHANNEL")


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The connection to an archive with one live recording, its subscription and counters."""
    with serve("aerotape") as served, served.connect() as client:
        publication = client.add_recorded_publication(CHANNEL, 1001)
        await_true(lambda: any(client.list_recordings()))
        all_of_it = CommandLine(served).environment
        yield {name: all_of_it[name] for name in (*CONNECTION, "PYTHONPATH")}
        publication.close()


@pytest.mark.parametrize("columns", [60, 90])
@pytest.mark.parametrize("command", ["list", "subscriptions", "counters"])
def test_tables_fit_the_terminal(environment: dict[str, str], command: str, columns: int) -> None:
    """Long channels and labels are shortened in the middle; ids are whole."""
    shown = run_on_terminal([command], {**environment, "NO_COLOR": "1"}, columns)
    assert max(map(len, shown.splitlines())) <= columns
    assert "..." in shown
    if command != "counters":
        assert " 1001 " in shown


def test_a_wide_terminal_shows_all(environment: dict[str, str]) -> None:
    """Nothing is shortened if the table fits."""
    shown = run_on_terminal(["subscriptions"], environment, 250)
    assert "a-rather-long-name-of-a-stream-of-quotes" in shown


def test_states_and_errors_have_colours(environment: dict[str, str]) -> None:
    """A live recording is green, the start of an error is red, a warning yellow."""
    assert f"{GREEN}live\x1b[0m" in run_on_terminal(["list"], environment)
    assert f"{RED}aerotape list:\x1b[0m there is no recording" in run_on_terminal(
        ["list", "--id", "99"], environment
    )
    assert f"{RED}aerotape list: error:\x1b[0m" in run_on_terminal(["list", "--x"], environment)
    assert f"{YELLOW}warning:\x1b[0m aeron.archive.x" in run_on_terminal(
        ["list", "-Daeron.archive.x=1"], environment
    )


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("arguments", [["list"], ["list", "--id", "99"], ["list", "--x"]])
def test_colours_can_be_disabled(
    environment: dict[str, str], arguments: list[str], setting: dict[str, str]
) -> None:
    """By NO_COLOR, or by a terminal without them."""
    assert "\x1b" not in run_on_terminal(arguments, {**environment, **setting})
