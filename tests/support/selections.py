"""A value of each option of a selection, as text, for tests of the surfaces."""

from __future__ import annotations

from typing import Any, Final

from aerotape.replay.offline.selection import EVERYTHING, OPTIONS, Selection, parse_texts

SCHEMA: Final = "orders.xml"
TEXTS: Final = {
    "recording_ids": "3,1",
    "scope_ids": "7",
    "channel": "endpoint=host",
    "alias": "prices",
    "stream_id": "-5",
    "session_id": "12",
    "live": "true",
    "from_position": "0x40",
    "to_position": "128",
    "from_time": "2026-03-01T09:30Z",
    "to_time": "2026-03-01T10:30Z",
    "from_index": "4",
    "from_asqn": "5",
    "last": "6",
    "first": "7",
    "columns": "position,length",
    "schema": SCHEMA,
    "template": "1",
    "others": "null",
    "types": "wire",
    "enums": "number",
    "sets": "number",
    "timestamps": "orderId=s",
    "text_encoding": "bytes",
    "payload": "raft-journal",
    "checksum": "crc-32c",
    "mode": "permissive",
}
_REQUIRE: Final = {"mode": ("checksum",)} | dict.fromkeys(
    ("template", "others", "types", "enums", "sets", "timestamps", "text_encoding"), ("schema",)
)


def texts_of(name: str) -> dict[str, str]:
    """Return the text of an option, with those that it requires."""
    return {each: TEXTS[each] for each in (name, *_REQUIRE.get(name, ()))}


def values_of(name: str) -> dict[str, Any]:
    """Return the same as values."""
    return parse_texts(texts_of(name), str)


def has_it(selection: Selection, name: str) -> bool:
    """Return whether a selection has the options of `texts_of`, and no others."""
    wanted = EVERYTHING.values | values_of(name)
    if wanted["mode"] != "FAILFAST":
        wanted["mode"] = wanted["mode"].upper()
    for each in ("from_time", "to_time"):
        assert wanted[each] is None or isinstance(wanted[each], int)
    return selection.values == wanted


assert set(TEXTS) == set(OPTIONS)
