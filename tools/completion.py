"""Print the script that lets a shell complete commands, options, recording ids and topics.

Bash and zsh read it from `~/.bashrc` and, after `compinit`, `~/.zshrc`:

    source <(aerotape completion bash)

fish from ~/.config/fish/completions/aerotape.fish. Recording ids and topics are those of the
archive that the options of the line, or the environment, connect to; or of the directory in it.
"""

from __future__ import annotations

import argparse

from aerotape.errors import AerotapeError
from aerotape.formatting import not_installed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's argument."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    try:
        import argcomplete
    except ImportError:
        raise AerotapeError(not_installed("argcomplete", "completion")) from None

    script = argcomplete.shellcode(["aerotape"], shell=args.shell)  # type: ignore[no-untyped-call,unused-ignore]
    print(script, end="")
