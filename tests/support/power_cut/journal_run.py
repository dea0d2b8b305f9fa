"""A raft journal that is written and truncated, for `power_cut`: a separate process.

    python -m support.power_cut.journal_run DIRECTORY FORMAT SEED

Notes are JSON, each a list:

* `["append", index, text]`: it will be appended;
* `["flushed", last index]`: records up to it are on storage;
* `["cut", index]`: the records after it will be deleted; `["done", index]`: they are.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
from pathlib import Path

from aerotape.codecs.raft_journal.writer import JournalWriter

SEGMENT_SIZE = 1024
_SHIM = ctypes.CDLL(None)


def note(*what: object) -> None:
    """Note what is done."""
    _SHIM.power_cut_note(json.dumps(what).encode())


def main(directory: Path, journal_format: str, seed: int) -> None:
    """Append, flush, truncate and open again."""
    draw = random.Random(seed)
    journal = JournalWriter(directory, format=journal_format, segment_size=SEGMENT_SIZE)
    for turn in range(4):
        for _ in range(draw.randint(3, 12)):
            # Of equal length, so that new records end where old ones did.
            text = f"{turn}-{journal.next_index:03}" * 20
            note("append", journal.next_index, text)
            journal.append(text.encode())
        journal.flush()
        note("flushed", journal.next_index - 1)
        index = draw.randint(0, journal.next_index - 1)
        note("cut", index)
        journal.delete_after(index)
        note("done", index)
        if draw.random() < 0.5:
            journal.close()
            journal = JournalWriter.open(directory)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
