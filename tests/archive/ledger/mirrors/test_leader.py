"""Connections of a leader to its mirrors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import free_port

import aerotape
from aerotape.archive.ledger.metadata import LedgerMetadata
from aerotape.archive.ledger.mirrors.leader import Leader
from aerotape.archive.waiting import Pause, Task
from aerotape.errors import ArchiveError


def test_a_writer_without_a_quorum_leaves_no_connections(tmp_path: Path) -> None:
    """The archive stops to look for the mirrors of a ledger whose writer is refused."""
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
        with pytest.raises(ArchiveError, match="has no ack quorum of 3 archives"):
            client.create_ledger(qualified_id=8, write_quorum=5, ack_quorum=3, mirrors=mirrors)
        await_true(lambda: len(list(folder.iterdir())) <= before, 15)


def test_a_lookup_keeps_the_connections_of_a_writer_that_begins_meanwhile() -> None:
    """Its links are those of the writer, which waits for them."""
    opened: list[str] = []

    def call(function: object) -> Task[int]:
        yield Pause()  # in another thread
        return 0

    def await_known(metadata: LedgerMetadata) -> Task[None]:
        yield from ()

    def fail(channel: str) -> Any:
        opened.append(channel)
        raise ArchiveError("no mirror")

    leader = Leader(
        recordings=cast(
            Any,
            SimpleNamespace(
                await_known=await_known,
                session=lambda recording_id: None,
                recording=lambda metadata: SimpleNamespace(
                    descriptor=SimpleNamespace(stop_position=64)
                ),
            ),
        ),
        worker=cast(Any, SimpleNamespace(call=call)),
        opening=fail,
        config=cast(
            Any,
            SimpleNamespace(
                control_channel="aeron:udp?endpoint=localhost:1",
                control_channel_enabled=True,
                control_stream_id=10,
                connect_timeout_ns=10**10,
            ),
        ),
        errors=cast(Any, SimpleNamespace(record=lambda *args: None)),
    )
    metadata = LedgerMetadata(
        aerotape.QualifiedId(0, 7),
        recording_id=3,
        write_quorum=2,
        ack_quorum=2,
        mirrors=("mirror",),
    )
    lookup = leader.find_confirmed(metadata)
    next(lookup)
    writer = SimpleNamespace(metadata=metadata, stop_position=None, failure="")
    next(leader.start(cast(Any, writer)))
    leader.do_work()
    next(lookup)
    leader.do_work()
    assert opened == ["mirror"]
