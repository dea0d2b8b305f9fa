"""Sizes and durations in the syntax of Aeron's properties and channel URIs."""

from __future__ import annotations

import pytest

from aerotape.errors import ConfigurationError
from aerotape.units import format_duration, format_size, parse_duration_ns, parse_size


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("128m", 134_217_728), ("1K", 1024), ("1408", 1408)]
)
def test_sizes(text: str, size: int) -> None:
    """Suffixes in either case are powers of 1024, as in Agrona's SystemUtil."""
    assert parse_size("p", text) == size


@pytest.mark.parametrize(
    "text",
    [
        *("", "k", "-1", "1gb", "1.5k", " 5", "5k ", "99999999999g", "٣"),
        pytest.param("9" * 5000, id="thousands of digits"),
    ],
)
def test_invalid_sizes(text: str) -> None:
    """Texts that Agrona refuses are errors that name the property."""
    with pytest.raises(ConfigurationError) as caught:
        parse_size("aeron.x", text)
    assert caught.value.name == "aeron.x"


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("10s", 10**10),
        ("5", 5),
        ("1us", 1000),
        ("1Ms", 10**6),
        ("10000000000s", 2**63 - 1),
        pytest.param("9" * 5000 + "s", 2**63 - 1, id="thousands of digits"),
    ],
)
def test_durations(text: str, duration_ns: int) -> None:
    """Units become nanoseconds; too long a duration becomes the longest."""
    assert parse_duration_ns("p", text) == duration_ns


@pytest.mark.parametrize("text", ["", "s", "1m", "-1", "1 s"])
def test_invalid_durations(text: str) -> None:
    """Minutes and signs are not durations."""
    with pytest.raises(ConfigurationError):
        parse_duration_ns("p", text)


def test_formatting_uses_the_largest_whole_unit() -> None:
    """Values are formatted as Agrona prints them into stripped channels."""
    assert [format_size(size) for size in (0, 1023, 1024, 1408, 65536, 1 << 20, 3 << 30)] == [
        "0", "1023", "1k", "1408", "64k", "1m", "3g",
    ]  # fmt: skip
    durations = (0, 999, 1000, 1500, 10**6, 5 * 10**9, 60 * 10**9)
    assert [format_duration(duration) for duration in durations] == [
        "0ns", "999ns", "1us", "1500ns", "1ms", "5s", "60s",
    ]  # fmt: skip
