"""Connections of a leader to its mirrors, and how this archive comes to be one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.ledger.bare import bare_ledger
from support.processes import free_port

import aerotape
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.mirrors.leader import Leader
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.codecs.generated.ledger_control import LedgerState
from aerotape.errors import ArchiveError, LedgerClosedError
from aerotape.waiting import Task, run


def test_a_ledger_that_is_not_created_leaves_no_connections(tmp_path: Path) -> None:
    """The archive stops to look for the mirrors of a ledger, of which one does not respond."""
    properties = {
        "aeron.archive.connect.timeout": "1s",
        "aeron.archive.message.timeout": "500ms",
        "aeron.publication.linger.timeout": "100ms",  # that long has it open files
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


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_ledger_that_was_closed_meanwhile_is_not_opened(is_lost: bool) -> None:
    """An election finds that another archive has closed it: then no mirror is replaced."""
    ledger = bare_ledger(aerotape.QualifiedId(0, 7))
    record = MemberRecord(own="a", groups=(("a", "b", "c"),))
    known = LedgerMetadata(ledger.id, member_record=record)
    found = replace(known, state=LedgerState.CLOSED)
    ledger.log.end = lambda metadata: 100  # type: ignore[method-assign]
    leading = SimpleNamespace(
        metadata=found, connect=lambda *_, **__: None, end=lambda position: None
    )

    def lead(*_: Any, **__: Any) -> Task[tuple[Any, frozenset[str]]]:
        yield from ()
        return leading, frozenset("b")

    leader = Leader(
        worker=cast(Any, None),
        followers=cast(Any, None),
        opening=cast(Any, None),
        config=cast(Any, SimpleNamespace(
            connect_timeout_ns=1, control_stream_id=10, control_channel_enabled=False
        )),
        archive_id=1,
        errors=cast(Any, None),
    )
    leader._elections.lead = lead  # type: ignore[method-assign]
    with pytest.raises(LedgerClosedError, match="is closed"):
        run(leader.replace(ledger, known, "b", "d", is_lost=is_lost))
