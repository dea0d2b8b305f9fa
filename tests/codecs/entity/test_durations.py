"""Durations in the form of Scala's finite durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aerotape.codecs.entity.durations import format_expire_after, parse_expire_after
from aerotape.errors import CodecError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 day", 86_400),
        ("2 days", 172_800),
        ("24 hours", 86_400),
        ("1.5 hours", 5_400),
        ("90 minutes", 5_400),
        ("90min", 5_400),
        ("10 seconds", 10),
        ("5s", 5),
        ("2000 milliseconds", 2),
        ("2000 ms", 2),
        (1500, 1.5),
    ],
)
def test_parse(text: str | int, seconds: float) -> None:
    """Units have long and short names; a bare number is milliseconds."""
    assert parse_expire_after(text) == seconds * 1_000_000_000


@pytest.mark.parametrize(
    "value", ["", "day", "1", "-1 day", "0 days", "Inf", "1 year", None, 0, True]
)
def test_no_duration(value: object) -> None:
    """Anything else is refused with its text."""
    with pytest.raises(CodecError, match=repr(value) if value else None):
        parse_expire_after(value)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (86_400_000_000_000, "1 day"),
        (172_800_000_000_000, "2 days"),
        (5_400_000_000_000, "90 minutes"),
        (1_500_000_000, "1500 milliseconds"),
        (1, "1 nanosecond"),
    ],
)
def test_format(duration_ns: int, text: str) -> None:
    """The text has the largest unit that is whole."""
    assert format_expire_after(duration_ns) == text


@given(st.integers(1, (1 << 63) - 1))
def test_round_trips(duration_ns: int) -> None:
    """A duration is parsed as it was formatted."""
    assert parse_expire_after(format_expire_after(duration_ns)) == duration_ns
