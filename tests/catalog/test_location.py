"""Paths and URLs of archive directories."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from aerotape.catalog.location import StorageOptions, absolute_location, parse_location
from aerotape.errors import ConfigurationError
from aerotape.url_path import UrlPath


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE://localhost/a/b", "/a/b"),
        ("/a/b:/c", "/a/b:/c"),
        ("tapes/b:c", str(Path.cwd() / "tapes/b:c")),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("S3A://bucket/a", "s3a://bucket/a"),
        ("hdfs://name:8020/a", "hdfs://name:8020/a"),
        ("hdfs://me@[fe80::1]:8020/a:b", "hdfs://me@[fe80::1]:8020/a:b"),
        ("hdfs:///a", "hdfs://default/a"),
        ("hdfs:/a", "hdfs://default/a"),
        ("hdfs://", "hdfs://default"),
        ("file:/", "/"),
        ("memory://a", "memory://a"),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net/a",
        ),
    ],
)
def test_a_location_is_normalized(given: str, location: str) -> None:
    """Local paths become absolute, URLs are normalized, and the result does not change again."""
    assert absolute_location(given) == location
    assert absolute_location(location) == location


def test_an_empty_path_is_not_the_current_directory() -> None:
    """It usually comes from an unset variable."""
    with pytest.raises(ConfigurationError, match="OUT: an empty path names no folder"):
        parse_location("", "OUT")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("s3://", "OUT: 's3://' names no bucket; write s3://BUCKET/FOLDER"),
        ("s3:///archive", "OUT: 's3:///archive' names no bucket; write s3://BUCKET/FOLDER"),
        ("gs:/", "OUT: 'gs:/' names no bucket; write gs://BUCKET/FOLDER"),
        ("abfss://", "OUT: 'abfss://' names no container; write abfss://CONTAINER@ACCOUNT.dfs"),
        ("sftp://", "OUT: 'sftp://' names no host; write sftp://HOST/FOLDER"),
        ("file://", "OUT: 'file://' names no path; write file:///FOLDER"),
        ("file://localhost", "OUT: 'file://localhost' names no path; write file:///FOLDER"),
    ],
)
def test_an_incomplete_url_is_refused(url: str, complaint: str) -> None:
    """It usually comes from an unset variable, too, and does not mean the current directory."""
    with pytest.raises(ConfigurationError, match=f"^{re.escape(complaint)}"):
        parse_location(url, "OUT")


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKID:hush-hush@bucket/archive",
        "sftp://me:hush-hush@host/archive",
        "s3://bucket/archive?secret_key=hush-hush",
        "s3://bucket?secret_key=hush-hush",
        "s3://bucket?hush-hush/prefix",
        "s3://AKIA:hush/hush@bucket/archive",
        "s3:/AKIA:hush-hush@bucket",
        "s3:///AKIA:hush-hush@bucket",
    ],
)
def test_urls_with_secrets_are_refused(url: str) -> None:
    """Every error that names the location would print them; this error does not show them
    either."""
    with pytest.raises(ConfigurationError, match=r"path: the s.* URL holds .*storage") as raised:
        parse_location(url)
    assert "hush" not in str(raised.value)


def test_paths_below_a_url_print_as_urls() -> None:
    """Errors name the URL that the user gave, also after pickling."""
    path = parse_location("s3://bucket/prefix") / "3-0.rec"
    assert isinstance(path, UrlPath)
    assert (str(path), f"{path}", path.name) == ("s3://bucket/prefix/3-0.rec",) * 2 + ("3-0.rec",)
    assert str(pickle.loads(pickle.dumps(path))) == "s3://bucket/prefix/3-0.rec"


def test_storage_options_do_not_show_their_values() -> None:
    """Neither their representation nor a message that quotes them shows a secret."""
    options = StorageOptions.of({"secret_key": "s3cret-value", "region": "eu-west-1"})
    assert "s3cret" not in f"{options!r} {options}"
    assert options.redacted("bad s3cret-value in eu-west-1") == "bad … in eu-west-1"
    assert options == StorageOptions.of({"region": "eu-west-1", "secret_key": "s3cret-value"})
