"""The segment of an imported record in its frames' reserved value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aerotape.codecs.raft.formats import FORMATS, LATEST
from aerotape.codecs.raft.origin import Origin
from aerotape.errors import CodecError

ORIGINS = st.builds(
    Origin,
    st.integers(1, (1 << 24) - 1),
    st.integers(1, (1 << 31) - 1),
    st.sampled_from(list(FORMATS.values())),
    st.booleans(),
    st.integers(0, 7),
)


@given(ORIGINS)
def test_what_is_encoded_is_decoded(origin: Origin) -> None:
    """All fields, in a positive value of 64 bits with a sign."""
    assert 0 < origin.encode() < 1 << 63
    assert Origin.decode(origin.encode()) == origin


@given(st.integers(-(1 << 63), (1 << 55) - 1))
def test_other_values_hold_no_segment(value: int) -> None:
    """0, which records of other sources have, and values of other publishers."""
    assert Origin.decode(value) is None


def test_numbers_that_do_not_fit_are_refused() -> None:
    """Rather than another segment's."""
    for segment_id, size in ((0, 1), (1 << 24, 1), (1, 0), (1, 1 << 31)):
        with pytest.raises(CodecError, match=f"segment {segment_id} of {size} bytes"):
            Origin(segment_id, size, LATEST, False).encode()
    assert Origin.decode(Origin(1, 1, LATEST, True, 9).encode()) == Origin(1, 1, LATEST, True, 7)
