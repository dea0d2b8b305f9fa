"""The last frame of a recording across a page boundary: our decision beside ArchiveTool's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry
from support.builders.mark_files import leave
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import tool
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.frame_header import ChecksumName

TERM_LENGTH = 65_536
MIB = 1 << 20
PAGE = 4096
FRAME = 1408


def frames_up_to(stream: SegmentBuilder, position: int) -> None:
    """Append frames of 1408 bytes for as long as they end before a position."""
    while stream.position + FRAME < position:
        stream.frame(b"a" * (FRAME - 32))


def padding(stream: SegmentBuilder) -> int:
    """Padding of several pages to the end of the term."""
    frames_up_to(stream, TERM_LENGTH - 2 * PAGE)
    begin = stream.position
    stream.pad_term()
    return begin


def data_at_the_end_of_a_term(stream: SegmentBuilder) -> int:
    frames_up_to(stream, TERM_LENGTH - 2 * PAGE)
    begin = TERM_LENGTH - PAGE - 1024
    stream.frame(b"b" * (begin - stream.position - 32))
    stream.frame(b"c" * (TERM_LENGTH - begin - 32))
    return begin


def zeros_after_the_boundary(stream: SegmentBuilder) -> int:
    frames_up_to(stream, PAGE)
    begin = stream.position
    stream.frame(b"z" * (PAGE - begin - 32) + bytes(FRAME + begin - PAGE))
    return begin


def a_sector_of_zeros(stream: SegmentBuilder) -> int:
    stream.frame(b"a" * (PAGE - 1024 - 32))
    stream.frame(b"b" * (1024 - 32) + bytes(512) + b"c" * 512)
    return PAGE - 1024


def zeros_in_the_second_mebibyte(stream: SegmentBuilder) -> int:
    """No sector is empty, but ArchiveTool has read from an offset that is not a page's."""
    while stream.position <= MIB:
        stream.frame(b"a" * (FRAME - 32))
    shift = stream.position % PAGE
    while not shift + 32 <= (stream.position + FRAME) % PAGE <= 512:
        stream.frame(b"a" * (FRAME - 32))
    begin = stream.position
    data = (begin // PAGE + 1) * PAGE + shift - begin - 32
    stream.frame(b"d" * data + bytes(FRAME - 32 - data))
    return begin


WHOLE, TORN = True, False


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("checksum", "write", "theirs", "ours"),
    [
        ("none", data_at_the_end_of_a_term, WHOLE, WHOLE),
        ("crc-32", data_at_the_end_of_a_term, WHOLE, WHOLE),
        ("none", zeros_after_the_boundary, TORN, TORN),
        ("crc-32", zeros_after_the_boundary, WHOLE, WHOLE),
        ("none", a_sector_of_zeros, WHOLE, TORN),
        ("crc-32", a_sector_of_zeros, WHOLE, WHOLE),
        # Cases in which ArchiveTool takes a whole frame for a torn one.
        ("none", padding, TORN, WHOLE),
        ("crc-32", padding, TORN, WHOLE),
        ("none", zeros_in_the_second_mebibyte, TORN, WHOLE),
    ],
)
def test_a_last_frame_across_a_page_boundary(
    tmp_path: Path,
    checksum: ChecksumName,
    write: Callable[[SegmentBuilder], int],
    theirs: bool,
    ours: bool,
) -> None:
    """Of intact files: what a start here and ArchiveTool take for the recording's end."""
    length = 2 * MIB if write is zeros_in_the_second_mebibyte else TERM_LENGTH
    stream = SegmentBuilder(
        term_length=length,
        segment_length=length,
        mtu_length=2 * PAGE,
        checksum=crc32 if checksum == "crc-32" else None,
    )
    begin = write(stream)
    directory = tmp_path / "ours"
    directory.mkdir()
    stream.write(directory)
    with Catalog.open(directory, create=True, checksum=checksum) as catalog:
        add_entry(catalog, stream)
    leave(directory)
    copy = shutil.copytree(directory, tmp_path / "theirs")
    arguments = [] if checksum == "none" else ["-checksum", "io.aeron.archive.checksum.Crc32"]
    archive_tool(copy, "verify", *arguments, answers="y\n")
    with Catalog.open(copy, read_only=True) as catalog:
        assert catalog.stop_position(0) == (stream.position if theirs else begin)
    with Catalog.open(directory, checksum=checksum) as catalog:
        [outcome] = refresh(catalog, directory, checksum=checksum, now_ms=1)
    assert outcome.stop_position == (stream.position if ours else begin)


@pytest.mark.jvm
def test_archive_tool_removes_padding_that_a_stop_position_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ArchiveTool asks, and with "y" lowers the stop position by that frame; `verify` does not."""
    stream = SegmentBuilder(segment_length=2 * TERM_LENGTH)
    begin = padding(stream)
    directory = tmp_path / "ours"
    directory.mkdir()
    stream.write(directory)
    with Catalog.open(directory, create=True) as catalog:
        add_entry(catalog, stream, stop_position=TERM_LENGTH, stop_timestamp_ms=2)
    leave(directory)
    copy = shutil.copytree(directory, tmp_path / "theirs")
    done = archive_tool(copy, "verify", answers="y\n")
    assert "straddles a page boundary" in done.stdout
    with Catalog.open(copy, read_only=True) as catalog:
        assert catalog.stop_position(0) == begin
    tool(directory, "verify", "0")
    with Catalog.open(directory, read_only=True) as catalog:
        assert catalog.stop_position(0) == TERM_LENGTH
