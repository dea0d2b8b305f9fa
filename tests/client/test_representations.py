"""The `repr` of an archive, its clients and their streams."""

from __future__ import annotations

from pathlib import Path

from support.daemon.archives import EMBEDDED_DRIVER
from support.daemon.live import Live
from support.daemon.recording import recorded

import aerotape

PROPERTIES = {
    **EMBEDDED_DRIVER,
    "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
}


def test_objects_show_their_state(tmp_path: Path, aeron_dir: Path) -> None:
    """Each shows its class, its identity, and whether it is closed."""
    opened: list[tuple[object, str]] = []
    with aerotape.Archive.launch(tmp_path / "a", aeron_dir, properties=PROPERTIES) as archive:
        opened.append((archive, f"archive_id={archive.archive_id}"))
        with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
            opened.append((client, f"control_session_id={client.control_session_id}"))
            opened.append((client.aeron, f"aeron_dir={str(aeron_dir)!r}"))
            made = recorded(client, 5)
            live = Live(client, 5)
            with (
                client.aeron.add_publication("aeron:ipc", 7) as publication,
                client.aeron.add_exclusive_publication("aeron:ipc", 8) as exclusive,
                client.aeron.add_subscription("aeron:ipc", 9) as subscription,
                client.replay(made.recording_id) as replay,
                client.signals(aerotape.RecordingSignal.STOP) as signals,
                client.persistent_subscription(made.recording_id, "aeron:ipc") as persistent,
                client.replay_merge(live.made.recording_id, live.subscriber_channel) as merge,
            ):
                opened += [
                    (publication, "channel='aeron:ipc' stream_id=7 session_id="),
                    (exclusive, "channel='aeron:ipc' stream_id=8 session_id="),
                    (subscription, "channel='aeron:ipc' stream_id=9"),
                    (replay, f"recording_id={made.recording_id}"),
                    (signals, "STOP"),
                    (persistent, f"recording_id={made.recording_id} live_channel='aeron:ipc'"),
                    (merge, f"recording_id={live.made.recording_id}"),
                ]
                for thing, about in opened:
                    shown = repr(thing)
                    assert shown.startswith(f"<{type(thing).__name__} "), shown
                    assert about in shown
                    assert "closed" not in shown.lower()
    for thing, about in opened:
        shown = repr(thing)
        assert shown.startswith(f"<{type(thing).__name__} "), shown
        assert about in shown
        assert "closed" in shown.lower()
