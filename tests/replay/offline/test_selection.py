"""The selection of messages: checks, what is chosen by it, and the first messages."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.orders import SCHEMA
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32
from support.selections import has_it, values_of

from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import schema_of
from aerotape.errors import ConfigurationError, SegmentError
from aerotape.replay.offline import directory as directories
from aerotape.replay.offline import polars_source, reader, table
from aerotape.replay.offline.choosing import choose_recordings
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.selection import OPTIONS, Selection, parse_texts, refuse


def test_each_option_is_an_attribute_and_has_a_text() -> None:
    assert {each.name for each in fields(Selection) if each.init} == set(OPTIONS)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"from_position": -1}, "<from_position> -1 is negative"),
        ({"last": -1}, "<last> -1 is negative"),
        ({"first": -1}, "<first> -1 is negative"),
        ({"from_position": 2, "to_position": 1}, "<from_position> 2 is after <to_position> 1"),
        ({"from_index": 1, "from_asqn": 1}, "<from_index> and <from_asqn> exclude each other"),
        ({"first": 1, "last": 1}, "<first> and <last> exclude each other"),
        ({"from_time": "200000000s", "to_time": "100000000s"}, "the range of times goes backwards"),
        ({"from_time": "soon"}, "from_time: 'soon' is not a valid time"),
        ({"columns": "payload"}, "<columns>: 'payload' is not a list of names"),
        ({"checksum": "{md5}"}, "unknown <checksum> '{md5}': use none, crc-32 or crc-32c"),
        ({"mode": "SOME", "checksum": "crc-32"}, "mode: unknown mode 'SOME'"),
        ({"mode": "PERMISSIVE"}, "<mode> PERMISSIVE concerns frames .* give <checksum> too"),
        ({"template": "A"}, "<template> is of a schema: give <schema> too"),
        ({"others": "null"}, "<others> is of a schema: give <schema> too"),
        ({"schema": "a.xml", "others": "skip"}, "<others>: 'skip' is not one of drop, null"),
        ({"schema": "a.xml", "payload": "raft-journal"}, "<schema>: the option <payload> selects"),
        ({"types": "wire", "payload": "raft-journal"}, "<types>: the option <payload> selects"),
    ],
)
def test_what_cannot_be_is_refused_with_the_names_of_the_surface(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Selection.of(given, lambda name: f"<{name}>")
    with pytest.raises(ConfigurationError, match=problem.replace("<", "").replace(">", "")):
        Selection(**given)


def test_what_a_schema_was_read_with_is_given_when_it_is_read() -> None:
    """`with_schema` puts a schema that was read into the place of its file."""
    pytest.importorskip("pyarrow")
    read = PayloadSchema.from_schema(schema_of(SCHEMA.encode(), "orders.xml"), "Order")
    for name, value in (("template", "Order"), ("types", "wire"), ("enums", "number")):
        with pytest.raises(ConfigurationError, match=f"{name}: the schema was read already"):
            Selection.of({"schema": read, name: value}, str)
    selection = Selection(schema="a.xml", template="Order", types="wire", others="null", first=3)
    assert selection.with_schema(read) == Selection(schema=read, others="null", first=3)


def test_a_time_that_is_relative_to_now_stays() -> None:
    """It is parsed once, and a selection can be sent to another process."""
    before = time.time_ns()
    selection = Selection(from_time="10m", mode="PERMISSIVE", checksum="crc-32")
    begin = selection.times.from_ns
    assert begin is not None and before <= begin + 600 * 10**9 <= time.time_ns()
    copy: Selection = pickle.loads(pickle.dumps(selection))
    assert copy == selection and copy.times == selection.times and copy.mode == "PERMISSIVE"


def test_texts_are_parsed_and_refused_by_their_names() -> None:
    assert parse_texts({"recording_ids": "3,1", "live": "FALSE"}, str) == {
        "recording_ids": (1, 3),
        "live": False,
    }
    for name, text, problem in (
        ("first", "x", "<first>: 'x' is not a whole number from 0"),
        ("live", "yes", "<live>: 'yes' is not one of true, false"),
        ("payload", "json", "<payload>: 'json' is not raft-journal"),
        ("stream_id", "1" * 5000, "<stream_id>: .* is not a whole number"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            parse_texts({name: text}, lambda name: f"<{name}>")
    refuse(Selection(first=1), ("last",), "no", str)
    with pytest.raises(ConfigurationError, match="first: no"):
        refuse(Selection(first=1), ("last", "first"), "no", str)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A directory with four recordings, of which the last is live."""
    for number, channel in enumerate(("alias=a", "alias=b", "endpoint=host:1|alias=b", "x=y")):
        builder = SegmentBuilder(stream_id=10 + number // 2, session_id=20 + number)
        add_recording(
            tmp_path,
            fill(builder, 5),
            live=number == 3,
            original_channel=f"aeron:udp?{channel}",
        )
    return tmp_path


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({}, [0, 1, 2, 3]),
        ({"recording_ids": (2, 0)}, [2, 0]),
        ({"stream_id": 11}, [2, 3]),
        ({"session_id": 21}, [1]),
        ({"alias": "b"}, [1, 2]),
        ({"channel": "host:1"}, [2]),
        ({"live": True}, [3]),
        ({"live": False, "stream_id": 11}, [2]),
    ],
)
def test_recordings_are_chosen(store: Path, given: dict[str, Any], ids: list[int]) -> None:
    chosen = choose_recordings(open_directory(store), Selection(**given))
    assert [each.recording_id for each in chosen] == ids


def test_a_recording_that_was_selected_stays_selected(store: Path) -> None:
    """It stays so when it gets another channel or session, or stops;
    with another stream id it is another recording."""
    one = open_directory(store).recording(2).descriptor
    for given, matches in (
        ({"channel": "host:1"}, True),
        ({"channel": "host:2"}, False),
        ({"alias": "b"}, True),
        ({"alias": "host"}, False),
        ({"session_id": 23}, False),
        ({"live": True}, False),
        ({"stream_id": 11, "alias": "b", "live": False}, True),
    ):
        selection = Selection(**given)
        assert selection.matches(one, live=False) == matches, given
        assert selection.matches(one, live=False, is_followed=True)
    assert not Selection(stream_id=6).matches(one, live=False, is_followed=True)
    broken = replace(one, original_channel="no channel")
    assert not Selection(alias="b").matches(broken, live=False)


def positions(recording: Recording, **options: Any) -> list[int]:
    return [message.position for message in recording.messages(**options)]


@pytest.mark.parametrize("seed", range(3))
def test_the_first_messages_are_those_that_all_begin_with(tmp_path: Path, seed: int) -> None:
    """Of any lengths, fragmented, with padding, with an unfinished message at the end; of a range
    of positions, too."""
    builder = fill(SegmentBuilder(start_position=96 * seed), 150, seed)
    builder.frame(b"begun", flags=BEGIN)
    add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(0)
    for options in ({}, {"from_position": 5_000}, {"from_position": 64, "to_position": 9_000}):
        every = positions(recording, **options)
        for count in (0, 1, 2, 7, len(every) - 1, len(every), len(every) + 1, 10_000):
            assert positions(recording, first=count, **options) == every[:count], (options, count)
    pytest.importorskip("pyarrow")
    assert recording.to_arrow(first=10).num_rows == 10
    assert recording.to_arrow(first=10, columns=["length"]).schema.names == ["length"]


def test_more_first_messages_than_are_counted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_COUNTED_ROWS", 7)
    add_recording(tmp_path, fill(SegmentBuilder(), 60))
    recording = open_directory(tmp_path).recording(0)
    for count in (6, 7, 8, 14, 59, 61):
        assert positions(recording, first=count) == positions(recording)[:count]


def test_damage_after_the_first_messages_does_not_matter(tmp_path: Path) -> None:
    """Damage among them is reported after the messages that precede it."""
    builder = fill(SegmentBuilder(checksum=crc32), 100)
    add_recording(tmp_path, builder)
    at = builder.messages[50].position
    path = builder.segment_path(tmp_path, at)
    data = bytearray(path.read_bytes())
    data[at % builder.segment_length : at % builder.segment_length + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    recording = open_directory(tmp_path).recording(0)
    every = [message.position for message in builder.messages]
    assert positions(recording, first=50, checksum="crc-32") == every[:50]
    messages = recording.messages(first=60)
    assert [next(messages).position for _ in range(50)] == every[:50]
    with pytest.raises(SegmentError):
        next(messages)


# How each surface of Python is called, and where its selection arrives.
SURFACES: dict[str, tuple[Callable[..., object], Callable[[Recording], Callable[..., object]]]] = {
    "messages": (Recording.messages, lambda recording: recording.messages),
    "to_batches": (Recording.to_batches, lambda recording: recording.to_batches),
    "to_arrow": (Recording.to_arrow, lambda recording: recording.to_arrow),
    "scan_polars": (
        polars_source.scan_polars,
        lambda recording: lambda **options: polars_source.scan_polars(
            recording.archive_dir, **options
        ),
    ),
}
_OF_RECORDINGS = {"recording_ids", "scope_ids", "channel", "alias", "stream_id", "session_id",
                  "live"}  # fmt: skip
LACKS = {
    "messages": _OF_RECORDINGS | {"columns", "schema", "template", "others", "types", "enums",
                                  "sets", "timestamps", "text_encoding", "payload", "mode"},
    "to_batches": _OF_RECORDINGS,
    "to_arrow": _OF_RECORDINGS,
    "scan_polars": {"columns"},
}  # fmt: skip


class ArrivedError(Exception):
    """Ends a call with its selection."""


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_surface_passes_each_option_on_or_refuses_its_name(
    surface: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, called = SURFACES[surface]
    add_recording(tmp_path, SegmentBuilder())

    def arrive(*args: Any, **options: Any) -> None:
        raise ArrivedError(next(each for each in args if isinstance(each, Selection)))

    monkeypatch.setattr(reader, "selected_messages", arrive)
    monkeypatch.setattr(table, "read_batches", arrive)
    if surface == "scan_polars":
        pytest.importorskip("polars")
        monkeypatch.setattr(polars_source, "typed_columns", arrive)
    call = called(directories.open_directory(tmp_path).recording(0))
    assert (name in signature(function).parameters) == (name not in LACKS[surface])
    if name in LACKS[surface]:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            call(**{name: values_of(name)[name]})
        return
    with pytest.raises(ArrivedError) as arrived:
        call(**values_of(name))
    assert has_it(arrived.value.args[0], name)
