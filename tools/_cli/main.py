"""The command `aerotape`: find the command's module, parse its arguments, run it, map its errors.

Every module of `aerotape.tools` and of its folders is a command, except where a name has a leading
underscore; underscores in the name are hyphens in the command's. Such a module has a docstring,
whose first line is its help,

    configure(parser: argparse.ArgumentParser) -> None     adds its arguments
    run(args: argparse.Namespace) -> int | None            does the work, returns an exit code if
                                                           it is not 0

With `INTERMIXED = True`, the last of its arguments, of any number, may also be after options. A
module that groups commands has `configure_for(parser, arguments)` instead of `configure`, which
adds only what these arguments need (`group`). Importing a module must be cheap: heavy modules are
imported in `run`. `--json` and `-v/--verbose` are added to every command here.

Exit codes: 0 done, 1 failure, 2 usage, 3 done but data was lost or is suspect; 130, 143 and 141,
as in shells, when interrupted, terminated or when the reader of standard output has closed it.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn, Protocol, cast

from aerotape import __version__
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import printable
from aerotape.tools._cli.colour import error_prefix
from aerotape.tools._cli.common_options import add_common_options, add_verbose
from aerotape.tools._cli.connection_help import without_connection_options
from aerotape.tools._cli.escaping import escaping_streams, write_styled
from aerotape.tools._cli.exit_codes import (
    EXIT_BROKEN_PIPE,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
)
from aerotape.tools._cli.option_names import message_of

_MORE: Final = """See `aerotape COMMAND --help` for the arguments of a command.
Results go to standard output, everything else to standard error.
Exit codes: 0 done; 1 failure; 2 invalid arguments or settings, nothing was done;
3 done, but data was lost or is suspect; 130, 143, 141 interrupted, terminated, output closed."""
_NEGATIVE: Final = re.compile(r"-([0-9]+|[0-9]*\.[0-9]+|[0-9]+ ?[smhd])$")
_TOOLS: Final = Path(__file__).parents[1]


class CommandModule(Protocol):
    """The attributes of a command's module."""

    __doc__: str | None
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


def command_files() -> dict[str, Path]:
    """Return the files of all commands by name, sorted."""
    files = (*_TOOLS.glob("[!_]*.py"), *_TOOLS.glob("[!_]*/[!_]*.py"))
    return dict(sorted((path.stem.replace("_", "-"), path) for path in files))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        argv: the arguments without the program's name; those of the process when None.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        from aerotape.tools._cli.help.completing import complete

        complete(command_files(), _parser_for)
    _open_standard_streams()
    with escaping_streams():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        try:
            with _terminating():
                code = _dispatch(arguments)
        except SystemExit as stop:  # argparse: --help and --version are 0, usage errors 2
            code = stop.code if isinstance(stop.code, int) else EXIT_OK
        # Flush here, so that a closed pipe is reported here and not at the interpreter's exit.
        sys.stdout.flush()
        return code
    except _Terminated:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return EXIT_BROKEN_PIPE
    except OSError as error:  # of standard output: a help, or what was still in its buffer
        _discard_stdout()
        return _report("", error, verbose=False)


def _open_standard_streams() -> None:
    """Open standard streams that the caller has closed on the null device.

    Otherwise the next file that is opened would get the descriptor of a standard stream. Reading
    from it or writing to it fails as it does on a closed one, but diagnostics are dropped.
    """
    modes = (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_RDWR))
    for number, (name, access) in enumerate(modes):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free descriptor, so this one; child processes inherit it.
            os.set_inheritable(os.open(os.devnull, access), True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    # Characters that the encoding of standard output lacks are escaped, as on standard error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as cleanly as Ctrl-C does."""


@contextmanager
def _terminating() -> Iterator[None]:
    """Raise `_Terminated` on SIGTERM while a command runs, unless a handler is installed."""
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


def _dispatch(arguments: list[str]) -> int:
    parser = _top_parser()
    top = parser.parse_args(arguments)
    if top.command is None:
        parser.print_help()
        return EXIT_OK
    file = command_files().get(top.command)
    if file is None:
        from aerotape.tools._cli.help.did_you_mean import hint

        parser.error(f"unknown command {top.command!r}{hint(top.command, command_files())}")
    module = _load(file)
    command_parser = _command_parser(top.command, module, top.arguments)
    try:
        if getattr(module, "INTERMIXED", False):
            args = command_parser.parse_intermixed_args(top.arguments)
        else:
            args = command_parser.parse_args(top.arguments)
    except ConfigurationError as error:  # raised by an argument's parser
        command_parser.error(message_of(error))
    args.verbose = args.verbose or top.verbose
    try:
        return module.run(args) or EXIT_OK
    except BrokenPipeError:
        raise
    except (AerotapeError, OSError) as error:
        return _report(top.command, error, args.verbose)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage. Options are not abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})
        # What may follow an option although it begins with a minus: also a time such as -10m.
        self._negative_number_matcher = _NEGATIVE

    def format_help(self) -> str:
        with without_connection_options(self):
            return super().format_help()

    def print_help(self, file: Any = None) -> None:
        # argparse's own ignores that it could not be written.
        file = file or sys.stdout
        file.write(self.format_help())
        file.flush()

    def error(self, message: str) -> NoReturn:
        from aerotape.tools._cli.help.did_you_mean import hint_for, without_values

        start = error_prefix(f"{self.prog}: error:", sys.stderr)
        text = printable(without_values(message) + hint_for(message, self))
        write_styled(f"{start} {text} (see `{self.prog} --help`)\n", sys.stderr)
        self.exit(EXIT_USAGE)


class _TopParser(_Parser):
    """The parser before the command, whose help lists the commands."""

    def format_help(self) -> str:
        from aerotape.tools._cli.help.overview import overview

        return "\n".join([super().format_help(), overview(command_files()), "", _MORE, ""])


def _top_parser() -> argparse.ArgumentParser:
    parser = _TopParser(
        prog="aerotape",
        description="Record Aeron streams, store them, replay them, and read them in Spark.",
    )
    parser.add_argument("--version", action="version", version=f"aerotape {__version__}")
    add_verbose(parser)
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the commands below")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="the arguments of the command"
    )
    return parser


def _parser_for(name: str, arguments: Sequence[str]) -> argparse.ArgumentParser:
    return _command_parser(name, _load(command_files()[name]), arguments)


def _load(file: Path) -> CommandModule:
    """Import the module of a command."""
    path = ".".join(file.relative_to(_TOOLS).with_suffix("").parts)
    return cast(CommandModule, importlib.import_module(f"aerotape.tools.{path}"))


def _command_parser(
    name: str, module: CommandModule, arguments: Sequence[str]
) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"aerotape {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    configure_for = getattr(module, "configure_for", None)
    if configure_for is None:
        module.configure(parser)
    else:
        configure_for(parser, arguments)
    add_common_options(parser)
    return parser


def _report(command: str, error: Exception, verbose: bool) -> int:
    if verbose:
        import traceback

        traceback.print_exception(error)
    # Always one line, so that scripts and logs can rely on it.
    text = printable(" ".join(_message(error).split())) or type(error).__name__
    start = f"aerotape {command}".rstrip()
    prefix = error_prefix(f"{start}:", sys.stderr)
    write_styled(f"{prefix} {text}\n", sys.stderr)
    return EXIT_USAGE if isinstance(error, ConfigurationError) else EXIT_FAILURE


def _message(error: Exception) -> str:
    """The message of an error; of a system error without its number and with its file."""
    if isinstance(error, AerotapeError) or not isinstance(error, OSError) or not error.strerror:
        return message_of(error)
    return f"{error.filename or 'standard output or input'}: {error.strerror}"


def _discard_stdout() -> None:
    """Redirect standard output to the null device, so that the last flush cannot fail."""
    try:
        with Path(os.devnull).open("wb") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is not a file: a test's capture
        pass
