"""Print the script by which a shell completes commands, options, recording ids and topics.

    eval "$(aerotape completion bash)"      # in ~/.bashrc; zsh in ~/.zshrc
    aerotape completion fish | source       # in ~/.config/fish/config.fish

Recording ids and topics are those of the archive directory, or of the running archive, that the
command line names so far. Needs the extra `completion` (argcomplete).
"""

from __future__ import annotations

import argparse

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        raise ConfigurationError(not_installed("argcomplete", "completion"), "shell") from None
    print(shellcode(["aerotape"], shell=args.shell), end="")
