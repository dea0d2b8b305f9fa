"""Requests to mirror a ledger whose leader cannot be reached."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import free_port

import aerotape
from aerotape import _native
from aerotape.archive.ledger.mirrors.replica import MirrorStep
from aerotape.codecs.generated import ledger_control
from aerotape.codecs.generated.archive import ControlResponseCode


@pytest.mark.parametrize("listens", [False, True], ids=["nothing there", "silent"])
def test_a_request_that_fails_leaves_nothing(tmp_path: Path, listens: bool) -> None:
    """Neither a ledger nor open files, whether the channel has a subscriber or not."""
    properties = {"aeron.archive.message.timeout": "500ms"}
    with AerotapeArchive(
        tmp_path / "archive", tmp_path / "aeron", properties=properties
    ) as archive:
        aeron = _native.AeronClient(str(archive.aeron_dir))
        source = f"aeron:udp?endpoint=localhost:{free_port()}"
        if listens:
            aeron.add_subscription(source, 10)
        raw = RawClient(aeron, "aeron:ipc", response_stream_id=77)
        raw.connect()
        folder = Path(f"/proc/{archive.process.pid}/fd")
        before = len(list(folder.iterdir()))
        requests = [
            raw.request(
                ledger_control.MirrorLedgerRequest,
                scope_id=0,
                ledger_id=ledger_id,
                created_ms=1,
                source_recording_id=0,
                source_stream_id=10,
                step=MirrorStep.FOLLOW,
                ledger_type=ledger_control.LedgerType.PD_JOURNAL,
                digest_type=ledger_control.DigestType.CRC32C,
                confirmed_position=-1,
                password_hash=b"",
                source_channel=source,
            )
            for ledger_id in range(10)
        ]
        for request in requests:
            answer = raw.response(request)
            assert answer.code is ControlResponseCode.ERROR
            assert "Archive connect timeout" in answer.error_message
        with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
            assert list(client.list_ledgers()) == []
        # One more is the ledgers' metadata.
        await_true(lambda: len(list(folder.iterdir())) <= before + 1)
        aeron.close()
