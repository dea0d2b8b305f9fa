"""Aeron's own replay merge and persistent subscription, on the Java archive and on ours."""

from __future__ import annotations

import pytest
from support.daemon.archives import KINDS, Kind, serve
from support.daemon.live import Live
from support.jvm.java import java_command
from support.model.messages import digest
from support.processes import ChildProcess

pytestmark = pytest.mark.jvm

_AFTER_JOINING = 1000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["merge", "persistent"])
def test_java_joins_the_live_stream(kind: Kind, mode: str) -> None:
    """The client joins the live stream and receives each message complete, once and in order."""
    with serve(kind) as archive, archive.connect() as client:
        live = Live(client, 100)
        made = live.made
        arguments = [
            mode, str(archive.aeron_dir), archive.control_channel, str(made.recording_id),
            str(made.stream_id), str(made.session_id), live.subscriber_channel, str(_AFTER_JOINING),
        ]  # fmt: skip
        process = ChildProcess(java_command("harness.ReadOn", *arguments))
        try:
            with live.sending():
                joined = process.receive(60)
                answer = process.receive(60)
        finally:
            process.stop()
    assert joined.startswith("JOINED ")
    count = int(joined.split()[1]) + _AFTER_JOINING
    assert count > _AFTER_JOINING
    payloads = [payload for payload, _, _ in made.sent[:count]]
    assert len(payloads) == count
    assert answer == f"DIGEST {digest(payloads)}"
