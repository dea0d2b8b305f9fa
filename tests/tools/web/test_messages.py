"""The messages of a recording's page: the newest, those before and after them, and new ones."""

from __future__ import annotations

import csv
import html
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.builders import built_archive
from support.builders.segment_builder import SegmentBuilder
from support.builders.timed_directory import build
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.jvm.java import ROOT
from support.selections import TEXTS, has_it, values_of
from support.web import WebService

import aerotape
from aerotape.catalog.time_index.file import HEADER_LENGTH
from aerotape.catalog.time_index.points import POINT_LENGTH
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payload_values import timestamp_text
from aerotape.codecs.schema_files import load_schema
from aerotape.formatting import printable
from aerotape.replay.offline.selection import EVERYTHING, OPTIONS, Selection
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.reading import Reading
from aerotape.tools._web.rest.selecting import OF_MESSAGES, OF_RECORDINGS, selection_of, spell

needs_browser = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
HOSTILE = "<b>é\0\x1b[2J\n\u202e\u00a0\U000e0001</b>"
ROWS = "return [...document.querySelectorAll('.payload > div')].map(each => each.textContent)"


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A directory with a recording of 120 messages, `0` to `119`."""
    builder = SegmentBuilder()
    for number in range(120):
        builder.message(b"%d" % number)
    built_archive.add_recording(tmp_path, builder)
    return tmp_path


def numbers(begin: int, end: int) -> list[str]:
    return [str(number) for number in range(begin, end)]


@contextmanager
def live(
    cli: CommandLine, client: aerotape.ArchiveClient, stream_id: int
) -> Iterator[tuple[int, Any]]:
    """Record a stream; yield the recording id and its publication."""
    with aerotape.Aeron(cli.archive.aeron_dir) as aeron:
        client.start_recording("aeron:ipc", stream_id)
        publication = aeron.add_publication("aeron:ipc", stream_id)
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        try:
            yield recording_id, publication
        finally:
            publication.close()
            client.stop_recording("aeron:ipc", stream_id)


def test_the_newest_before_a_position(stopped: Path) -> None:
    """What REST gives is what a page shows."""
    reading = Reading(ObservedArchive(stopped))

    def payloads(**selection: Any) -> list[str]:
        found = reading.messages(reading.opened(0), Selection(**selection), 1_000, "text")
        return [each["payload"] for each in found]

    rows = list(reading.messages(reading.opened(0), EVERYTHING, 1_000, "text"))
    at = [each["position"] for each in rows]
    assert payloads(last=50) == numbers(70, 120)
    assert payloads(last=1_000) == numbers(0, 120)
    assert payloads(last=50, to_position=at[60]) == numbers(10, 60)
    assert payloads(last=50, to_position=at[3]) == numbers(0, 3)
    assert payloads(last=50, from_position=at[100]) == numbers(100, 120)
    assert payloads(last=2, from_position=at[10], to_position=at[15]) == numbers(13, 15)
    assert payloads(to_position=at[2]) == numbers(0, 2)
    assert payloads(last=50, to_position=1 << 40) == numbers(70, 120)
    for nothing in (
        {"to_position": 0},
        {"from_position": rows[-1]["end_position"]},
        {"from_position": 1 << 40},
    ):
        assert payloads(last=50, **nothing) == []


def test_the_newest_is_long(tmp_path: Path) -> None:
    """Longer than what is read of several messages, with padding after it: it is shown."""
    builder = SegmentBuilder(term_length=1 << 27, segment_length=1 << 27, mtu_length=65_504)
    for length in (10, 9 << 20):
        builder.message(bytes(length))
    end = builder.position
    builder.pad_term()
    built_archive.add_recording(tmp_path, builder)
    reading = Reading(ObservedArchive(tmp_path))
    for to_position in (None, end):
        selection = Selection(last=50, to_position=to_position)
        rows = reading.messages(reading.opened(0), selection, 50, "hex", max_payload=4)
        assert [each["length"] for each in rows][-1] == 9 << 20


def test_the_newest_after_damage(stopped: Path) -> None:
    """They are read without what precedes them."""
    reading = Reading(ObservedArchive(stopped))
    found = reading.opened(0)
    damaged = stopped / "0-0.rec"
    data = bytearray(damaged.read_bytes())
    data[6400:6404] = b"\xff\xff\xff\x7f"  # message 100
    damaged.write_bytes(data)
    rows = reading.messages(found, Selection(last=19), 1_000, "text")
    assert [each["payload"] for each in rows] == numbers(101, 120)


def test_the_newest_over_rest(stopped: Path, own: CommandLine) -> None:
    with WebService(own, stopped) as web:
        path = "/api/v1/recordings/0/messages"
        assert [each["payload"] for each in web.get(f"{path}?last=3").json] == numbers(117, 120)
        assert len(web.get(f"{path}?last=110").json) == 110
        assert len(web.get(path).json) == 100
        shortened = web.get(f"{path}?last=1&max_payload=2").json[0]
        assert (shortened["payload"], shortened["is_whole"]) == ("11", False)
        for wrong in (
            "last=0",
            "last=1001",
            "max_payload=0",
            "max_payload=65537",
            "to_position=-1",
            "first=1&last=1",
            "checksum=md5",
            *(f"{name}=1" for name in OPTIONS if name not in OF_MESSAGES and name != "schema"),
        ):
            found = web.get(f"{path}?{wrong}")
            assert found.status == 400 and wrong.partition("=")[0] in found.text


@pytest.mark.parametrize("name", (*OF_RECORDINGS, *OF_MESSAGES))
def test_each_parameter_is_passed_on(name: str) -> None:
    """As FastAPI passes it: numbers and truth as such."""
    value = values_of(name)[name]
    if name in ("from_time", "to_time", "checksum"):
        value = TEXTS[name]
    given = {spell(each): None for each in (*OF_RECORDINGS, *OF_MESSAGES)} | {spell(name): value}
    assert has_it(selection_of((*OF_RECORDINGS, *OF_MESSAGES))(**given), name)


def test_the_first_over_rest(stopped: Path, own: CommandLine) -> None:
    """Whole lists of recordings and of messages are narrowed by the parameters."""
    with WebService(own, stopped) as web:
        path = "/api/v1/recordings/0/messages"
        assert [each["payload"] for each in web.get(f"{path}?first=3").json] == numbers(0, 3)
        assert len(web.get(f"{path}?first=110").json) == 110
        assert [each["payload"] for each in web.get(f"{path}?first=3&limit=1").json] == ["0"]
        assert web.get("/api/v1/recordings?live=false").json["total"] == 1
        assert web.get("/api/v1/recordings?session_id=-77").json["total"] == 0


def test_when_they_were_recorded(stopped: Path, own: CommandLine, tmp_path: Path) -> None:
    """Beside each message, as in the column `recorded_time`; not without a time index."""
    built = build(tmp_path / "timed")
    column = built.recording().to_arrow(columns=["recorded_time"])["recorded_time"]
    wanted = [timestamp_text(each.value, 6) for each in column]
    with WebService(own, built.archive_dir) as web:
        path = "/api/v1/recordings/0"
        rows = web.get(f"{path}/messages?first=30&format=hex").json
        assert [each["recorded_time"] for each in rows] == wanted[:30]
        found = web.get(f"{path}/search?text=%00&limit=30").json["messages"]
        assert [each["recorded_time"] for each in found] == wanted[:30]
        file = csv.DictReader(io.StringIO(web.get(f"{path}/export?as=csv&first=30").text))
        assert [each["recorded_time"] for each in file] == wanted[:30]
        assert 'data-label="Recorded">2023-11-14 22:13:20Z</td>' in web.get("/recordings/0").text
    with WebService(own, stopped) as web:
        [row] = web.get("/api/v1/recordings/0/messages?first=1").json
        assert row["recorded_time"] is None
        assert 'data-label="Recorded"></td>' in web.get("/recordings/0").text


def test_rates_are_those_of_the_time_index(tmp_path: Path) -> None:
    """Without reading all of it; those of a part; none if a point is damaged."""
    built = build(tmp_path / "timed")
    reading = Reading(ObservedArchive(built.archive_dir))
    found = reading.opened(0)
    rates = reading.rates(found, 4, None, None)
    assert [each["from_position"] for each in rates[1:]] == [
        each["to_position"] for each in rates[:-1]
    ]
    assert (rates[0]["from_position"], rates[-1]["to_position"]) == (0, built.stream.position)
    assert sum(
        each["bytes_per_s"] * (each["to_ns"] - each["from_ns"]) / 1e9 for each in rates
    ) == pytest.approx(built.stream.position)
    first, last = built.points[3], built.points[7]
    [part] = reading.rates(found, 1, first.time_ns, last.time_ns)
    assert (part["from_position"], part["to_position"]) == (first.position, last.position)
    data = bytearray(built.path.read_bytes())
    for index in range(len(built.points)):
        data[HEADER_LENGTH + index * POINT_LENGTH] ^= 1
    built.path.write_bytes(data)
    assert reading.rates(found, 4, None, None) == []


def test_fields_are_decoded_by_default(tmp_path: Path, own: CommandLine) -> None:
    """If there is one schema, and in its order."""
    market = ROOT / "tests/demo/market-data.xml"
    trade = {
        "sequence": 7,
        "eventTime": 1,
        "instrumentId": 3,
        "size": 100,
        "price": 12500,
        "remarks": "3c623e",
    }
    builder = SegmentBuilder()
    builder.message(PayloadEncoder(load_schema(market), "Trade").encode(trade))
    built_archive.add_recording(tmp_path, builder)
    with WebService(own, tmp_path, "--schema", market) as web:
        shown = html.unescape(web.get("/recordings/0").text)
        fields = shown.partition('"Trade": ')[2]
        assert sorted(trade, key=fields.index) == list(trade)
        assert "eventTime" not in web.get("/recordings/0?schema=").text


@needs_browser
def test_pages_to_both_sides(stopped: Path, own: CommandLine, page: Any) -> None:
    """There is no way on past the ends, and a position is a link that shows it first."""
    with WebService(own, stopped) as web:
        page.get(f"{web.url}recordings/0")

        def go(link: str, begin: int, end: int) -> None:
            page.execute_script("document.querySelector(arguments[0]).click()", link)
            await_true(lambda: page.execute_script(ROWS) == numbers(begin, end))

        assert page.execute_script(ROWS) == numbers(0, 50)
        assert text(page, "#older") == text(page, "#oldest") == "None"
        go("#newer", 50, 100)
        go("#newer", 100, 120)
        assert text(page, "#newer") == text(page, "#newest") == "None"
        go("#older", 50, 100)
        go("#newest", 70, 120)
        go("#older", 20, 70)
        go("#oldest", 0, 50)
        go("tr:nth-child(31) a", 30, 80)
        assert "position=" in page.current_url
        assert text(page, "#follow") == "None"
        page.get(f"{web.url}recordings/0?position={1 << 40}")
        assert page.execute_script(ROWS) == []
        go("#older", 70, 120)
        page.get(f"{web.url}recordings/0?before=0")
        assert page.execute_script(ROWS) == []
        go("#newer", 0, 50)
    assert complaints(page) == []


@needs_browser
def test_the_bytes_of_a_message(stopped: Path, own: CommandLine, page: Any) -> None:
    """They are read when they are wanted."""
    with WebService(own, stopped) as web:
        page.get(f"{web.url}recordings/0?format=base64")
        page.execute_script("document.querySelector('.payload details').open = true")
        await_true(lambda: text(page, ".bytes").startswith("00000000  30 "))
        assert text(page, ".bytes").endswith(" 0")


@needs_browser
def test_new_messages_are_followed(
    cli: CommandLine, client: aerotape.ArchiveClient, page: Any
) -> None:
    """From the newest on, until a pause; after it only the newest are shown, and that."""
    with WebService(cli, cli.archive.archive_dir) as web, live(cli, client, 7401) as stream:
        recording_id, publication = stream

        def send(begin: int, end: int) -> None:
            for number in range(begin, end):
                publication.send(b"%d" % number)
            await_true(lambda: client.recording_position(recording_id) == publication.position)

        send(0, 120)
        web.await_state(recording_id, live=True)
        page.get(f"{web.url}recordings/{recording_id}")
        await_true(lambda: page.execute_script(ROWS)[-1:] == ["119"])
        assert page.execute_script(ROWS)[-50:] == numbers(70, 120)
        publication.send(HOSTILE.encode())
        await_true(lambda: page.execute_script(ROWS)[-1] == printable(HOSTILE))
        assert (
            page.execute_script("return document.querySelectorAll('.payload > div *').length") == 0
        )
        page.execute_script("document.getElementById('follow').click()")
        assert (text(page, "#follow"), text(page, "#following")) == ("Follow", "paused")
        send(200, 400)
        time.sleep(2.5)  # longer than between two looks: none comes
        assert page.execute_script(ROWS)[-1] == printable(HOSTILE)
        page.execute_script("document.getElementById('follow').click()")
        await_true(lambda: page.execute_script(ROWS)[-1] == "399")
        assert page.execute_script(ROWS)[-51:] == [printable(HOSTILE), *numbers(350, 400)]
        assert text(page, ".gap").endswith(" are not shown")
        page.execute_script("[...document.querySelectorAll('.payload details')].at(-1).open = true")
        await_true(lambda: "33 39 39" in text(page, ".bytes"))
        publication.close()
        await_true(lambda: text(page, "#following") == "The recording is stopped.")
        assert page.execute_script("return document.getElementById('follow').hidden")
    assert complaints(page) == []


@needs_browser
def test_a_service_that_is_away_while_a_page_follows(
    cli: CommandLine, client: aerotape.ArchiveClient, page: Any
) -> None:
    """The page says so, and tries again."""
    with live(cli, client, 7402) as (recording_id, publication):
        publication.send(b"one")
        with WebService(cli, cli.archive.archive_dir) as web:
            web.await_state(recording_id, live=True)
            page.get(f"{web.url}recordings/{recording_id}")
            await_true(lambda: text(page, "#following") != "")
        await_true(lambda: text(page, "#following").endswith("; trying again"))


@needs_browser
def test_a_recording_that_is_deleted_while_a_page_follows(
    cli: CommandLine, client: aerotape.ArchiveClient, page: Any
) -> None:
    """A refusal is not asked for again."""
    with WebService(cli, cli.archive.archive_dir) as web:
        with live(cli, client, 7403) as (recording_id, publication):
            publication.send(b"one")
            web.await_state(recording_id, live=True)
            page.get(f"{web.url}recordings/{recording_id}")
            await_true(lambda: text(page, "#following") == "no new message")
            page.execute_script("document.getElementById('follow').click()")
        client.await_signal(aerotape.RecordingSignal.STOP)
        client.purge_recording(recording_id)
        await_true(lambda: web.get(f"/api/v1/recordings/{recording_id}").status == 404)
        page.execute_script("document.getElementById('follow').click()")
        await_true(lambda: text(page, "#following").endswith("; reload the page"))
        assert str(recording_id) in text(page, "#following")
