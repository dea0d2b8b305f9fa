"""Completion in real shells, with the script that `aerotape completion` prints."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.control_rig import await_true
from support.entity.topics import events

BASH = """
source <(aerotape completion bash)
COMP_LINE="$LINE_TO_COMPLETE" COMP_POINT=${#LINE_TO_COMPLETE} COMP_TYPE=9
_python_argcomplete aerotape
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Zsh completes only in its line editor; `_describe` gets what its list would show.
ZSH = """
autoload -U compinit && compinit -u -D
source <(aerotape completion zsh)
_describe() { printf '%s\\n' "${completions[@]}" }
words=(aerotape) BUFFER="$LINE_TO_COMPLETE" CURSOR=${#LINE_TO_COMPLETE}
_python_argcomplete
"""
FISH = """
aerotape completion fish | source
complete -C "$LINE_TO_COMPLETE"
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@pytest.fixture(scope="module")
def served() -> Iterator[ServedArchive]:
    """An archive with two recordings, of a stream and of a topic of entities."""
    with serve("aerotape") as archive, archive.connect() as client:
        client.add_recorded_publication("aeron:ipc?term-length=64k", 1001).close()
        await_true(lambda: any(client.list_recordings()))
        with client.entities("quotes", channel="aeron:ipc?term-length=64k") as entities:
            entities.append("key", events(1))
            yield archive


@pytest.fixture(params=SCRIPTS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def complete(shell: str, line: str, archive: ServedArchive) -> set[str]:
    """Return the completions of a line in a shell, without descriptions."""
    environment = CommandLine(archive).environment
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    options = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}
    done = subprocess.run(
        [shell, *options[shell], SCRIPTS[shell]],
        env={**environment, "LINE_TO_COMPLETE": line, "TERM": "xterm"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    separator = {"bash": "\n", "zsh": ":", "fish": "\t"}[shell]
    return {each.partition(separator)[0].strip() for each in done.stdout.splitlines()} - {""}


def test_names_are_completed(shell: str, served: ServedArchive) -> None:
    """Commands, commands of commands, options and choices."""
    assert complete(shell, "aerotape re", served) == {"record", "replay", "replicate", "retain"}
    assert complete(shell, "aerotape tool DIR des", served) == {"describe", "describe-all"}
    assert complete(shell, "aerotape list --ch", served) == {"--channel"}
    assert complete(shell, "aerotape -v completion z", served) == {"zsh"}


def test_recording_ids_are_completed(shell: str, served: ServedArchive) -> None:
    """Those of the running archive, or of the directory in the line."""
    assert {"0", "1"} <= complete(shell, "aerotape truncate ", served)
    assert {"0", "1"} <= complete(shell, f"aerotape cat {served.archive_dir} ", served)
    assert {"0", "1"} <= complete(shell, f"aerotape tool {served.archive_dir} describe ", served)
    assert complete(shell, "aerotape list --id ", served) == {"0", "1"}


def test_topics_are_completed(shell: str, served: ServedArchive) -> None:
    """Those of the running archive."""
    assert complete(shell, "aerotape entity read --topic ", served) == {"quotes"}


def test_without_an_archive_nothing_is_completed(served: ServedArchive, tmp_path: Path) -> None:
    """An error is not shown in the line that is being written."""
    line = f"aerotape entity read --aeron-dir {tmp_path} --topic "
    assert complete("bash", line, served) == set()


def test_without_argcomplete_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell's start file shows one line."""
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    done = aerotape("completion", "bash", expect=1)
    assert "[completion]" in done.err
    assert done.err.count("\n") == 1
