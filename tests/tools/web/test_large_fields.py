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
