"""Assertions for a damaged directory: the messages that readers serve, and the reported errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aerotape.errors import AerotapeError, SegmentError
from aerotape.replay.offline.directory import Recording, open_directory
from support.damage.damaged_directory import HIDDEN, BuiltDirectory, Original, first_damage
from support.damage.damages import Hit


@dataclass(frozen=True)
class Served:
    """The messages that a reader returned of a recording, and the error that ended it, if any."""

    messages: list[tuple[int, bytes]]
    error: AerotapeError | None


def read(recording: Recording, checksum: str = "none") -> Served:
    """Read a recording to its end or to an error, which must be one of this package."""
    messages: list[tuple[int, bytes]] = []
    try:
        for message in recording.messages(checksum=checksum):  # type: ignore[arg-type]
            messages.append((message.position, bytes(message.payload)))
    except AerotapeError as error:
        return Served(messages, error)
    return Served(messages, None)


def recordings(directory: Path) -> dict[int, Recording]:
    """Return the recordings of a directory by id, including those that are not valid."""
    opened = open_directory(directory)
    return {each.recording_id: each for each in opened.recordings_of(opened.entries())}


def check_untouched(built: BuiltDirectory, directory: Path, hit: Hit) -> None:
    """Check that undamaged recordings are valid and served whole, byte by byte."""
    if hit.no_catalog:
        return
    found = recordings(directory)
    for original in built.originals.values():
        number = original.recording_id
        if number in hit.recordings or (number == HIDDEN and number not in found):
            continue
        assert not found[number].damage
        assert number == HIDDEN or found[number].entry.state == 1, f"{number} is hidden"
        served = read(found[number])
        assert served.error is None
        assert served.messages == original.messages, f"recording {number} is not whole"


def check_damaged(built: BuiltDirectory, directory: Path, hit: Hit) -> None:
    """Check that damaged recordings are served up to the damage, which is then reported."""
    if hit.no_catalog:
        return
    found = recordings(directory)
    for number in hit.recordings - hit.entries:
        check_prefix(built.originals[number], found[number], directory)


def check_prefix(original: Original, recording: Recording, directory: Path) -> None:
    """Check that a recording with an undamaged entry is read up to the damage in its segment
    files."""
    first, provable = first_damage(original, directory)
    served = read(recording, original.checksum)
    if first is None:
        assert (served.error, served.messages) == (None, original.messages)
        return
    expected = original.messages_before(first)
    assert served.messages[: len(expected)] == expected
    if provable is None:
        return
    # No message after it, because its continuation is unknown.
    assert all(position < provable for position, _ in served.messages)
    if original.live and served.error is None:
        # Its end is found by reading: preceding the damage, if that is in the last segment.
        assert recording.recorded_position <= provable
        return
    assert served.error is not None, "the damage was passed over"
    assert f"recording {original.recording_id}" in str(served.error)
    assert isinstance(served.error, SegmentError)
    base = original.stream.segment_base(provable)
    assert Path(served.error.path).name == f"{original.recording_id}-{base}.rec"
    assert (served.error.position, served.error.offset) == (provable, provable - base)
