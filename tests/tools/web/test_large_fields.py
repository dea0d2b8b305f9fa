"""Fields that are much longer than the payloads that they are decoded from."""

from __future__ import annotations

import io
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet
import pytest
from support.builders import built_archive
from support.builders.sbe_text import schema_text
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.web import MAX_BYTES, WebService, peak_bytes

MAX_ANSWER = 2 << 20
CONSTANTS = "".join(
    f'<field name="constant{number}" id="{number}" type="Constant"/>' for number in range(2, 7)
)
SCHEMA = schema_text(
    'package="constants" id="9" version="0"',
    types='<type name="Constant" primitiveType="char" length="60" presence="constant">'
    f"{'x' * 60}</type>",
    messages='<sbe:message name="Levels" id="1"><field name="number" id="1" type="uint32"/>'
    f'<group name="levels" id="9" dimensionType="groupSizeEncoding">{CONSTANTS}</group>'
    "</sbe:message>",
)

NAME = "n" * 150
WIDE = schema_text(
    'package="wide" id="9" version="0"',
    types="",
    messages='<sbe:message name="Levels" id="1"><field name="number" id="1" type="uint32"/>'
    '<group name="levels" id="9" dimensionType="groupSizeEncoding">'
    f'<field name="{NAME}" id="2" type="uint8"/></group></sbe:message>',
)


def payload(length: int) -> bytes:
    """Return a message with as many group entries as it has bytes, which are not in them."""
    header = struct.pack("<4HI2H", 4, 1, 9, 0, 7, 0, length - 16)
    return header.ljust(length, b"\0")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A schema, and a directory with recordings of short, long and too long messages of it."""
    folder = tmp_path_factory.mktemp("constants")
    (folder / "constants.xml").write_text(SCHEMA)
    for number, length in enumerate((200, 4_000, 60_000)):
        builder = SegmentBuilder(recording_id=number, term_length=1 << 23, segment_length=1 << 23)
        for _ in range(50):
            builder.message(payload(length))
        built_archive.add_recording(folder, builder)
    large = SegmentBuilder(recording_id=3, term_length=1 << 25, segment_length=1 << 25)
    large.message(bytes(3 << 20))
    built_archive.add_recording(folder, large)
    return folder, folder / "constants.xml"


def test_fields_on_a_page_are_shortened(own: CommandLine, archive: tuple[Path, Path]) -> None:
    """Each page is as long as an answer may be; so is what the service needs for several."""
    directory, schema = archive
    with WebService(own, directory, "--schema", schema) as web:
        with ThreadPoolExecutor(3) as threads:
            for page in threads.map(web.get, (f"/recordings/{number}" for number in range(3))):
                assert page.status == 200
                assert len(page.body) < MAX_ANSWER
        shown = web.get("/recordings/0").text
        assert shown.count("<tr data-position") == 50
        assert "&#34;Levels&#34;: {&#34;number&#34;: 7" in shown and "…</div>" in shown
        assert peak_bytes(web.process.pid) < MAX_BYTES


def test_fields_that_are_too_long_are_null(own: CommandLine, archive: tuple[Path, Path]) -> None:
    directory, schema = archive
    with WebService(own, directory, "--schema", schema) as web:
        query = "messages?schema=constants&limit=1"
        short = web.get(f"/api/v1/recordings/0/{query}").json[0]
        assert len(short["fields"]["Levels"]["levels"]) == 184
        for number in (1, 2):
            [row] = web.get(f"/api/v1/recordings/{number}/{query}").json
            assert (row["fields"], row["is_whole"]) == (None, True)
            assert "more than 393216" in row["fields_problem"]
        [row] = web.get("/api/v1/recordings/3/messages?schema=constants").json
        problem = "its payload has 3145728 bytes, more than 65536"
        assert (row["fields"], row["is_whole"], row["fields_problem"]) == (None, False, problem)


def test_long_names_of_fields(own: CommandLine, tmp_path: Path) -> None:
    """They count for each entry of a group: as JSON this message has 9 MB."""
    (tmp_path / "wide.xml").write_text(WIDE)
    builder = SegmentBuilder(term_length=1 << 23, segment_length=1 << 23)
    builder.message(struct.pack("<4HI2H", 4, 1, 9, 0, 7, 1, 60_000) + bytes(60_000))
    builder.message(struct.pack("<4HI2H", 4, 1, 9, 0, 7, 1, 2) + bytes(2))
    built_archive.add_recording(tmp_path, builder)
    path = "/api/v1/recordings/0/messages?schema=wide"
    with WebService(own, tmp_path, "--schema", tmp_path / "wide.xml") as web:
        with ThreadPoolExecutor(16) as threads:
            found = list(threads.map(web.get, [path] * 32))
        assert {each.status for each in found} <= {200, 503}
        long, short = web.get(path).json
        assert long["fields"] is None
        assert long["fields_problem"].startswith("its fields have 9120045 bytes with their names")
        assert short["fields"]["Levels"] == {"number": 7, "levels": [{NAME: 0}, {NAME: 0}]}
        assert short["fields_problem"] == ""
        assert peak_bytes(web.process.pid) < MAX_BYTES


def test_payloads_are_saved_whole(own: CommandLine, tmp_path: Path) -> None:
    """However long they are, and whatever part of the stream they begin in, in little memory."""
    payloads = [bytes(range(256)) * 62_500, b"", b"short", bytes(range(255)) * 20_000]
    builder = SegmentBuilder(term_length=1 << 26, segment_length=1 << 26)
    positions = []
    for each in payloads:
        positions.append(builder.position)
        builder.message(each)
    built_archive.add_recording(tmp_path, builder)
    path = "/api/v1/recordings/0/payload?position="
    with WebService(own, tmp_path) as web:
        for position, each in zip(positions, payloads, strict=True):
            answer = web.get(f"{path}{position}")
            assert (answer.status, answer.body == each) == (200, True)
            assert answer.headers["content-type"] == "application/octet-stream"
            name = f'attachment; filename="recording-0-{position}.bin"'
            assert answer.headers["content-disposition"] == name
        for position in (1, 32, positions[0] + 1_408, positions[1] + 64, builder.position, 1 << 62):
            assert web.get(f"{path}{position}").json["title"] == "ConfigurationError"
        before = peak_bytes(web.process.pid)
        with ThreadPoolExecutor(16) as threads:
            found = threads.map(web.get, [f"{path}0"] * 32)
            assert {len(each.body) for each in found if each.status == 200} == {16_000_000}
        assert peak_bytes(web.process.pid) < before + (32 << 20)


def test_columns_of_fields_are_bounded(own: CommandLine, archive: tuple[Path, Path]) -> None:
    """A file ends where its columns would need too much memory."""
    directory, schema = archive
    path = "export?as=parquet&schema=constants"
    with WebService(own, directory, "--schema", schema) as web:
        first, second, third = (
            pyarrow.parquet.read_table(
                io.BytesIO(web.get(f"/api/v1/recordings/{number}/{path}").body)
            )
            for number in range(3)
        )
        assert (first.num_rows, third.num_rows) == (50, 3)
        assert 1 < second.num_rows <= 50
        large = web.get("/api/v1/recordings/3/export?as=parquet")
        assert large.status == 413 and "the next row has 3145728 bytes" in large.json["detail"]
        assert peak_bytes(web.process.pid) < MAX_BYTES
