"""Options of streaming queries only, beside those of `aerotape.spark.source.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from aerotape.replay.offline.option_text import integer, truth, word
from aerotape.spark.source.options import STREAM_NAMES, optional, parse_partition_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The options by which a streaming query follows an archive directory.

    Attributes:
        given: names of the options that were given.
        starts_latest: a new query leaves out what is recorded when it starts.
        max_bytes: maximum bytes of recording in a batch, None for no limit.
        max_messages: maximum messages in a batch, None for no limit.
        fail_on_data_loss: whether to fail when messages were deleted before they were read.
    """

    given: tuple[str, ...] = ()
    starts_latest: bool = False
    max_bytes: int | None = None
    max_messages: int | None = None
    fail_on_data_loss: bool = True

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamOptions:
        """Parse the streaming options of the data source's options; names in any case.

        Raises:
            ConfigurationError: an option has an invalid value.
        """
        names = {name.lower(): name for name in STREAM_NAMES}
        given = {names[key.lower()]: options[key] for key in options if key.lower() in names}
        start = given.get("startingPosition", "earliest")
        fail = given.get("failOnDataLoss", "true")
        return cls(
            given=tuple(given),
            starts_latest=word(start, "startingPosition", ("earliest", "latest")) == "latest",
            max_bytes=optional(given, "maxBytesPerTrigger", parse_partition_bytes),
            max_messages=optional(given, "maxMessagesPerTrigger", partial(integer, least=1)),
            fail_on_data_loss=truth(fail, "failOnDataLoss"),
        )
