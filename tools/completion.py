"""Print the script that lets a shell complete commands, options, recording ids and topics.

Lines for ~/.bashrc, for ~/.zshrc (after compinit) and for ~/.config/fish/config.fish:

    source <(aerotape completion bash)
    source <(aerotape completion zsh)
    aerotape completion fish | source

Recording ids and topics are those of the
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
        from argcomplete.shell_integration import shellcode
    except ImportError:
        raise AerotapeError(not_installed("argcomplete", "completion")) from None

    print(shellcode(["aerotape"], shell=args.shell), end="")
