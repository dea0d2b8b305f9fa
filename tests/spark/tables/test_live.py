"""The Parquet job on directories of archives that are recording: ours and the Java one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon import archives
from support.daemon.live import Live
from support.daemon.recording import stop, wait_until

pytest.importorskip("deltalake")

from support.spark.table_rig import rows_of, run_here


def await_sent(live: Live, count: int) -> None:
    wait_until(lambda: len(live.made.sent) >= count, f"{count} messages", 30.0)


@pytest.mark.parametrize("kind", archives.KINDS)
def test_jobs_on_a_growing_recording_give_each_message_once(
    kind: archives.Kind, tmp_path: Path
) -> None:
    """While a publisher sends, each job adds what was recorded since, up to a whole message; in the
    end the table has all that was sent. A truncation of the recording is reported."""
    out = tmp_path / "out"
    with archives.serve(kind) as archive, archive.connect() as client:
        live = Live(client, 50, "aeron:ipc?term-length=65536")
        id = live.made.recording_id
        counts: list[int] = []
        with live.sending():
            while len(counts) < 6:
                await_sent(live, counts[-1] + 20 if counts else 0)
                [report] = run_here("delta", archive.archive_dir, out).recordings
                assert report.error is None
                payloads = [row["payload"] for row in rows_of("delta", out)]
                # A message may be recorded before its sender has noted it down.
                await_sent(live, len(payloads))
                assert payloads == [sent for sent, _, _ in live.made.sent[: len(payloads)]]
                counts.append(len(payloads))
        assert counts[-1] > counts[0]
        # An offer that found the term full has added padding after the last message.
        wait_until(
            lambda: client.recording_position(id) >= live.made.end, "the recording of it all"
        )
        stop(client, live.made)
        run_here("delta", archive.archive_dir, out)
        rows = [
            (row["payload"], row["end_position"], row["reserved_value"])
            for row in rows_of("delta", out)
        ]
        assert rows == live.made.sent

        rest = live.made.sent[:40]
        client.truncate_recording(id, rest[-1][1])
        [report] = run_here("delta", archive.archive_dir, out).recordings
        assert f"it ends at {rest[-1][1]}" in str(report.error)
        [report] = run_here("delta", archive.archive_dir, out, replace_changed=True).recordings
        assert (report.result, report.messages) == ("replaced", 40)
        assert [row["payload"] for row in rows_of("delta", out)] == [sent for sent, _, _ in rest]
