"""Jobs that write to a table, for `power_cut`: a separate process.

    python -m support.power_cut.table_run KIND TABLE ARCHIVE_DIR...

A job for each archive directory, one after the other; a Delta table is then overwritten, compacted
and vacuumed. There is a note after each of these. Ends without clearing up.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import cast

from aerotape.spark.tables.delta import DeltaRecordingTable
from support.spark.table_rig import Kind, run_here

_SHIM = ctypes.CDLL(None)


def main(kind: Kind, out: Path, archives: list[Path]) -> None:
    def done(what: str) -> None:
        _SHIM.power_cut_note(what.encode())

    for archive_dir in archives:
        run_here(kind, archive_dir, out)
        done("a job")
    if kind == "delta":
        run_here(kind, archives[-1], out, overwrite=True)
        done("an overwriting job")
        DeltaRecordingTable(out).compact()
        done("a compaction")
        DeltaRecordingTable(out).vacuum(0)
        done("a vacuum")
    os._exit(0)


if __name__ == "__main__":
    main(cast(Kind, sys.argv[1]), Path(sys.argv[2]), list(map(Path, sys.argv[3:])))
