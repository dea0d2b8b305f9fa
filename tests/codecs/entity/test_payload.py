"""Payloads of appends in kafka-journal's forms: vectors written by hand, round trips, damage.

The decoder was compared with the fixtures of kafka-journal's repository, which are not part of
this one.
"""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entity.json_texts import json_texts

from aerotape.codecs.entity.actions import (
    MAX_SEQ_NR,
    Append,
    Event,
    EventPayloadType,
    Events,
    PayloadType,
)
from aerotape.codecs.entity.payload import (
    MAX_DEPTH,
    decode_events,
    encode_events,
    events_of,
)
from aerotape.errors import CodecError

DAY_NS = 86_400_000_000_000

# Two events: the second has the tags "t" and "uv" and the payload "hi", binary.
BINARY_EVENTS = bytes.fromhex(
    "00000002"
    "00000011 0000000000000001 00000000 00 00000000"
    "0000001e 0000000000000007 0000000b 00000001 74 00000002 7576 01 00000002 6869"
)
TWO = (Event(1), Event(7, b"hi", "binary", ("t", "uv")))
JSON_EVENTS = {
    "events": [
        {"seqNr": 1, "tags": []},
        {"seqNr": 2, "tags": ["t"], "payloadType": "json", "payload": {"a": [1, None, "é"]}},
        {"seqNr": 5, "tags": [], "payloadType": "text", "payload": '{"a"'},
    ],
    "metadata": {"expireAfter": "1 day", "data": {"key": "value"}},
}
THREE = (
    Event(1),
    Event(2, '{"a":[1,null,"é"]}'.encode(), "json", ("t",)),
    Event(5, b'{"a"', "text"),
)


NOT_JSON = (
    b"", b" ", b"no json", b"NaN", b"-Infinity", b"1 2", b"[1,]", b"01", b"1.", b"'a'", b'"\n"',
    b'"\xff"', b'"\xed\xa0\x80"', b'"\\x"', b"\xef\xbb\xbf1", "1".encode("utf-16"), b"[" * 100_000,
)  # fmt: skip


def text(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()


def test_binary_form() -> None:
    """The binary form has version, count, sizes, tags and typed payloads, then the metadata."""
    payload = b"\x01" + BINARY_EVENTS + b'{"expireAfter":"1 day","data":[7]}'
    assert encode_events(TWO, DAY_NS, [7]) == (payload, PayloadType.BINARY)
    assert decode_events(payload, PayloadType.BINARY) == Events(TWO, DAY_NS, [7])
    without = b"\x01" + BINARY_EVENTS + b"{}"
    assert encode_events(TWO) == (without, PayloadType.BINARY)
    assert decode_events(without, PayloadType.BINARY) == Events(TWO)


def test_binary_form_of_version_0() -> None:
    """Version 0 has no metadata."""
    assert decode_events(b"\x00" + BINARY_EVENTS, PayloadType.BINARY) == Events(TWO)


def test_json_form() -> None:
    """Without binary payloads the JSON form is written; payloads of type json are embedded."""
    payload = text(JSON_EVENTS)
    assert encode_events(THREE, DAY_NS, {"key": "value"}) == (payload, PayloadType.JSON)
    assert decode_events(payload, PayloadType.JSON) == Events(THREE, DAY_NS, {"key": "value"})


def test_json_form_of_older_versions() -> None:
    """The JSON form may lack metadata, tags and the type of a payload, which is json then."""
    payload = b'{"events":[{"seqNr":3},{"seqNr":4,"payload":{}}]}'
    events = (Event(3), Event(4, b"{}", "json"))
    assert decode_events(payload, PayloadType.JSON) == Events(events)


def test_expiry_in_milliseconds() -> None:
    """An expiry that is a number is in milliseconds."""
    payload = b'{"events":[{"seqNr":3}],"metadata":{"expireAfter":1500}}'
    assert decode_events(payload, PayloadType.JSON).expire_after_ns == 1_500_000_000


PAYLOADS: st.SearchStrategy[tuple[EventPayloadType, bytes | None]] = st.one_of(
    st.just(("none", None)),
    st.tuples(st.just("binary"), st.binary(max_size=40)),
    st.tuples(st.just("text"), st.text(max_size=20).map(str.encode)),
    st.tuples(
        st.just("json"),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
            max_leaves=5,
        ).map(text),
    ),
)


@given(
    st.sets(st.integers(1, MAX_SEQ_NR), min_size=1, max_size=5),
    st.lists(PAYLOADS, min_size=5, max_size=5),
    st.lists(st.text(max_size=4), max_size=3),
    st.none() | st.integers(1, MAX_SEQ_NR),
    st.none() | st.integers() | st.text(max_size=4),
)
def test_round_trips(
    seq_nrs: set[int],
    payloads: list[tuple[EventPayloadType, bytes | None]],
    tags: list[str],
    expire_after_ns: int | None,
    metadata: object,
) -> None:
    """Any events are decoded as they were encoded."""
    events = tuple(
        Event(seq_nr, payload, kind, tuple(tags))
        for seq_nr, (kind, payload) in zip(sorted(seq_nrs), payloads, strict=False)
    )
    encoded = encode_events(events, expire_after_ns, metadata)
    assert decode_events(*encoded) == Events(events, expire_after_ns, metadata)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [Event(0)],
        [Event(-1)],
        [Event(2), Event(2)],
        [Event(2), Event(1)],
        [Event(MAX_SEQ_NR + 1)],
        [Event(1.5)],  # type: ignore[arg-type]
        [Event(True)],
        [Event(1, tags=(1,))],  # type: ignore[arg-type]
        [Event(1, b"x")],
        [Event(1, None, "text")],
        *([Event(1, text, "json")] for text in NOT_JSON),
        *([Event(1, text, "json"), Event(2, b"", "binary")] for text in NOT_JSON),
        [Event(1, b"\xff", "text"), Event(2, b"", "binary")],
        [Event(1, b"\xff", "text")],
        [Event(1, b"", "xml")],  # type: ignore[arg-type]
    ],
)
def test_invalid_events_are_refused(events: list[Event]) -> None:
    """An append has at least one event, with strictly rising numbers from 1 and valid payloads."""
    with pytest.raises(CodecError):
        encode_events(events)


def test_unknown_version_is_refused() -> None:
    """A later version of the binary form is named."""
    with pytest.raises(CodecError, match="version 2"):
        decode_events(b"\x02" + BINARY_EVENTS, PayloadType.BINARY)


@pytest.mark.parametrize("end", range(len(BINARY_EVENTS)))
def test_every_cut_binary_payload_is_refused(end: int) -> None:
    """A payload that ends early is damaged, wherever it ends."""
    with pytest.raises(CodecError):
        decode_events(b"\x00" + BINARY_EVENTS[:end], PayloadType.BINARY)


@given(st.binary(max_size=80), st.sampled_from([PayloadType.BINARY, PayloadType.JSON]))
def test_any_bytes_are_decoded_or_refused(payload: bytes, form: PayloadType) -> None:
    """Bytes that are not a payload are a CodecError and nothing else."""
    try:
        decode_events(payload, form)
    except CodecError:
        return


@given(st.data())
def test_flipped_bytes_are_decoded_or_refused(data: st.DataObject) -> None:
    """A damaged payload is a CodecError or another valid payload."""
    payload = bytearray(b"\x01" + BINARY_EVENTS + b"{}")
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_events(bytes(payload), PayloadType.BINARY)
    except CodecError:
        return


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {},
        {"events": []},
        {"events": [{"tags": []}]},
        {"events": [{"seqNr": "1"}]},
        {"events": [{"seqNr": 1.0}]},
        {"events": [{"seqNr": 1, "tags": [1]}]},
        {"events": [{"seqNr": 1, "payloadType": "binary", "payload": "x"}]},
        {"events": [{"seqNr": 1}], "metadata": {"expireAfter": "soon"}},
        {"events": [{"seqNr": 1}], "metadata": {"expireAfter": "Inf"}},
    ],
)
def test_invalid_json_payloads_are_refused(tree: object) -> None:
    """A JSON payload that is not of the form is refused."""
    with pytest.raises(CodecError):
        decode_events(text(tree), PayloadType.JSON)


def test_negative_tag_size_is_refused() -> None:
    """Sizes in a payload are not trusted."""
    head = struct.pack(">Bi", 0, 1)
    event = struct.pack(">iqi", 17, 1, -5) + bytes(5)
    with pytest.raises(CodecError):
        decode_events(head + event, PayloadType.BINARY)


def test_payload_of_other_events_is_refused() -> None:
    """The events of an append are those of its range."""
    payload, form = encode_events(TWO)
    append = Append(id="k", from_seq_nr=1, to_seq_nr=7, payload=payload, payload_type=form)
    assert events_of(append).events == TWO
    other = Append(id="k", from_seq_nr=1, to_seq_nr=8, payload=payload, payload_type=form)
    with pytest.raises(CodecError, match="1 to 8"):
        events_of(other)


@given(json_texts())
def test_json_is_not_rewritten(payload: bytes) -> None:
    """A payload in JSON is decoded byte for byte, whatever is beside it."""
    for others in ((), (Event(2, b"x", "text", ("t",)), Event(3)), (Event(2, b"\xff", "binary"),)):
        events = (Event(1, payload, "json"), *others)
        encoded, form = encode_events(events)
        assert decode_events(encoded, form).events == events
        is_trimmed = payload == payload.strip(b" \t\r\n")
        assert (form is PayloadType.JSON) == (is_trimmed and b"\xff" not in encoded)
        if form is PayloadType.JSON:
            assert json.loads(encoded)["events"][0]["payload"] == json.loads(payload)


@given(json_texts(), st.permutations(["seqNr", "tags", "payloadType", "payload", "other"]))
def test_json_of_other_writers(payload: bytes, order: list[str]) -> None:
    """The JSON form may have whitespace anywhere, and fields in any order."""
    fields = {
        "seqNr": b"3",
        "tags": b'[ "t" ]',
        "payloadType": b'"js\\u006fn"',
        "payload": payload,
        "other": b"[{}]",
    }
    item = b" ,\n".join(b'\t"%b" : %b' % (name.encode(), fields[name]) for name in order)
    form = b' {"metadata" : { } , "more": 1, "events"\r: [ {%b } ] }\n' % item
    events = (Event(3, payload.strip(b" \t\r\n"), "json", ("t",)),)
    assert decode_events(form, PayloadType.JSON).events == events


def test_depth_of_json() -> None:
    """Payloads have a limit, so that those who parse them need none; decoding them does not."""
    for begin, end in ((b"[", b"]"), (b'{"a":', b"}")):
        deepest = begin * MAX_DEPTH + b"1" + end * MAX_DEPTH
        events = (Event(1, deepest, "json"),)
        assert decode_events(*encode_events(events)).events == events
        for depth in (MAX_DEPTH + 1, 100_000):
            payload = begin * depth + b"1" + end * depth
            with pytest.raises(CodecError, match="nested deeper than 500 levels"):
                encode_events([Event(1, payload, "json")])
            form = b'{"events":[{"seqNr":1,"payload":%b}]}' % payload
            assert decode_events(form, PayloadType.JSON).events == (Event(1, payload, "json"),)
    brackets = b'["%b","\\"["]' % (b"[{" * 1000)
    encode_events([Event(1, brackets, "json")])
    form = b'{"events":[{"seqNr":1}],"metadata":%b%b}' % (b"[" * 100_000, b"]" * 100_000)
    with pytest.raises(CodecError, match="damaged"):
        decode_events(form, PayloadType.JSON)
    with pytest.raises(CodecError, match="damaged"):
        decode_events(b"[" * 100_000, PayloadType.JSON)


def test_refused_json_is_shown() -> None:
    """The error has the event, the payload and the place."""
    with pytest.raises(CodecError, match=r"event 7 .*b'\[1,\]'.*column 4"):
        encode_events([Event(7, b"[1,]", "json")])
