"""Replication from archives with an authenticator, and between archives with checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.replication import NULL, Pair, Side, shown
from support.jvm.java import JavaClient

pytestmark = pytest.mark.jvm

IPC = "aeron:ipc?term-length=64k"
CONNECTION_FAILURE = 14
SUPPLIER = "aeron.archive.authenticator.supplier"
GUARDS = {"aerotape": "support.daemon.authenticator:Guard", "java": "harness.Guard"}
CHECKSUM = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}


@pytest.fixture(scope="module", params=KINDS)
def guarded(
    request: pytest.FixtureRequest, destination: Side, run_archive: Callable[..., Any]
) -> Iterator[Pair]:
    """Each archive as a source with an authenticator, for each destination."""
    with ExitStack() as stack:
        archive = stack.enter_context(run_archive(request.param, {SUPPLIER: GUARDS[request.param]}))
        client = stack.enter_context(JavaClient(archive.aeron_dir))
        client.connect(archive.control_channel, credentials="open:alice")
        yield Pair(destination, Side(request.param, archive, client))


def test_credentials_are_passed_to_the_source(guarded: Pair) -> None:
    """The source accepts the credentials of the request."""
    stream = guarded.source.stopped(IPC, 3001)
    guarded.replicate(stream.recording_id, encodedCredentials="open:bob")
    recording_id = guarded.await_signals("STOP")[0]["recordingId"]
    guarded.assert_same(stream.recording_id, recording_id)


@pytest.mark.parametrize(
    "params, reason",
    [
        ({}, "rejected"),
        ({"encodedCredentials": "burglar"}, "rejected"),
        ({"encodedCredentials": "ask:bob"}, "challenge"),
    ],
)
def test_rejected_credentials(guarded: Pair, params: dict[str, Any], reason: str) -> None:
    """Wrong or no credentials are refused, and a challenge, to which a replication cannot
    respond."""
    guarded.replicate(0, **params)
    signals = guarded.await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", CONNECTION_FAILURE), ("REPLICATE_END", NULL)]
    assert reason in str(signals[0]["error"])


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("to", KINDS)
def test_checksums(run_archive: Callable[..., Any], to: str, of: str) -> None:
    """Checksums replace session ids in the files; they are removed for the replay."""
    with ExitStack() as stack:
        sides = []
        for kind in (to, of):
            archive = stack.enter_context(run_archive(kind, CHECKSUM))
            client = stack.enter_context(JavaClient(archive.aeron_dir))
            client.connect(archive.control_channel)
            sides.append(Side(kind, archive, client))
        pair = Pair(*sides)
        stream = pair.source.stopped(IPC, 3002)
        pair.replicate(stream.recording_id)
        recording_id = pair.await_signals("STOP")[0]["recordingId"]
        segments = pair.destination.segments(recording_id)
        assert segments == pair.source.segments(stream.recording_id)
        session_id = stream.publication["sessionId"] & 0xFFFF_FFFF
        assert int.from_bytes(segments[0][12:16], "little") != session_id
