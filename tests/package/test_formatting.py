"""Bytes as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aerotape.formatting import utf8_text

SAMPLES = (
    *(b"", b"text", "é€😀".encode(), b"\xff\xfe", "é€😀".encode()[:-1]),
    *(b"\xed\xa0\x80", b"\\xff"),
)


@given(st.lists(st.sampled_from(SAMPLES)).map(b"".join) | st.binary())
def test_it_is_what_backslashreplace_does(data: bytes) -> None:
    assert utf8_text(data) == data.decode(errors="backslashreplace")


@pytest.mark.parametrize("length", [1_000, 5_000, 70_000])
def test_a_limit_of_characters(length: int) -> None:
    """The text begins as without a limit."""
    for data in (b"\xff" * length, b"a" * length, b"a\xff" * length):
        whole = data.decode(errors="backslashreplace")
        for limit in (0, 1, 4_096, 4_097, 10_000, len(whole), len(whole) + 1):
            assert utf8_text(data, limit) == whole[:limit]
