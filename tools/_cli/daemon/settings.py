"""-D and properties files of the commands that run a daemon."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from aerotape.archive.config.settings import Settings


def add_property_arguments(parser: argparse.ArgumentParser) -> None:
    """Add -D and properties files, which `gather` reads."""
    parser.add_argument(
        "-D",
        dest="defines",
        action="append",
        default=[],
        metavar="name=value",
        help="set a property (repeatable)",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE.properties",
        help="a Java properties file",
    )


def gather(
    args: argparse.Namespace,
    options: Mapping[str, tuple[str, str | None]],
    sections: tuple[type[Any], ...] = (),
) -> Settings:
    """Return the settings from environment, files, -D and options, later ones replacing earlier.

    Args:
        options: by property, the option that sets it and its value (None if not given).
        sections: the dataclasses of features with their properties.

    Raises:
        ConfigurationError: a file cannot be read, or a -D is not name=value.
    """
    from aerotape.archive.config.settings import Settings

    settings = Settings(sections=sections)
    settings.take_environment(os.environ)
    settings.take_files(args.files)
    for define in args.defines:
        name, equals, value = define.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"-D{define}: expected -Dname=value", "-D")
        settings.put(name, value, "-D")
    for name, (option, given) in options.items():
        if given is not None:
            settings.put(name, given, option)
    return settings
