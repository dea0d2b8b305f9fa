"""When ledgers are forced to storage, as the operating system sees it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from support.damage.sync_shim import build_shim

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")

# Marks are calls of `access`, which no other part of the program makes with these names.
SCRIPT = """
import os, sys
import aerotape

def mark(name):
    os.access(f"/mark-{name}", os.F_OK)

properties = {
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.segment.file.length": "64m",
}
folder, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with (
    aerotape.Archive.launch(folder + "/archive", folder + "/aeron", properties=properties),
    aerotape.connect(aeron_dir=folder + "/aeron") as client,
    client.create_ledger(kind) as writer,
):
    for index in range(count):
        mark(f"add-{index}")
        writer.add(b"entry")
    mark("sync")
    assert writer.sync() == count - 1
    mark("end")
"""
FAILING = """
import sys
from pathlib import Path
import aerotape

properties = {"aeron.archive.control.channel.enabled": "false"}
folder, kind, control = sys.argv[1], sys.argv[2], Path(sys.argv[3])
channel = "aeron:ipc?term-length=64k"
with (
    aerotape.Archive.launch(folder + "/archive", folder + "/aeron", properties=properties),
    aerotape.connect(aeron_dir=folder + "/aeron") as client,
):
    other = client.create_ledger(kind, channel=channel)
    writer = client.create_ledger(kind, channel=channel)
    other.add(b"other")
    assert writer.add_many([b"%d" % number for number in range(50)]) == range(50)
    assert writer.sync() == 49
    (control / f"{client.ledger_info(writer.qualified_id).recording_id}-0.rec.fail").touch()
    ends = 0
    for step in (lambda: writer.add_many([b"%d" % n for n in range(50, 60)]), writer.sync):
        try:
            step()
        except aerotape.LedgerError as error:
            assert "Input/output error" in str(error), error
            ends += 1
    assert ends == (2 if kind == "PD_JOURNAL" else 1)
    assert writer.last_add_confirmed == 49
    writer.close()
    info = client.ledger_info(writer.qualified_id)
    assert (info.last_add_confirmed, info.recorded_position) == (49, info.confirmed_position)
    with client.open_ledger_read_only(writer.qualified_id) as reader:
        for entries in (reader.read(), reader.read_unconfirmed()):
            assert [int(entry.payload) for entry in entries] == list(range(50))
    assert other.sync() == 0
    assert other.add(b"continues") == 1
    other.close()
"""
MARK = re.compile(r'"/mark-([a-z0-9-]+)"')
SYNCED = re.compile(r"\b(fsync|fdatasync)\b.*= 0$")


def events(tmp_path: Path, kind: str, count: int) -> list[str]:
    """The marks, and "synced" for each sync of a segment file that has ended, in order."""
    log = tmp_path / "strace.log"
    command = ["strace", "-f", "-y", "-s", "200", "-o", str(log)]
    command += ["-e", "trace=access,faccessat,faccessat2,fsync,fdatasync"]
    command += [sys.executable, "-c", SCRIPT, str(tmp_path), kind, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "ptrace" in done.stderr:
        pytest.skip(f"strace is not permitted: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    found = []
    # Of a call that another thread interrupts in the log, by thread.
    unfinished: dict[str, str] = {}
    for line in log.read_text().splitlines():
        thread, _, call = line.partition(" ")
        mark = MARK.search(call)
        if mark is not None and "resumed" not in call:
            found.append(mark[1])
        elif "<unfinished" in call:
            unfinished[thread] = call
        elif SYNCED.search(call):
            whole = unfinished.pop(thread, "") + call if "resumed" in call else call
            if ".rec" in whole:
                found.append("synced")
    return found


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_a_failed_sync_ends_its_ledger(tmp_path: Path, kind: str) -> None:
    """At the last confirmed entry: it never decreases, and other ledgers continue."""
    shim, control = build_shim(tmp_path), tmp_path / "control"
    control.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(tmp_path), kind, str(control)],
        env=os.environ | {"LD_PRELOAD": str(shim), "SYNC_CONTROL": str(control)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def between(found: list[str], begin: str, end: str) -> list[str]:
    """The events between two marks."""
    return found[found.index(begin) + 1 : found.index(end)]


@needs_strace
def test_a_durable_add_is_acknowledged_after_its_sync(tmp_path: Path) -> None:
    """In each add with acknowledgement, the segment file is synced before the add returns."""
    count = 20
    found = events(tmp_path, "PD_JOURNAL", count)
    marks = [f"add-{index}" for index in range(count)] + ["sync"]
    for begin, end in pairwise(marks):
        assert "synced" in between(found, begin, end), f"{begin}: {found}"


@needs_strace
def test_a_volatile_ledger_is_synced_on_request_only(tmp_path: Path) -> None:
    """1000 adds are acknowledged without any sync of the segment file; `sync` makes one."""
    count = 1_000
    found = events(tmp_path, "VD_JOURNAL", count)
    assert "synced" not in between(found, "add-0", "sync")
    assert "synced" in between(found, "sync", "end")
