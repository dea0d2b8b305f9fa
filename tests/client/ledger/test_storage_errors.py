"""Errors of ledgers whose storage is gone, full, or not to be opened."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon.archives import serve
from support.daemon.daemon import AerotapeArchive

import aerotape
from aerotape import LedgerError
from aerotape.errors import LimitError


def test_a_directory_that_is_gone() -> None:
    """Every request for a ledger raises LedgerError with the path, also one for its state."""
    with serve("aerotape") as served, served.connect() as client:
        with client.create_ledger() as closed:
            closed.add(b"entry")
        writer = client.create_ledger("VD_JOURNAL")
        writer.add(b"entry")
        idle = client.declare_ledger()
        served.archive_dir.rename(gone := served.archive_dir.with_name("gone"))
        requests: list[Callable[[], object]] = [
            lambda: client.ledger_info(writer.qualified_id),
            lambda: list(client.open_ledger_read_only(closed.qualified_id).read()),
            lambda: client.open_ledger(writer.qualified_id),
            lambda: client.open_ledger_writer(idle),
            lambda: client.create_ledger(),
            lambda: client.delete_ledger(closed.qualified_id),
        ]
        for request in requests:
            with pytest.raises(LedgerError, match=str(served.archive_dir)) as caught:
                request()
            assert caught.value.ledger is not None
            assert "Traceback" not in str(caught.value)
        gone.rename(served.archive_dir)


def test_metadata_that_cannot_be_read() -> None:
    """Also a listing raises LedgerError."""
    with serve("aerotape") as served, served.connect() as client:
        client.declare_ledger()
        (served.archive_dir / "ledgers.sqlite").write_bytes(b"damaged" * 1_000)
        with pytest.raises(LedgerError, match="cannot read the ledgers' metadata"):
            list(client.list_ledgers())


def test_a_writer_that_the_archive_does_not_record() -> None:
    """The error says why, and names the ledger once."""
    properties = {"aeron.archive.max.concurrent.recordings": "1"}
    with serve("aerotape", properties) as served, served.connect() as client:
        writer = client.create_ledger()
        ledger = client.declare_ledger()
        with pytest.raises(LimitError, match="recordings reached at 1") as caught:
            client.open_ledger_writer(ledger)
        assert str(caught.value).count(str(ledger)) == 1
        writer.close()


def test_too_many_open_files(tmp_path: Path) -> None:
    """The archive uses its hard limit; the error of what fails has it, and others continue."""
    command = f"""ulimit -Sn 40; ulimit -Hn 60; exec {sys.executable} -m aerotape archive \\
        --dir {tmp_path}/archive --aeron-dir {tmp_path}/aeron \\
        -Daeron.archive.control.channel.enabled=false -Daeron.ipc.term.buffer.length=64k \\
        -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0 \\
        -Daeron.archive.segment.file.length=64k -Daeron.archive.max.concurrent.recordings=100"""
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert b"ready" in process.stdout.readline()
            limits = Path(f"/proc/{process.pid}/limits").read_text()
            assert re.search(r"Max open files +60 +60 ", limits)
            with aerotape.connect(aeron_dir=tmp_path / "aeron") as client:
                first = client.create_ledger()
                first.add(b"before")
                writers: list[aerotape.LedgerWriter] = []
                with pytest.raises(LedgerError, match=r"process may have 60; raise"):
                    while True:
                        writers.append(client.create_ledger("VD_JOURNAL"))
                        writers[-1].add(b"entry")
                assert first.add(b"after") == 1
        finally:
            process.terminate()


def test_no_file_can_be_opened(tmp_path: Path) -> None:
    """A sync cannot store what is forced and says so; one that ends then has all that it should.

    It succeeds when files can be opened again.
    """
    with (
        AerotapeArchive(tmp_path / "archive", tmp_path / "aeron").start() as archive,
        aerotape.connect(aeron_dir=tmp_path / "aeron") as client,
    ):
        synced, ended = (client.create_ledger("VD_JOURNAL") for _ in range(2))
        synced.add(b"entry")
        ended.add(b"entry")
        pid = archive.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, hard))
        with pytest.raises(LedgerError, match="Too many open files"):
            synced.sync()
        last = 0
        with pytest.raises(LedgerError, match="Too many open files"):
            while True:
                last = ended.add(bytes(1_000))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert synced.add(b"continues") == 1
        assert synced.sync() == 1
        confirmed = client.ledger_info(ended.qualified_id).last_add_confirmed
        assert confirmed is not None
        assert confirmed >= last > 0
        with client.open_ledger_read_only(ended.qualified_id) as reader:
            ids = [entry.entry_id for entry in reader.read()]
        assert ids[: last + 1] == list(range(last + 1))
