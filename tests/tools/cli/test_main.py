"""The command line: finding commands, exit codes, one-line errors."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.mark_files import leave
from support.builders.sbe_text import schema_text
from support.builders.segment_builder import SegmentBuilder

from aerotape import __version__
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli import main as main_module
from aerotape.tools._cli.main import command_files, main

Install = Callable[[Callable[[argparse.Namespace], int]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a command `probe` with the given `run`."""

    def put(run: Callable[[argparse.Namespace], int]) -> None:
        module = types.ModuleType("aerotape.tools.probe", "Probe the frame.")
        module.configure = lambda parser: parser.add_argument("word")  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "aerotape.tools.probe", module)
        file = Path(main_module.__file__).parents[1] / "probe.py"
        monkeypatch.setattr(main_module, "command_files", lambda: {"probe": file})

    return put


def _raise(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_version_and_help_of_a_new_process() -> None:
    """`python -m aerotape` prints the version, and its help names every command."""
    version = subprocess.run(
        [sys.executable, "-m", "aerotape", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout == f"aerotape {__version__}\n"
    shown = subprocess.run(
        [sys.executable, "-m", "aerotape", "--help"], capture_output=True, text=True, check=True
    )
    for name in command_files():
        assert shown.stdout.count(f"\n  {name} ") == 1


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2 and standard output stays empty."""
    assert main(["no-such-thing"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "'no-such-thing'" in err


@pytest.mark.parametrize("arguments", [[], ["help"]])
def test_without_a_command_the_overview_is_printed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert main(["--help"]) == 0
    assert out == capsys.readouterr().out


def test_options_of_the_connection_have_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of a command names the page, and the page has the options."""
    assert main(["truncate", "--help"]) == 0
    help_ = capsys.readouterr().out
    assert "`aerotape help connection`" in help_
    assert "--response-stream-id" not in help_
    assert main(["help", "connection"]) == 0
    page = capsys.readouterr().out
    assert all(option in page for option in ("--response-stream-id", "--secret-file", "--wait"))
    assert main(["help", "truncate"]) == 0
    assert capsys.readouterr().out == help_


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    """A secret given as `--secret` is not read as the name of a file."""
    assert main(["list", "--user", "alice", "--secret", "hunter2"]) == 2
    err = capsys.readouterr().err
    assert "--secret-file" in err
    assert "hunter2" not in err


def test_arguments_reach_the_command(install: Install) -> None:
    """The command gets its own arguments and --json and --verbose, before or after it."""
    seen: list[argparse.Namespace] = []

    def run(args: argparse.Namespace) -> int:
        seen.append(args)
        return 3

    install(run)
    assert main(["-v", "probe", "hello", "--json"]) == 3
    assert (seen[0].word, seen[0].json, seen[0].verbose) == ("hello", True, True)
    assert main(["probe", "hello", "-v"]) == 3
    assert (seen[1].json, seen[1].verbose) == (False, True)


def test_wrong_arguments_of_a_command_exit_with_2(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """An argparse error for a command's arguments is a usage error, on one line."""
    install(lambda args: 0)
    assert main(["probe"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["probe", "a", "b"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("parquet", "", "out"),
        ("tool", "s3://AKID:hush-hush@bucket/archive", "describe"),
        ("plot", "file://elsewhere/archive", "0"),
    ],
)
def test_invalid_urls_are_usage_errors(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """On one line, without the part that may be a secret."""
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert printed.startswith(f"aerotape {arguments[0]}: error: path: ")
    assert "hush-hush" not in printed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AerotapeError("first\nsecond"), 1),
        (ConfigurationError("first\nsecond"), 2),
        (FileNotFoundError("first\nsecond"), 1),
        (FileNotFoundError(2, "second", "first:"), 1),
    ],
)
def test_errors_are_one_line(
    install: Install, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    """A failure is one line on standard error that names the command, and no traceback."""
    install(_raise(error))
    assert main(["probe", "x"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.replace("::", "") == "aerotape probe: first second\n"


def test_verbose_shows_the_traceback(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """With -v the traceback precedes the line."""
    install(_raise(AerotapeError("broken")))
    assert main(["probe", "x", "-v"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("aerotape probe: broken\n")


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)])
def test_interrupts_have_the_exit_codes_of_shells(
    install: Install, error: BaseException, code: int
) -> None:
    """Ctrl-C and a closed standard output end a command without output."""
    install(_raise(error))
    assert main(["probe", "x"]) == code


def test_sigterm_exits_with_143_after_cleanup(install: Install) -> None:
    """SIGTERM ends a command as Ctrl-C does; afterwards the default action is restored."""
    cleaned = []

    def run(args: argparse.Namespace) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        finally:
            cleaned.append(True)
        return 0

    install(run)
    assert main(["probe", "x"]) == 143
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_closed_standard_output() -> None:
    """A process whose reader has closed ends without output; argparse may have ignored the
    failure."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "aerotape", "--help"], stdout=writer, stderr=subprocess.PIPE
        )
    finally:
        os.close(writer)
    assert done.returncode in (0, 141)
    assert done.stderr == b""


@pytest.mark.parametrize("closed", [[1], [0, 1, 2]])
def test_closed_standard_streams_are_not_reused_for_files(
    tmp_path: Path, closed: list[int]
) -> None:
    """A command runs as usual; none of its files gets one of the standard descriptors."""
    script = "import os\n"
    script += "".join(f"os.close({number})\n" for number in closed)
    script += (
        "from aerotape.tools._cli.main import main\n"
        f"code = main(['users', {str(tmp_path / 'users')!r}, 'list'])\n"
        "places = {os.readlink(f'/proc/self/fd/{number}') for number in " + repr(closed) + "}\n"
        "kept = all(os.get_inheritable(number) for number in " + repr(closed) + ")\n"
        "os._exit(code if places == {os.devnull} and kept else 99)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", ["archive --print-config --dir {}", "--help", "list --help", "help connection"]
)
@pytest.mark.parametrize("standard_output", [">&-", ">/dev/full"])
def test_results_that_cannot_be_written_are_a_failure(
    tmp_path: Path, arguments: str, standard_output: str
) -> None:
    """One line and exit code 1, if standard output is closed or the disk is full."""
    command = f"{sys.executable} -m aerotape {arguments.format(tmp_path / 'a')} {standard_output}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"aerotape.*: standard output or input: .*\n", done.stderr), done.stderr


def test_bugs_are_not_hidden(install: Install) -> None:
    """An exception that is not caused by the user has its traceback."""
    install(_raise(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["probe", "x"])


@pytest.mark.parametrize(
    ("arguments", "needless"),
    [
        (["archive", "--print-config"], {"aerotape.archive.archive"}),
        (
            ["tool", "{dir}", "pid"],
            {"aerotape._native", "aerotape.tools._archive_tool.writing.verify"},
        ),
        (["tool", "{dir}", "describe"], {"aerotape.replay.offline.table"}),
        (["schema", "{dir}/schema.xml"], {"aerotape._native", "aerotape.codecs.payloads"}),
        (["cat", "{dir}", "0"], {"aerotape.replay.offline.table", "aerotape.aeron"}),
        (["publish", "--help"], {"aerotape._native"}),
        (["subscribe", "--help"], {"aerotape._native"}),
        (["-c", "import aerotape.archive.archive"], {"aerotape.replay", "shutil"}),
    ],
)
def test_a_start_loads_only_what_it_needs(
    tmp_path: Path, arguments: list[str], needless: set[str]
) -> None:
    """Modules that load slowly and are rarely needed are loaded only when they are used."""
    leave(tmp_path)
    add_recording(tmp_path, SegmentBuilder())
    schema = schema_text('package="p" id="1"', types="", messages='<sbe:message name="M" id="1"/>')
    (tmp_path / "schema.xml").write_text(schema)
    slow = {"asyncio", "concurrent.futures", "hashlib", "json"}
    slow |= {"subprocess", "urllib.request", "pyarrow", "pyspark", "aerotape.spark"}
    command = [each.format(dir=tmp_path) for each in arguments]
    prefix = [] if command[0] == "-c" else ["-m", "aerotape"]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *prefix, *command],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "aerotape.errors" in loaded
    assert not loaded & (slow | needless)
