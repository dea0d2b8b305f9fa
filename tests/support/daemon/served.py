"""Archives on directories that may be damaged, and the replays of their clients."""

from __future__ import annotations

from pathlib import Path

import aerotape
from aerotape.errors import AerotapeError
from support.damage.damaged_directory import HIDDEN, BuiltDirectory, first_damage
from support.damage.damages import Hit
from support.jvm import java

_PROPERTIES = {
    **java.FAST_ARCHIVE,
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.driver.timeout": "60000",
}


def launch(
    directory: Path, aeron_dir: Path, properties: dict[str, str] | None = None
) -> aerotape.Archive:
    """Start an archive on the media driver in `aeron_dir` (AerotapeError when it is refused)."""
    settings = _PROPERTIES | (properties or {})
    return aerotape.Archive.launch(directory, aeron_dir, "external", settings)


def connect(aeron_dir: Path) -> aerotape.ArchiveClient:
    """Connect to the archive on that driver."""
    return aerotape.connect(
        aeron_dir=aeron_dir,
        control_request_channel="aeron:ipc",
        control_response_channel="aeron:ipc",
        timeout_ns=60_000_000_000,
    )


def try_start(directory: Path, aeron_dir: Path) -> str:
    """Start an archive and stop it; return the error in one line, or an empty text."""
    try:
        launch(directory, aeron_dir).close()
    except AerotapeError as error:
        message = str(error)
        assert len(message.splitlines()) == 1, message
        assert str(directory) in message
        return message
    return ""


def check_served(
    client: aerotape.ArchiveClient, built: BuiltDirectory, source: Path, hit: Hit
) -> None:
    """Replays of undamaged recordings are complete; others end at the damage.

    Args:
        client: of the archive that was started on the damaged directory.
        built: the directory as it was.
        source: a copy of the damaged one, as the archive found it.
        hit: the damaged parts.
    """
    if hit.no_catalog:
        assert list(client.list_recordings()) == []
        return
    for number, original in built.originals.items():
        if number == HIDDEN or number in hit.entries:
            continue
        served, failure = replay(client, number)
        # By default replays do not verify checksums.
        first, provable = first_damage(original, source, is_summed=False)
        if first is None and (number not in hit.recordings or not original.live):
            assert (served, failure) == (original.messages, ""), f"{number}: {failure}"
            continue
        if original.live and client.stop_position(number) == -1:
            assert "no stop position" in failure or "cannot be" in failure, failure
            continue
        expected = original.messages if first is None else original.messages_before(first)
        assert served[: len(expected)] == expected
        if provable is None or original.live:
            continue
        assert all(position < provable for position, _ in served)
        assert failure


def replay(
    client: aerotape.ArchiveClient, recording_id: int
) -> tuple[list[tuple[int, bytes]], str]:
    """Replay a recording to its end, or to the error that ends it."""
    served = []
    try:
        with client.replay(recording_id) as messages:
            for message in messages:
                served.append((message.position, bytes(message.payload)))
    except AerotapeError as error:
        return served, str(error)
    return served, ""
