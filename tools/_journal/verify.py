"""`verify`: check every record and segment descriptor of a journal."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, emit_line, note
from aerotape.tools._journal.arguments import add_journal, for_each_journal

JSON_ROWS: Final = {"verify": "aerotape.codecs.raft_journal.verify:Finding"}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "verify", _verify)
    add_journal(parser)


def _verify(args: argparse.Namespace) -> int:
    """Check every record and segment descriptor of a journal.

    Prints each finding: the segment file, the offset in it, the index that the record there should
    have, the kind of problem and the reason; of the records of a segment, the first thousand. The
    exit code is 3 if there are findings. No file is changed. Of a broker's data directory the
    journal of each partition is checked. Beside a broker's metadata, the file NAME.meta, a journal
    must have all records up to the last flushed index.
    """
    from aerotape.codecs.raft_journal.segment import total_length
    from aerotape.codecs.raft_journal.verify import verify_journal

    def read(directory: Path) -> int:
        name, length = total_length(directory, args.name)
        with Progress(length >> 20, f"verifying {name}", unit="MiB") as bar:
            check = verify_journal(directory, name, lambda done: bar.update(done >> 20))
        if args.json:
            for finding in check.findings:
                emit_line(finding, "", args)
        else:
            emit(check.findings, args)
        found = f"findings: {check.problems}" if check.problems else "no damage"
        if left := check.problems - len(check.findings):
            found += f", {left} of them not listed"
        note(f"{name}: {check.records} records in {check.segments} segments, {found}")
        return EXIT_DATA_SUSPECT if check.problems else EXIT_OK

    return for_each_journal(args, read)
