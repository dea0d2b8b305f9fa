"""Options that only streaming queries have.

========================  ===========================================================  ==========
option                    meaning                                                      default
========================  ===========================================================  ==========
``startingPosition``      where a new query begins in recordings that are there:       earliest
                          ``earliest`` or ``latest``
``maxBytesPerTrigger``    bytes of recording that a batch may have                     all
``maxMessagesPerTrigger`` messages that a batch may have                               all
``failOnDataLoss``        whether a query fails when something that it has not read    true
                          is lost; if not, it continues without
========================  ===========================================================  ==========

Those of `aerotape.spark.source.options` apply too, but for ``toPosition``: a stream has no end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aerotape.errors import ConfigurationError
from aerotape.spark.source.options import STREAM_NAMES, digits, parse_partition_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How a streaming query follows an archive directory.

    Attributes:
        given: names of the options that were given.
        starts_latest: a new query leaves out what is recorded when it starts.
        max_bytes: bytes of recording in a batch, all when None.
        max_messages: messages in a batch, all when None.
        fail_on_data_loss: whether to fail when something is gone before it was read.
    """

    given: tuple[str, ...] = ()
    starts_latest: bool = False
    max_bytes: int | None = None
    max_messages: int | None = None
    fail_on_data_loss: bool = True

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamOptions:
        """Parse those of the data source's options that are about streams; names in any case.

        Raises:
            ConfigurationError: an option has a value that cannot be.
        """
        names = {name.lower(): name for name in STREAM_NAMES}
        given = {names[key.lower()]: options[key] for key in options if key.lower() in names}
        start = _choice(given, "startingPosition", ("earliest", "latest"))
        return cls(
            given=tuple(given),
            starts_latest=start == "latest",
            max_bytes=_optional(given, "maxBytesPerTrigger", parse_partition_bytes),
            max_messages=_optional(given, "maxMessagesPerTrigger", _count),
            fail_on_data_loss=_choice(given, "failOnDataLoss", ("true", "false")) == "true",
        )


def _optional(given: Mapping[str, str], name: str, parse: Callable[[str, str], int]) -> int | None:
    return parse(given[name], name) if name in given else None


def _count(text: str, name: str) -> int:
    count = digits(text)
    if not count:
        raise ConfigurationError(f"{name}: {text!r} is not a positive whole number", name)
    return count


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option, in lower case; the first of the choices by default."""
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise ConfigurationError(
            f"{name}: {given[name]!r} is not one of {', '.join(choices)}", name
        )
    return value
