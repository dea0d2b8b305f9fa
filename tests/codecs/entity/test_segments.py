"""Segment numbers: of kafka-journal's tables, and equal to a JVM's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aerotape.codecs.entity import event_segment, head_segment
from aerotape.errors import ConfigurationError

IDS = (
    "",
    "a",
    "polygenelubricants",
    "POLYGENELUBRICANTS",
    "journal ID",
    "Ärger ÀÉ İ Σ ΌΔΟΣ ß ẞ Ǆ",
    "emoji 😀 𐐀",
    *(f"Order-{number:x}" for number in range(0, 1 << 20, 4099)),
)
SEGMENTS = (1, 7, 100, 10_000, 2_147_483_647)


@pytest.mark.parametrize(
    ("id", "segments", "expected"),
    [
        ("polygenelubricants", 10_000, 3648),
        ("journal ID", 10_000, 5668),
        ("JOURNAL id", 10_000, 5668),
        ("", 10_000, 0),
        ("a", 100, 97),
    ],
)
def test_head_segment(id: str, segments: int, expected: int) -> None:
    """The segment is the hash of the lower-cased id modulo the number of segments, not negative.

    The hash of the first one is -2^31, which has no positive counterpart in 32 bits.
    """
    assert head_segment(id, segments) == expected


@pytest.mark.parametrize(
    ("seq_nr", "segment_size", "expected"),
    [
        *((seq_nr, 5, 0) for seq_nr in (1, 2, 3)),
        *((seq_nr, 3, 0) for seq_nr in (1, 2, 3)),
        *((seq_nr, 3, 1) for seq_nr in (4, 5)),
        (10_000, 10_000, 0),
        (10_001, 10_000, 1),
        ((1 << 63) - 1, 2, (1 << 62) - 1),
    ],
)
def test_event_segment(seq_nr: int, segment_size: int, expected: int) -> None:
    """Events are numbered from 1, their segments from 0."""
    assert event_segment(seq_nr, segment_size) == expected


@pytest.mark.parametrize(("seq_nr", "segment_size"), [(0, 5), (-1, 5), (1, 1), (1, 0)])
def test_arguments_out_of_range(seq_nr: int, segment_size: int) -> None:
    """Sequence numbers begin at 1, and a segment has at least 2 events."""
    with pytest.raises(ConfigurationError):
        event_segment(seq_nr, segment_size)
    with pytest.raises(ConfigurationError):
        head_segment("id", 0)


@pytest.mark.jvm
def test_formulas_equal_those_of_a_jvm() -> None:
    """A JVM's String.toLowerCase, String.hashCode and Math.abs give the same segments."""
    java = shutil.which("java")
    assert java is not None
    program = Path(__file__).parent / "Segments.java"
    lines = [id.encode("utf-16-be").hex() for id in IDS]
    done = subprocess.run(
        [java, "-Duser.language=en", program, *map(str, SEGMENTS)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    theirs = [[int(each) for each in line.split()] for line in done.stdout.splitlines()]
    assert theirs == [[head_segment(id, segments) for segments in SEGMENTS] for id in IDS]
