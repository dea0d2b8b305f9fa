"""`migrate`: migrate a directory of an old version to the current one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aerotape.tools._archive_tool._common import would
from aerotape.tools._cli.confirm import add_confirmation_option, confirm
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step from one version to the next.

    Attributes:
        version: the version after it.
        segment_files_renamed: old and new name of each segment file.
    """

    version: str
    segment_files_renamed: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Migration:
    """A directory that was migrated.

    Attributes:
        mark_file_version: version of the mark file before.
        catalog_version: version of the catalog before.
        steps: what was changed for each version.
        dry_run: whether nothing was changed.
    """

    mark_file_version: str
    catalog_version: str
    steps: Sequence[MigrationStep]
    dry_run: bool


JSON_ROWS: Final = {"migrate": Migration}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_confirmation_option(add_command(commands, "migrate", _migrate, writes=True))


def _migrate(args: argparse.Namespace) -> None:
    """Migrate mark file, catalog and segment files from version 0, 1 or 2 to version 3.

    Archives of old versions cannot use the directory afterwards: make a copy first.
    """
    from aerotape.catalog.layout import version_string
    from aerotape.catalog.maintenance.migrate_version import migrate, plan_migration
    from aerotape.catalog.mark.mark_file import DEFAULT_LIVENESS_TIMEOUT_MS
    from aerotape.catalog.mark.ownership import unused

    done = plan_migration(args.directory)
    if not args.dry_run:
        confirm(
            args,
            f"migrate {args.directory} to the latest version; make a copy first",
            any_input=True,
        )
        with unused(args.directory, DEFAULT_LIVENESS_TIMEOUT_MS):
            done = migrate(args.directory)
    steps = [
        MigrationStep(
            version=version_string(step.version),
            segment_files_renamed=[list(names) for names in step.renames],
        )
        for step in done.steps
    ]
    mark_file_version = version_string(done.mark_file_version)
    if args.json:
        row = Migration(
            mark_file_version=mark_file_version,
            catalog_version=version_string(done.catalog_version),
            steps=steps,
            dry_run=args.dry_run,
        )
        emit(row, args)
        return
    if not done.steps:
        print(f"nothing to do: the directory has version {mark_file_version}")
    for step in done.steps:
        print(would(args, "migrated", "migrate"), "to version", version_string(step.version))
        for source, target in step.renames:
            print(f"  {would(args, 'renamed', 'rename')} {source} to {target}")
