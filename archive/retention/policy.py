"""The retention policy: a TOML file that says how much of which recordings is to be kept.

    min_age = "1h"                  # nothing that was recorded since goes, whatever is said below

    [directory]
    max_size = "500g"               # of all segment files

    [[rule]]
    name = "market data"            # for messages; its number when left out
    channel = "239.1.1.1"           # a part of the channel that was asked to be recorded
    stream_id = [1001, 1002]        # or one
    max_age = "7d"
    max_recording_size = "100g"     # of each recording
    max_stream_size = "1t"          # of all recordings of one channel and stream id together
    max_recordings = 20             # of one channel and stream id

    [[rule]]
    stream_id = 7
    keep = true                     # nothing of these goes, not even for the directory's sake

The first rule that fits a recording is the one that holds for it; without `channel` and `stream_id`
it fits all. Sizes are bytes, or have k, m, g or t (powers of 1024). Ages have s, m, h, d or w.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aerotape.archive.config.property_table import RETENTION_FILE, nearest
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import ConfigurationError

_MAX_FILE_LENGTH: Final = 1 << 20
_MAX_LONG: Final = (1 << 63) - 1
_SIZE_FACTORS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECOND_NS: Final = 1_000_000_000
_AGE_FACTORS: Final = {
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3_600 * _SECOND_NS,
    "d": 86_400 * _SECOND_NS,
    "w": 604_800 * _SECOND_NS,
}
_LIMITS: Final = ("max_age", "max_recording_size", "max_stream_size", "max_recordings")
_RULE_KEYS: Final = ("name", "channel", "stream_id", *_LIMITS, "keep")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, and how it was written.

    Attributes:
        value: bytes, nanoseconds or a number of recordings.
        text: for messages.
    """

    value: int
    text: str


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """What is kept of the recordings that fit.

    Attributes:
        name: for messages.
        channel: what the original channel contains; empty fits all.
        stream_ids: empty fits all.
        max_age: what was recorded longer ago goes, nanoseconds.
        max_recording_size: storage of each recording, bytes.
        max_stream_size: storage of all recordings of one channel and stream id, bytes.
        max_recordings: how many recordings there may be of one channel and stream id.
        keep: nothing goes.
    """

    name: str
    channel: str = ""
    stream_ids: frozenset[int] = frozenset()
    max_age: Limit | None = None
    max_recording_size: Limit | None = None
    max_stream_size: Limit | None = None
    max_recordings: Limit | None = None
    keep: bool = False

    def fits(self, descriptor: RecordingDescriptor) -> bool:
        """Whether the rule is for a recording."""
        return self.channel in descriptor.original_channel and (
            not self.stream_ids or descriptor.stream_id in self.stream_ids
        )


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """A whole policy.

    Attributes:
        rules: the first that fits a recording holds for it.
        max_directory_size: storage of all segment files, bytes; None without a limit.
        min_age_ns: nothing younger goes, nanoseconds.
    """

    rules: tuple[RetentionRule, ...] = ()
    max_directory_size: Limit | None = None
    min_age_ns: int = 0

    def rule_of(self, descriptor: RecordingDescriptor) -> RetentionRule | None:
        """Return the rule that holds for a recording."""
        return next((rule for rule in self.rules if rule.fits(descriptor)), None)


def read_policy(path: Path) -> RetentionPolicy:
    """Read a policy and check it.

    Raises:
        ConfigurationError: the file cannot be read, or something in it cannot be.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_LENGTH + 1)
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_LENGTH:
        raise _invalid(path, f"is longer than {_MAX_FILE_LENGTH} bytes")
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _invalid(path, f"is not TOML: {error}") from error
    except RecursionError as error:
        raise _invalid(path, "is nested too deeply") from error
    return _policy(path, table)


def _invalid(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"retention policy {path} {problem}", RETENTION_FILE)


def _policy(path: Path, table: Mapping[str, Any]) -> RetentionPolicy:
    _check_keys(path, "", table, ("min_age", "directory", "rule"))
    directory = table.get("directory", {})
    if not isinstance(directory, dict):
        raise _invalid(path, "has a directory that is no table: write [directory]")
    _check_keys(path, "[directory]: ", directory, ("max_size",))
    tables = table.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise _invalid(path, "has a rule that is no list of tables: write [[rule]]")
    max_size = _size(path, "[directory]: ", directory, "max_size")
    min_age = _age(path, "", table, "min_age")
    rules = tuple(_rule(path, number, each) for number, each in enumerate(tables, 1))
    if max_size is None and not rules:
        raise _invalid(path, "says nothing: it has no [[rule]] and no max_size of the [directory]")
    return RetentionPolicy(rules, max_size, min_age.value if min_age else 0)


def _rule(path: Path, number: int, table: Mapping[str, Any]) -> RetentionRule:
    where = f"rule {number}: "
    _check_keys(path, where, table, _RULE_KEYS)
    name = _text(path, where, table, "name") or str(number)
    keep = table.get("keep", False)
    if not isinstance(keep, bool):
        raise _invalid(path, f"{where}keep={keep!r} must be true or false")
    limits = [key for key in _LIMITS if key in table]
    if keep and limits:
        raise _invalid(path, f"{where}keep and {limits[0]} contradict each other: give one")
    if not keep and not limits:
        raise _invalid(path, f"{where}has no limit: give one of {', '.join(_LIMITS)}, or keep")
    return RetentionRule(
        name,
        channel=_text(path, where, table, "channel"),
        stream_ids=_stream_ids(path, where, table),
        max_age=_age(path, where, table, "max_age"),
        max_recording_size=_size(path, where, table, "max_recording_size"),
        max_stream_size=_size(path, where, table, "max_stream_size"),
        max_recordings=_count(path, where, table, "max_recordings"),
        keep=keep,
    )


def _check_keys(path: Path, where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise _invalid(path, f"{where}knows no {key!r}{nearest(key, known)}")


def _text(path: Path, where: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _invalid(path, f"{where}{key}={value!r} must be text in quotes")
    return value


def _stream_ids(path: Path, where: str, table: Mapping[str, Any]) -> frozenset[int]:
    value = table.get("stream_id", [])
    found = value if isinstance(value, list) else [value]
    for each in found:
        if not _is_integer(each) or not -(1 << 31) <= each < 1 << 31:
            raise _invalid(path, f"{where}stream_id={each!r} is no stream id: 32 bits, or a list")
    if isinstance(value, list) and not value and "stream_id" in table:
        raise _invalid(path, f"{where}stream_id is an empty list: leave it out to fit all")
    return frozenset(found)


def _size(path: Path, where: str, table: Mapping[str, Any], key: str) -> Limit | None:
    if key not in table:
        return None
    value = table[key]
    text = str(value) if _is_integer(value) else value
    found = _with_unit(text, _SIZE_FACTORS)
    if found is None:
        raise _invalid(path, f'{where}{key}={value!r} is no size: write "500g" (k, m, g, t)')
    return _limit(path, where, key, found, text)


def _age(path: Path, where: str, table: Mapping[str, Any], key: str) -> Limit | None:
    if key not in table:
        return None
    found = _with_unit(table[key], _AGE_FACTORS)
    if found is None:
        raise _invalid(path, f'{where}{key}={table[key]!r} is no age: write "7d" (s, m, h, d, w)')
    return _limit(path, where, key, found, table[key])


def _count(path: Path, where: str, table: Mapping[str, Any], key: str) -> Limit | None:
    if key not in table:
        return None
    value = table[key]
    if not _is_integer(value):
        raise _invalid(path, f"{where}{key}={value!r} must be a number")
    return _limit(path, where, key, value, str(value))


def _limit(path: Path, where: str, key: str, value: int, text: str) -> Limit:
    if not 0 < value <= _MAX_LONG:
        raise _invalid(path, f"{where}{key}={text} must be more than nothing and 64 bits at most")
    return Limit(value, text)


def _with_unit(text: object, factors: Mapping[str, int]) -> int | None:
    if not isinstance(text, str):
        return None
    digits = text.strip().rstrip("kmgtshdwKMGTSHDW")
    factor = factors.get(text.strip()[len(digits) :].strip().lower())
    digits = digits.strip()
    if factor is None or not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return None
    return int(digits) * factor


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
