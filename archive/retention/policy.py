"""The retention policy: a TOML file, described in docs/retention.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aerotape.archive.config.property_names import RETENTION_FILE, nearest
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import ConfigurationError
from aerotape.units import MAX_LONG, SIZE_FACTORS

_AMOUNT: Final = re.compile("([0-9]{1,19}) *([a-z]?)")
_SIZE_FACTORS: Final = {"": 1, **SIZE_FACTORS, "t": 1 << 40}
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
    """A limit: bytes, nanoseconds or a number of recordings, with its text in the file."""

    value: int
    text: str


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The limits of the recordings that match, or `keep`. As in the file.

    Attributes:
        channel: empty matches all.
        stream_ids: empty matches all.
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
        """Whether the rule matches a recording."""
        return self.channel in descriptor.original_channel and (
            not self.stream_ids or descriptor.stream_id in self.stream_ids
        )


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """A whole policy.

    Attributes:
        rules: the first that matches a recording applies.
        max_directory_size: storage of all segment files, bytes; None: no limit.
        min_age_ns: younger data is retained, nanoseconds.
    """

    rules: tuple[RetentionRule, ...] = ()
    max_directory_size: Limit | None = None
    min_age_ns: int = 0

    def rule_of(self, descriptor: RecordingDescriptor) -> RetentionRule | None:
        """Return the rule that applies to a recording, None when there is none."""
        return next((rule for rule in self.rules if rule.fits(descriptor)), None)


def read_policy(path: Path) -> RetentionPolicy:
    """Read a policy and check it.

    Raises:
        ConfigurationError: the file cannot be read, or its content is invalid.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(path, f"is not TOML: {error}") from error
    table = _Table(path, "", values, ("min_age", "directory", "rule"))
    directory, rules = values.get("directory", {}), values.get("rule", [])
    if not isinstance(directory, dict):
        raise _invalid(path, "has a directory that is not a table: write [directory]")
    if not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        raise _invalid(path, "has a rule that is not a list of tables: write [[rule]]")
    max_size = _Table(path, "[directory]: ", directory, ("max_size",)).size("max_size")
    if max_size is None and not rules:
        raise _invalid(path, "has no limit: give a [[rule]], or max_size of the [directory]")
    min_age = table.age("min_age")
    return RetentionPolicy(
        tuple(_rule(path, number, each) for number, each in enumerate(rules, 1)),
        max_size,
        min_age.value if min_age else 0,
    )


def _rule(path: Path, number: int, values: Mapping[str, Any]) -> RetentionRule:
    table = _Table(path, f"rule {number}: ", values, _RULE_KEYS)
    keep = values.get("keep", False)
    if not isinstance(keep, bool):
        raise table.invalid(f"keep={keep!r} must be true or false")
    limits = [key for key in _LIMITS if key in values]
    if keep and limits:
        raise table.invalid(f"keep and {limits[0]} contradict each other: give one")
    if not keep and not limits:
        raise table.invalid(f"has no limit: give one of {', '.join(_LIMITS)}, or keep")
    return RetentionRule(
        table.text("name") or str(number),
        channel=table.text("channel"),
        stream_ids=table.stream_ids("stream_id"),
        max_age=table.age("max_age"),
        max_recording_size=table.size("max_recording_size"),
        max_stream_size=table.size("max_stream_size"),
        max_recordings=table.count("max_recordings"),
        keep=keep,
    )


def _invalid(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"retention policy {path} {problem}", RETENTION_FILE)


class _Table:
    """A table of the file; the readers check a value, and return None where it is absent."""

    def __init__(
        self, path: Path, where: str, values: Mapping[str, Any], known: tuple[str, ...]
    ) -> None:
        self._path = path
        self._where = where
        self._values = values
        for key in values:
            if key not in known:
                raise self.invalid(f"unknown key {key!r}{nearest(key, known)}")

    def invalid(self, problem: str) -> ConfigurationError:
        return _invalid(self._path, self._where + problem)

    def text(self, key: str) -> str:
        value = self._values.get(key, "")
        if not isinstance(value, str):
            raise self.invalid(f"{key}={value!r} must be text in quotes")
        return value

    def stream_ids(self, key: str) -> frozenset[int]:
        value = self._values.get(key, [])
        found = value if isinstance(value, list) else [value]
        for each in found:
            if not _is_integer(each) or not -(1 << 31) <= each < 1 << 31:
                raise self.invalid(f"{key}={each!r} is not a stream id: 32 bits, or a list")
        if not found and key in self._values:
            raise self.invalid(f"{key} is an empty list: leave it out to match all")
        return frozenset(found)

    def size(self, key: str) -> Limit | None:
        return self._amount(key, _SIZE_FACTORS, 'not a size: write "500g" (k, m, g, t)')

    def age(self, key: str) -> Limit | None:
        return self._amount(key, _AGE_FACTORS, 'not an age: write "7d" (s, m, h, d, w)')

    def count(self, key: str) -> Limit | None:
        value = self._values.get(key)
        if value is not None and not _is_integer(value):
            raise self.invalid(f"{key}={value!r} must be a number")
        return None if value is None else self._limit(key, value, str(value))

    def _amount(self, key: str, factors: Mapping[str, int], problem: str) -> Limit | None:
        given = self._values.get(key)
        if given is None:
            return None
        text = str(given) if _is_integer(given) else given
        match = _AMOUNT.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        if match is None or match[2] not in factors:
            raise self.invalid(f"{key}={given!r} is {problem}")
        return self._limit(key, int(match[1]) * factors[match[2]], str(text))

    def _limit(self, key: str, value: int, text: str) -> Limit:
        if not 0 < value <= MAX_LONG:
            raise self.invalid(f"{key}={text} must be positive and have 64 bits at most")
        return Limit(value, text)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
