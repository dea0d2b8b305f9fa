"""The long recordings of benchmarks are what readers expect."""

from __future__ import annotations

from pathlib import Path

from support.builders.long_recording import SEGMENT_LENGTH, TERM_LENGTH, write_recording

from aerotape.replay.offline.directory import open_directory


def test_a_written_recording_has_the_described_messages(tmp_path: Path) -> None:
    """Recordings of whole terms over several segments; payloads alternate and are counted per
    term."""
    payloads = [b"\0\0\0\0" + b"a" * 60_000, b"\0\0\0\0" + b"b" * 60_000]
    recording_id, messages = write_recording(tmp_path, payloads, SEGMENT_LENGTH + 1, "crc-32c")
    recording = open_directory(tmp_path).recording(recording_id)
    assert recording.recorded_position == SEGMENT_LENGTH + TERM_LENGTH
    table = recording.to_arrow(columns=["term_id", "payload"], checksum="crc-32c")
    assert table.num_rows == messages
    per_term = messages // 9
    for number, (term_id, payload) in enumerate(
        zip(*(table.column(i).to_pylist() for i in range(2)), strict=True)
    ):
        assert term_id == number // per_term
        assert int.from_bytes(payload[:4], "little") == number % per_term
        assert payload[4:5] == b"ab"[number % per_term % 2 :][:1]
