"""The catalog file compared with one that Aeron's own Catalog wrote with the same inputs."""

from __future__ import annotations

import random
import string
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.jvm import java

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.frame_header import ChecksumName

pytestmark = pytest.mark.jvm

SOURCE = Path(__file__).parent / "java" / "GoldenCatalog.java"
CLASSES = {
    "none": "none",
    "crc-32": "io.aeron.archive.checksum.Crc32",
    "crc-32c": "io.aeron.archive.checksum.Crc32c",
}
Golden = Callable[[Path, int, ChecksumName, list[list[object]]], None]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """A function that runs Aeron's Catalog on a directory with a script."""
    classes = tmp_path_factory.mktemp("classes")
    jar = java.find_jar(java.AERON_ALL)
    subprocess.run(
        ["javac", "-nowarn", "-cp", str(jar), "-d", str(classes), str(SOURCE)], check=True
    )

    def write(
        directory: Path, capacity: int, checksum: ChecksumName, script: list[list[object]]
    ) -> None:
        lines = directory.parent / f"{directory.name}.script"
        lines.write_text("\n".join("\t".join(map(str, line)) for line in script))
        subprocess.run(
            [
                "java",
                *java.JAVA_OPENS,
                "-cp",
                f"{jar}:{classes}",
                "io.aeron.archive.GoldenCatalog",
                str(directory),
                str(capacity),
                CLASSES[checksum],
                str(lines),
            ],
            check=True,
        )

    return write


def apply(catalog: Catalog, script: list[list[object]]) -> None:
    """Apply the script to our catalog."""
    names = (
        "start_position",
        "start_timestamp_ms",
        "initial_term_id",
        "segment_file_length",
        "term_buffer_length",
        "mtu_length",
        "session_id",
        "stream_id",
        "stripped_channel",
        "original_channel",
        "source_identity",
    )
    for verb, *values in script:
        if verb == "add":
            catalog.add_recording(**dict(zip(names, values, strict=True)))  # type: ignore[arg-type]
        elif verb == "stop":
            catalog.recording_stopped(*values)  # type: ignore[arg-type]
        elif verb == "start":
            catalog.set_start_position(*values)  # type: ignore[arg-type]
        elif verb == "state":
            catalog.change_state(int(str(values[0])), RecordingState[str(values[1])])
        else:
            recording_id, control_session_id, correlation_id, session_id = map(
                lambda value: int(str(value)), values
            )
            catalog.extend_recording(
                recording_id,
                control_session_id=control_session_id,
                correlation_id=correlation_id,
                session_id=session_id,
            )


def random_script(seed: int, recordings: int) -> list[list[object]]:
    """Adds with channels of all lengths, stops, extensions, moved starts and deletions."""
    rng = random.Random(seed)
    script: list[list[object]] = []
    for recording_id in range(recordings):
        text = ["".join(rng.choices(string.ascii_letters, k=rng.randrange(200))) for _ in "abc"]
        ids = [rng.randrange(-(1 << 31), 1 << 31) for _ in range(3)]
        start, now = rng.randrange(1 << 40), rng.randrange(1 << 42)
        lengths = [1 << 27, 1 << 16, 1408]
        script.append(["add", start, now, ids[0], *lengths, ids[1], ids[2], *text])
        if rng.random() < 0.7:
            script.append(["stop", recording_id, rng.randrange(1 << 62), rng.randrange(1 << 42)])
        if rng.random() < 0.2:
            script.append(["extend", recording_id, 77, rng.randrange(1 << 62), -5])
        if rng.random() < 0.2:
            script.append(["start", recording_id, rng.randrange(1 << 50)])
        if rng.random() < 0.1:
            script.append(["state", recording_id, "DELETED"])
    return script


@pytest.mark.parametrize("checksum", ["none", "crc-32", "crc-32c"])
@pytest.mark.parametrize("capacity", [32, 1 << 20])
def test_equal_inputs_produce_equal_bytes(
    tmp_path: Path, golden: Golden, checksum: ChecksumName, capacity: int
) -> None:
    """Header, entries, checksums, growth and length are equal to those of Aeron's Catalog."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    # Recordings that stay active would be repaired by a refresh on opening: both are new.
    script = random_script(seed=capacity, recordings=60)
    golden(theirs, capacity, checksum, script)
    with Catalog.open(ours, create=True, capacity_bytes=capacity, checksum=checksum) as catalog:
        apply(catalog, script)
    ours_bytes = (ours / layout.CATALOG_FILE_NAME).read_bytes()
    assert ours_bytes == (theirs / layout.CATALOG_FILE_NAME).read_bytes()
    assert len(ours_bytes) > 60 * 128


def test_a_java_catalog_can_be_opened_and_extended(tmp_path: Path, golden: Golden) -> None:
    """A catalog that Aeron wrote can be read, searched and added to."""
    theirs, both = tmp_path / "theirs", tmp_path / "both"
    theirs.mkdir()
    both.mkdir()
    script = random_script(seed=5, recordings=20)
    stopped = [line for line in script if line[0] == "add"]
    stopped += [["stop", recording_id, 1 << 50, 99] for recording_id in range(20)]
    golden(theirs, 4096, "none", stopped)
    with Catalog.open(theirs, capacity_bytes=4096) as catalog:
        assert list(catalog.recording_ids()) == list(range(20))
        for recording_id, line in enumerate(stopped[:20]):
            descriptor = catalog.descriptor(recording_id)
            assert descriptor.start_position == line[1]
            assert (descriptor.session_id, descriptor.stream_id) == (line[7], line[8])
            assert descriptor.original_channel == line[10]
            assert (descriptor.stop_position, descriptor.stop_timestamp_ms) == (1 << 50, 99)
        assert catalog.next_recording_id == 20
        apply(catalog, [stopped[0]])
    golden(both, 4096, "none", [*stopped, stopped[0]])
    name = layout.CATALOG_FILE_NAME
    assert (theirs / name).read_bytes() == (both / name).read_bytes()


def test_java_can_open_and_extend_our_catalog(tmp_path: Path, golden: Golden) -> None:
    """Aeron's Catalog opens our catalog for writing and adds to it."""
    ours, both = tmp_path / "ours", tmp_path / "both"
    ours.mkdir()
    both.mkdir()
    script = [line for line in random_script(seed=6, recordings=15) if line[0] == "add"]
    script += [["stop", recording_id, 1 << 51, 98] for recording_id in range(15)]
    with Catalog.open(ours, create=True, capacity_bytes=4096) as catalog:
        apply(catalog, script)
    golden(ours, 4096, "none", [script[3]])
    with Catalog.open(both, create=True, capacity_bytes=4096) as catalog:
        apply(catalog, [*script, script[3]])
    name = layout.CATALOG_FILE_NAME
    assert (ours / name).read_bytes() == (both / name).read_bytes()
