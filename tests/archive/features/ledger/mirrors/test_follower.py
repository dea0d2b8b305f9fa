"""Requests to mirror a ledger whose leader cannot be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import free_port

import aerotape
from aerotape import _native
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.mirrors.follower import Followers
from aerotape.archive.features.ledger.protocol.member_record import (
    Epoch,
    MemberRecord,
    MemberState,
    MirrorStep,
)
from aerotape.codecs.generated import ledger_control
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.errors import LedgerError
from aerotape.waiting import Task, run


@pytest.mark.parametrize("listens", [False, True], ids=["nothing there", "silent"])
def test_a_request_that_fails_leaves_nothing(tmp_path: Path, listens: bool) -> None:
    """Neither a ledger nor open files, whether the channel has a subscriber or not."""
    properties = {
        "aeron.archive.connect.timeout": "1s",
        "aeron.archive.message.timeout": "500ms",
        "aeron.publication.linger.timeout": "100ms",
    }
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


def test_nothing_confirmed_is_truncated() -> None:
    """A log that parts from this archive's before its LAC is refused, and nothing is truncated."""
    truncated: list[int] = []
    logged: list[str] = []

    def await_durable_end(metadata: LedgerMetadata) -> Task[Any]:
        yield from ()
        return SimpleNamespace(
            descriptor=SimpleNamespace(stop_position=150), confirmed_end=lambda end: 120
        )

    def call(function: Callable[[], int]) -> Task[int]:
        yield from ()
        return function()

    def truncate(metadata: LedgerMetadata, position: int) -> Task[None]:
        yield from ()
        truncated.append(position)

    followers = Followers(
        cast(Any, None),
        None,
        cast(Any, SimpleNamespace(call=call)),
        cast(Any, SimpleNamespace(record=lambda what, error: logged.append(str(error)))),
    )
    first, second = (1, "a"), (2, "b")
    log = SimpleNamespace(await_durable_end=await_durable_end, truncate=truncate)
    ledger = cast(Any, SimpleNamespace(id=aerotape.QualifiedId(0, 7), log=log))
    metadata = LedgerMetadata(
        ledger.id, recording_id=3, member_record=MemberRecord(history=((first, 0),))
    )

    def cut(history: tuple[tuple[Epoch, int], ...], end: int) -> None:
        run(followers._cut(ledger, metadata, MemberState(MemberRecord(history=history), end)))

    for history, end in ((((first, 0), (second, 119)), 200), (((first, 0),), 60), ((), 100)):
        with pytest.raises(LedgerError, match="its leader has lost entries"):
            cut(history, end)
    assert not truncated
    assert len(logged) == 3
    cut(((first, 0), (second, 130)), 200)
    cut((), 200)
    cut(((first, 0),), 150)
    assert truncated == [130, 120]
