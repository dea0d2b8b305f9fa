"""Connections of a leader to its mirrors."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import free_port

import aerotape
from aerotape.errors import ArchiveError


def test_a_ledger_that_is_not_created_leaves_no_connections(tmp_path: Path) -> None:
    """The archive stops to look for the mirrors of a ledger, of which one does not respond."""
    properties = {
        "aeron.archive.connect.timeout": "1s",
        "aeron.archive.message.timeout": "500ms",
    }
    mirrors = [f"aeron:udp?endpoint=localhost:{free_port()}" for _ in range(4)]
    with (
        AerotapeArchive(
            tmp_path / "archive",
            tmp_path / "aeron",
            control_port=free_port(),
            properties=properties,
        ) as archive,
        aerotape.connect(
            aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
        ) as client,
    ):
        client.create_ledger(qualified_id=7).detach()
        folder = Path(f"/proc/{archive.process.pid}/fd")
        before = len(list(folder.iterdir()))
        with pytest.raises(ArchiveError, match="all of its archives have to respond"):
            client.create_ledger(qualified_id=8, write_quorum=5, ack_quorum=3, mirrors=mirrors)
        await_true(lambda: len(list(folder.iterdir())) <= before, 15)
