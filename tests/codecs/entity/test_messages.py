"""Actions as messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entity.logged import append_events

from aerotape.codecs.entity.actions import (
    MAX_SEQ_NR,
    Action,
    ActionHeader,
    ActionKind,
    Append,
    Delete,
    Event,
    Mark,
    PayloadType,
    Purge,
)
from aerotape.codecs.entity.messages import Selector, decode, encode, read_header, single_append
from aerotape.codecs.generated import entity as codecs
from aerotape.errors import CodecError

CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "id": st.text(CHARACTERS, max_size=12),
    "timestamp_ms": st.integers(-(1 << 63), (1 << 63) - 1),
    "origin": st.text(CHARACTERS, max_size=5),
    "version": st.text(CHARACTERS, max_size=5),
    "metadata": st.none() | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
}
SEQ_NRS = st.integers(1, MAX_SEQ_NR)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    first, last = sorted((draw(SEQ_NRS), draw(SEQ_NRS)))
    return Append(
        **{name: draw(strategy) for name, strategy in COMMON.items()},
        from_seq_nr=first,
        to_seq_nr=last,
        payload=draw(st.binary(max_size=30)),
        payload_type=draw(st.sampled_from([PayloadType.BINARY, PayloadType.JSON])),
    )


ACTIONS: st.SearchStrategy[Action] = st.one_of(
    appends(),
    st.builds(Mark, **COMMON, mark_id=st.text(max_size=5)),
    st.builds(Delete, **COMMON, to_seq_nr=SEQ_NRS),
    st.builds(Purge, **COMMON),
)


@given(ACTIONS)
def test_round_trips(action: Action) -> None:
    """An action is decoded as it was encoded, and its header agrees with it."""
    message = encode(action)
    assert decode(message) == action
    header = read_header(message)
    assert (header.id.decode(), header.timestamp_ms) == (action.id, action.timestamp_ms)
    assert header.kind.name == type(action).__name__.upper()
    assert header.to_seq_nr == getattr(action, "to_seq_nr", 0)
    assert header.from_seq_nr == getattr(action, "from_seq_nr", 0)


@given(appends())
def test_messages_are_those_of_the_generated_codec(action: Append) -> None:
    """The fast encoder writes what the codec generated from the schema writes."""
    message = codecs.decode(encode(action))
    assert isinstance(message, codecs.Action)
    assert message.encode() == encode(action)
    assert message.payload == action.payload
    assert message.entity_id == action.id.encode()


@given(st.text(CHARACTERS, max_size=6), st.text(CHARACTERS, max_size=6))
def test_selector(mine: str, other: str) -> None:
    """A selector finds the actions of one id and no others."""
    header = Selector(mine).header(encode(Purge(id=other)))
    assert (header is not None) == (mine == other)
    assert Selector(mine).header(encode(Purge(id=mine))) == ActionHeader(
        ActionKind.PURGE, mine.encode(), 0, 0, 0
    )


def test_header_needs_no_valid_payload() -> None:
    """Kind, key and range are read without the rest of the message."""
    append = Append(id="k", from_seq_nr=2, to_seq_nr=3, payload=b"x", payload_type=PayloadType.JSON)
    start = encode(append)[: 8 + 32 + 4 + 1]
    assert read_header(start) == ActionHeader(ActionKind.APPEND, b"k", 2, 3, 0)


@pytest.mark.parametrize(
    "action",
    [
        Append(id="k", from_seq_nr=0, to_seq_nr=1, payload=b"", payload_type=PayloadType.JSON),
        Append(id="k", from_seq_nr=2, to_seq_nr=1, payload=b"", payload_type=PayloadType.JSON),
        Append(id="k", from_seq_nr=1, to_seq_nr=1, payload=b"", payload_type=PayloadType.NONE),
        Append(
            id="k", from_seq_nr=1, to_seq_nr=1 << 63, payload=b"", payload_type=PayloadType.JSON
        ),
        Delete(id="k", to_seq_nr=0),
        Delete(id="\ud800", to_seq_nr=1),
        Delete(id="a\0b", to_seq_nr=1),
        Delete(id="k", origin="a\0b", to_seq_nr=1),
        Purge(id="k", timestamp_ms=1 << 63),
        Purge(id="k", metadata={1, 2}),
        Purge(id="k", metadata=float("nan")),
    ],
)
def test_invalid_actions_are_refused(action: Action) -> None:
    """An action with a field out of its range is not written."""
    with pytest.raises(CodecError):
        encode(action)


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(message: bytes) -> None:
    """Bytes that are no action are a CodecError and nothing else."""
    for read in (decode, read_header, Selector("k").header):
        try:
            read(message)
        except CodecError:
            continue


@given(st.data())
def test_damaged_messages_are_decoded_or_refused(data: st.DataObject) -> None:
    """A cut message with a flipped byte is a CodecError or another valid action."""
    whole = encode(Mark(id="key", mark_id="m", origin="o", metadata=[1]))
    message = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    for read in (decode, read_header, Selector("key").header):
        try:
            read(bytes(message))
        except CodecError:
            continue


PLAIN = Event(5, b'{"a":"\xc3\xbc"}', "json")


@pytest.mark.parametrize(
    ("events", "options", "expected"),
    [
        ([PLAIN], {}, (None, None, b"", None, '{"a":"ü"}')),
        (
            [replace(PLAIN, tags=("t", "ü"))],
            {"origin": "host", "version": "1", "metadata": {"k": 1}},
            ("host", "1", b'{"k":1}', '["t","ü"]', '{"a":"ü"}'),
        ),
        ([replace(PLAIN, tags=("]",))], {}, None),
        ([PLAIN, replace(PLAIN, seq_nr=6)], {}, None),
        ([replace(PLAIN, payload_type="text")], {}, None),
        ([replace(PLAIN, payload_type="binary")], {}, None),
        ([PLAIN], {"expire_after_ns": 1}, None),
    ],
)
def test_single_append(
    events: list[Event], options: dict[str, Any], expected: tuple[object, ...] | None
) -> None:
    """An append of one event in JSON is read without `decode`; others and damaged ones are not."""
    message = encode(append_events("id", events, **options))
    header = read_header(message)
    assert single_append(message, header) == expected
    cut = (message[:end] for end in range(46, len(message)))  # from the end of the id on
    assert not any(single_append(each, header) for each in cut)


def test_other_actions_are_no_single_append() -> None:
    """Marks, deletes and purges are none."""
    for action in (Mark(id="a", mark_id="m"), Delete(id="a", to_seq_nr=1), Purge(id="a")):
        message = encode(action)
        assert single_append(message, read_header(message)) is None
