"""Retention policies: the syntax of a policy file, and the errors for an invalid one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aerotape.archive.retention.policy import Limit, RetentionPolicy, RetentionRule, read_policy
from aerotape.errors import ConfigurationError

HOUR_NS = 3_600 * 10**9


def policy(folder: Path, text: str) -> RetentionPolicy:
    path = folder / "retention.toml"
    path.write_text(text, encoding="utf-8")
    return read_policy(path)


def test_a_policy_with_all_settings(tmp_path: Path) -> None:
    read = policy(
        tmp_path,
        """
        min_age = "1h"
        [directory]
        max_size = "500g"
        [[rule]]
        name = "ticks"
        channel = "239.1.1.1"
        stream_id = [1001, -2]
        max_age = "7d"
        max_recording_size = 4096
        max_stream_size = "1T"
        max_recordings = 20
        [[rule]]
        stream_id = 7
        keep = true
        """,
    )
    assert read == RetentionPolicy(
        rules=(
            RetentionRule(
                "ticks",
                channel="239.1.1.1",
                stream_ids=frozenset({1001, -2}),
                max_age=Limit(7 * 24 * HOUR_NS, "7d"),
                max_recording_size=Limit(4096, "4096"),
                max_stream_size=Limit(1 << 40, "1T"),
                max_recordings=Limit(20, "20"),
            ),
            RetentionRule("2", stream_ids=frozenset({7}), keep=True),
        ),
        max_directory_size=Limit(500 << 30, "500g"),
        min_age_ns=HOUR_NS,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no limit"),
        ("[[rule]\n", "is not TOML"),
        ("rule = 3", "write [[rule]]"),
        ("directory = 3", "write [directory]"),
        ("[[rule]]\nmaxage = '7d'", "rule 1: unknown key 'maxage': did you mean max_age?"),
        ("[directory]\nsize = '7g'", "[directory]: unknown key 'size'"),
        ("[[rule]]\nname = 'a'", "rule 1: has no limit"),
        ("[[rule]]\nkeep = true\nmax_age = '7d'", "keep and max_age contradict each other"),
        ("[[rule]]\nkeep = 1", "keep=1 must be true or false"),
        ("[[rule]]\nmax_age = 7", "max_age=7 is not an age"),
        ("[[rule]]\nmax_age = '7'", "max_age='7' is not an age"),
        ("[[rule]]\nmax_age = '7y'", "max_age='7y' is not an age"),
        ("[[rule]]\nmax_age = '-7d'", "is not an age"),
        ("[[rule]]\nmax_age = '0d'", "max_age=0d must be positive"),
        ("[[rule]]\nmax_age = '9999999999999999999w'", "64 bits at most"),
        ("[[rule]]\nmax_recording_size = '7x'", "max_recording_size='7x' is not a size"),
        ("[[rule]]\nmax_stream_size = 0", "max_stream_size=0 must be positive"),
        ("[[rule]]\nmax_recordings = true", "max_recordings=True must be a number"),
        ("[[rule]]\nmax_recordings = 1\nchannel = 3", "channel=3 must be text"),
        ("[[rule]]\nmax_recordings = 1\nstream_id = '3'", "stream_id='3' is not a stream id"),
        ("[[rule]]\nmax_recordings = 1\nstream_id = 3000000000", "is not a stream id"),
        ("[[rule]]\nmax_recordings = 1\nstream_id = []", "empty list"),
    ],
)
def test_an_invalid_policy_is_reported_with_file_and_place(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy(tmp_path, text)
    assert expected in str(caught.value)
    assert str(tmp_path / "retention.toml") in str(caught.value)


def test_a_missing_file_and_one_that_is_not_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_policy(tmp_path / "none.toml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        read_policy(tmp_path / "bytes")
