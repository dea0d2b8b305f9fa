"""Parsing and formatting of wall-clock times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aerotape.errors import ConfigurationError
from aerotape.times import TimeRange, format_time, parse_time, time_ns

# 2026-03-01T09:30:00Z by `date -u -d … +%s`.
NINE_THIRTY_S = 1_772_357_400
NINE_THIRTY_NS = NINE_THIRTY_S * 10**9


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T09:30:00Z",
        "2026-03-01T09:30Z",
        "2026-03-01 09:30 Z",
        "20260301T093000z",
        "2026-03-01T10:30+01:00",
        "2026-03-01T10:30:00.000+0100",
        "2026-03-01T01:30-08",
        "1772357400s",
        "1772357400000",
        "1772357400000ms",
        "1772357400000000 us",
        "1772357400000000000",
    ],
)
def test_one_time_in_many_notations(text: str) -> None:
    assert parse_time(text) == NINE_THIRTY_NS


def test_fractions_of_a_second_have_nanosecond_precision() -> None:
    assert parse_time("2026-03-01T09:30:00.123456789Z") == NINE_THIRTY_NS + 123_456_789
    assert parse_time("2026-03-01T09:30:00,5Z") == NINE_THIRTY_NS + 500_000_000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2026-03-01T09:30:00", "no time zone"),
        ("2026-03-01 09:30", "no time zone"),
        ("2026-03-01", "is not a valid time"),
        ("1772357400", "1772357400s, 1772357400ms"),
        ("1772357400000000", "could be"),
        ("20260301", "could be"),
        ("2026-02-30T00:00Z", "day is out of range"),
        ("2026-03-01T09:30.5Z", "fraction but no seconds"),
        ("99999999999999999999s", "1970 and 2262"),
        ("1960-01-01T00:00Z", "1970 and 2262"),
        ("99999d", "1970 and 2262"),
        ("-10", "is not a valid time"),
        ("-5ms", "is not a valid time"),
        ("yesterday", "is not a valid time"),
        ("", "is not a valid time"),
    ],
)
def test_invalid_and_ambiguous_times_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        parse_time(text, "--from-time")
    assert str(caught.value).startswith("--from-time: ")
    assert caught.value.name == "--from-time"


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [
        ("now", 0), ("10m", 600), ("-10m", 600), ("2h", 7200), ("-2h", 7200), ("-90s", 90),
        ("3d", 259_200), ("-1 d", 86_400), ("today", 9.5 * 3600),
    ],
)  # fmt: skip
def test_times_relative_to_now(text: str, ago_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before now; few seconds without a sign are refused, as they would be those of 1970."""
    monkeypatch.setattr("time.time_ns", lambda: NINE_THIRTY_NS)
    assert parse_time(text) == NINE_THIRTY_NS - int(ago_s * 10**9)
    with pytest.raises(ConfigurationError, match="-90s"):
        parse_time("90s")
    assert parse_time("123456789s") == 123456789 * 10**9


def test_python_times_have_a_zone_or_are_nanoseconds() -> None:
    moment = datetime(2026, 3, 1, 9, 30, 0, 250, tzinfo=UTC)
    assert time_ns(moment) == NINE_THIRTY_NS + 250_000
    assert time_ns(moment.astimezone(timezone(timedelta(hours=-5)))) == NINE_THIRTY_NS + 250_000
    assert time_ns(NINE_THIRTY_NS) == NINE_THIRTY_NS
    with pytest.raises(ConfigurationError, match="no time zone"):
        time_ns(datetime(2026, 3, 1, 9, 30))
    for nonsense in (True, 1.5, -1):
        with pytest.raises(ConfigurationError):
            time_ns(nonsense)  # type: ignore[arg-type]


def test_pandas_timestamps_retain_nanoseconds() -> None:
    pandas = pytest.importorskip("pandas")
    assert time_ns(pandas.Timestamp(NINE_THIRTY_NS + 7, tz="UTC")) == NINE_THIRTY_NS + 7


@given(st.integers(0, (1 << 63) - 1))
def test_formatted_times_are_parsed_unchanged(time: int) -> None:
    assert parse_time(format_time(time)) == time


def test_a_range_that_ends_before_its_start_is_refused() -> None:
    assert not TimeRange()
    assert TimeRange.of("2026-03-01T09:30Z", None) == TimeRange(NINE_THIRTY_NS, None)
    with pytest.raises(ConfigurationError, match="goes backwards: from 2026-03-01T09:30:00"):
        TimeRange.of("2026-03-01T09:30Z", "2026-03-01T09:29Z")
