"""Segment numbers: of kafka-journal's tables, and equal to a JVM's."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest
from support.entity.logged import append

from aerotape.codecs.entity import event_segment, head_segment
from aerotape.errors import ConfigurationError
from aerotape.spark.entities.rows import ACTIONS, rows_of

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
    assert of_java(IDS, SEGMENTS) == [[head_segment(id, count) for count in SEGMENTS] for id in IDS]


@pytest.mark.jvm
@pytest.mark.parametrize("context", ["{}", "A{}Σ", "AΣ{}A"])
def test_every_character_has_the_segment_of_a_jvm(context: str) -> None:
    """Each of Unicode's characters: alone, and where a sigma may be final before or after it.

    The planes of ideographs, of private use and those that are empty have neither case nor
    characters that words ignore: one in 97 of their characters is tried.
    """
    planes = (*range(0x20000), *range(0xE0000, 0xE1000), *range(0x20000, 0x110000, 97))
    ids = [context.format(chr(code)) for code in planes if not 0xD800 <= code < 0xE000]
    count = SEGMENTS[-1]
    theirs = [segment for (segment,) in of_java(ids, [count])]
    ours = [head_segment(id, count) for id in ids]
    assert [id for id, one, other in zip(ids, ours, theirs, strict=True) if one != other] == []
    if context == "{}":
        assert segments_of_rows(ids, count) == dict(zip(ids, theirs, strict=True))


@pytest.mark.jvm
def test_random_ids_have_the_segments_of_a_jvm(seeds: range) -> None:
    """Sigmas among letters, digits, punctuation, marks and characters that words ignore."""
    alphabet = "AbΣΣΣ\u03c3\u03c21.-_:'\" ,#$/%&@|Яİ𐐀😀\n"
    alphabet += "\u00ad\u0301\u0345\u0964\u200d\u2160\u3099\u30a2\u4e00"
    for seed in seeds:
        chance = random.Random(seed)
        ids = ["".join(chance.choices(alphabet, k=chance.randrange(1, 10))) for _ in range(9_999)]
        theirs = of_java(ids, SEGMENTS)
        assert theirs == [[head_segment(id, count) for count in SEGMENTS] for id in ids]
        last = [each[-1] for each in theirs]
        assert segments_of_rows(ids, SEGMENTS[-1]) == dict(zip(ids, last, strict=True))


def segments_of_rows(ids: Sequence[str], count: int) -> dict[str, int]:
    """Return the segments that the tables for Spark have."""
    appended = append("", 1)
    fields = {
        "partition": 0, "position": 0, "end_position": 64, "kind": 1, "fromSeqNr": 1, "toSeqNr": 1,
        "timestampMs": 0, "origin": b"", "writerVersion": b"", "metadata": b"",
        "payloadType": appended.payload_type.value, "sbe_payload": appended.payload,
    }  # fmt: skip
    keys = sorted({id.encode() for id in ids})
    rows = [{"entityId": key, **fields} for key in keys]
    heads, _, _ = rows_of(pyarrow.RecordBatch.from_pylist(rows, ACTIONS), "topic", count, 100)
    return dict(zip(heads["id"].to_pylist(), heads["segment"].to_pylist(), strict=True))


def of_java(ids: Sequence[str], segments: Sequence[int]) -> list[list[int]]:
    """Return the segments that a JVM computes, for each id and number of segments."""
    java = shutil.which("java")
    assert java is not None
    done = subprocess.run(
        [java, "-Duser.language=en", Path(__file__).parent / "Segments.java", *map(str, segments)],
        input="".join(f"{id.encode('utf-16-be').hex()}\n" for id in ids),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [[int(each) for each in line.split()] for line in done.stdout.splitlines()]
