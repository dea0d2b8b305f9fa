"""The selection of messages: one value that every surface of reading parses into and passes on.

Surfaces are the methods of `Recording`, `scan_polars`, the data source of Spark, commands and REST.
A surface has a function that spells the names of options (`fromPosition`, `--from-position`), and
names the options that it has. It parses their texts by `OPTIONS` and creates a `Selection`, which
checks values and combinations; `SelectionError.spelled` reports these with the surface's names.
An option that a surface does not have is refused with its name.

Recordings are chosen by `aerotape.replay.offline.choosing`, the range of a recording is found by
`aerotape.replay.offline.reader.recording_range`, and rows are built by
`aerotape.replay.offline.table`. Without the native core, which planning does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from aerotape.channel_uri import alias_of
from aerotape.errors import ConfigurationError
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline import option_text
from aerotape.replay.offline.read_mode import MODES, Mode, parse_mode
from aerotape.times import ALL_TIMES, TimeLike, TimeRange, parse_time, time_ns

if TYPE_CHECKING:
    from typing import Self

    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.codecs.payload_plan import EnumColumns, SetColumns, Types
    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.replay.offline.seek import SeekTarget

Others = Literal["drop", "null"]
"""Treatment of messages of other templates and schemas: ``drop`` leaves them out, ``null`` returns
rows whose typed columns are null."""

Spell = Callable[[str], str]
"""Returns the name that an option has in a surface, from its name here."""

_OF_SCHEMAS: Final = {
    "template": None, "others": "drop", "types": "semantic", "enums": "name", "sets": "struct",
    "timestamps": None, "text_encoding": None,
}  # fmt: skip
_OF_READING_A_SCHEMA: Final = (
    "template", "types", "enums", "sets", "timestamps", "text_encoding",
)  # fmt: skip
_CHECKSUMS: Final = get_args(ChecksumName)
_NOT_NEGATIVE: Final = ("from_position", "to_position", "from_index", "from_asqn", "last", "first")
# A selection is created for each read of a small recording, too.
_numbers: Final = attrgetter(*_NOT_NEGATIVE)
_payload_options: Final = attrgetter("payload", *_OF_SCHEMAS)
_NO_PAYLOAD_OPTIONS: Final = (None, *_OF_SCHEMAS.values())


class SelectionError(ConfigurationError):
    """Options with values that cannot be used, or not with each other."""

    def __init__(self, text: str, name: str) -> None:
        """Create it with the names of this module.

        Args:
            text: the message, in which a name in braces is that of an option.
            name: the option.
        """
        super().__init__(_spelled(text, str), name)
        self._text = text

    def spelled(self, spell: Spell) -> ConfigurationError:
        """Return the error with the names of a surface."""
        return ConfigurationError(_spelled(self._text, spell), spell(self.name))


def _quoted(value: object) -> str:
    """Return a value for the text of a `SelectionError`."""
    return repr(value).replace("{", "{{").replace("}", "}}")


def _spelled(text: str, spell: Spell) -> str:
    return text.format_map({name: spell(name) for name in OPTIONS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which messages are read, and how.

    Attributes:
        recording_ids: only these recordings, each of which must exist; None: all.
        scope_ids: recordings of these scopes, unsigned, all if empty; None: the archive's own.
        channel: only recordings whose original channel contains this.
        alias: only recordings whose original channel has this parameter `alias`.
        stream_id: only recordings of this stream.
        session_id: only recordings of this session.
        live: only recordings without a stop position (True) or with one (False).
        from_position: messages that begin at a lower position are left out, bytes.
        to_position: messages that begin there or at a higher position are left out, bytes.
        from_time: messages that were certainly recorded before are left out; nanoseconds since
            1970, once created.
        to_time: messages that were certainly recorded then or later are left out; as `from_time`.
        from_index: of a raft journal, begin at this index (`aerotape.replay.offline.seek`).
        from_asqn: of a raft journal, begin at the record with the highest asqn up to this one.
        last: of each recording only the newest of these messages, so many.
        first: of each recording only the first of these messages, so many.
        columns: names of columns, in output order; None: the default ones.
        schema: an SBE schema whose fields become columns: path or URL, or one that was read.
        template: name or id of the message of the schema; None: all.
        others: messages of other templates and schemas are left out, or rows of nulls.
        types: types of columns of decimals, timestamps and dates.
        enums: columns of enums are names or numbers.
        sets: columns of sets are structs or numbers.
        timestamps: names of fields that are timestamps although the schema does not say so, each
            with its unit (`aerotape.codecs.schema_options`).
        text_encoding: of texts for which the schema has none, or US-ASCII.
        payload: "raft-journal" for the columns of its records, instead of a schema.
        checksum: the checksum by which frames are verified.
        mode: treatment of messages with a frame that fails it, and of payloads that do not match
            their schema.
        times: `from_time` and `to_time`.
    """

    recording_ids: tuple[int, ...] | None = None
    scope_ids: tuple[int, ...] | None = None
    channel: str | None = None
    alias: str | None = None
    stream_id: int | None = None
    session_id: int | None = None
    live: bool | None = None
    from_position: int | None = None
    to_position: int | None = None
    from_time: TimeLike | None = None
    to_time: TimeLike | None = None
    from_index: int | None = None
    from_asqn: int | None = None
    last: int | None = None
    first: int | None = None
    columns: Sequence[str] | None = None
    schema: PayloadSchema | str | Path | None = None
    template: str | int | None = None
    others: Others = "drop"
    types: Types = "semantic"
    enums: EnumColumns = "name"
    sets: SetColumns = "struct"
    timestamps: Mapping[str, str] | None = None
    text_encoding: str | None = None
    payload: str | None = None
    checksum: ChecksumName = "none"
    mode: Mode = "FAILFAST"
    times: TimeRange = field(init=False, repr=False, compare=False, default=ALL_TIMES)

    def __post_init__(self) -> None:
        """Check values and combinations.

        Raises:
            SelectionError: they cannot be used.
            ConfigurationError: a time or the mode is not valid.
        """
        for name, value in zip(_NOT_NEGATIVE, _numbers(self), strict=True):
            if value is not None and value < 0:
                raise SelectionError(f"{{{name}}} {value} is negative", name)
        begin, end = self.from_position, self.to_position
        if begin is not None and end is not None and begin > end:
            raise SelectionError(
                f"{{from_position}} {begin} is after {{to_position}} {end}", "from_position"
            )
        self._exclude("from_index", "from_asqn")
        self._exclude("first", "last")
        if self.from_time is not None or self.to_time is not None:
            self._set_times()
        if self.columns is not None:
            self._set_columns()
        if self.checksum not in _CHECKSUMS:
            raise SelectionError(
                f"unknown {{checksum}} {_quoted(self.checksum)}: use none, crc-32 or crc-32c",
                "checksum",
            )
        if self.mode != "FAILFAST":
            self._check_mode()
        self._check_payloads()

    def _exclude(self, one: str, other: str) -> None:
        if getattr(self, one) is not None and getattr(self, other) is not None:
            raise SelectionError(f"{{{one}}} and {{{other}}} exclude each other: give one", one)

    def _set_times(self) -> None:
        """Replace times by nanoseconds, so that those relative to now do not change."""
        for name in ("from_time", "to_time"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, time_ns(value, name))
        object.__setattr__(self, "times", TimeRange.of(self.from_time, self.to_time))

    def _set_columns(self) -> None:
        """Replace a list of columns by a tuple."""
        if isinstance(self.columns, str):
            raise SelectionError(
                f"{{columns}}: {_quoted(self.columns)} is not a list of names", "columns"
            )
        object.__setattr__(self, "columns", tuple(self.columns or ()))

    def _check_mode(self) -> None:
        if self.mode not in MODES:
            object.__setattr__(self, "mode", parse_mode(self.mode))
        is_decoded = self.schema is not None or self.payload is not None
        if self.mode != "FAILFAST" and self.checksum == "none" and not is_decoded:
            raise SelectionError(
                f"{{mode}} {self.mode} concerns frames that fail their checksum, and none is "
                "verified: give {checksum} too, crc-32 or crc-32c, as the archive's "
                "aeron.archive.record.checksum",
                "mode",
            )

    def _check_payloads(self) -> None:
        if _payload_options(self) == _NO_PAYLOAD_OPTIONS and self.schema is None:
            return
        given = [name for name in _OF_SCHEMAS if getattr(self, name) != _OF_SCHEMAS[name]]
        for name in given:
            value, words = getattr(self, name), OPTIONS[name].words
            if words is not None and value not in words:
                raise SelectionError(
                    f"{{{name}}}: {_quoted(value)} is not one of {', '.join(words)}", name
                )
        if self.payload is not None:
            if self.schema is not None:
                given.insert(0, "schema")
            for name in given:
                raise SelectionError(
                    f"{{{name}}}: the option {{payload}} selects columns of its own; give one of "
                    "them",
                    name,
                )
        elif self.schema is None:
            for name in given:
                raise SelectionError(
                    f"{{{name}}} is of a schema: give {{schema}} too, an SBE schema (XML or "
                    ".sbeir)",
                    name,
                )
        elif given and not isinstance(self.schema, str | Path):
            for name in given:
                if name in _OF_READING_A_SCHEMA:
                    raise SelectionError(
                        f"{{{name}}}: the schema was read already; give {{{name}}} when reading it",
                        name,
                    )

    @property
    def seek(self) -> SeekTarget | None:
        """The record of a raft journal to begin at; None for all."""
        if self.from_index is None and self.from_asqn is None:
            return None
        from aerotape.replay.offline.seek import SeekTarget

        return SeekTarget(self.from_index, self.from_asqn)

    def matches(
        self, descriptor: RecordingDescriptor, *, live: bool, is_followed: bool = False
    ) -> bool:
        """Return whether a recording is selected, as far as its descriptor shows.

        Args:
            descriptor: the recording's.
            live: whether it is in progress.
            is_followed: it was selected before: it remains so when it is extended, with another
                channel and session, or stops.
        """
        channel = descriptor.original_channel
        return (self.stream_id is None or descriptor.stream_id == self.stream_id) and (
            is_followed
            or (
                (self.channel is None or self.channel in channel)
                and (self.alias is None or alias_of(channel) == self.alias)
                and (self.session_id is None or descriptor.session_id == self.session_id)
                and (self.live is None or live == self.live)
            )
        )

    @property
    def values(self) -> dict[str, Any]:
        """The values of the options, by their names."""
        return {name: getattr(self, name) for name in OPTIONS}

    def with_schema(self, schema: PayloadSchema) -> Self:
        """Return the selection with its schema, as it was read with the options of reading it."""
        as_read = {name: _OF_SCHEMAS[name] for name in _OF_READING_A_SCHEMA}
        return type(self)(**(self.values | as_read | {"schema": schema}))

    @classmethod
    def of(cls, values: Mapping[str, Any], spell: Spell) -> Self:
        """Create a selection for a surface.

        Args:
            values: of the given options, and of further attributes of a subclass.
            spell: the surface's names, for errors.

        Raises:
            ConfigurationError: values cannot be used, or not with each other.
        """
        try:
            return cls(**values)
        except SelectionError as error:
            raise error.spelled(spell) from None


EVERYTHING: Final = Selection()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of reading as text.

    Attributes:
        parse: returns the value of a text; takes the name for the error, too.
        metavar: stands for the value in a command's help.
        help: what it does.
        words: all texts that it may have; None: there are others.
    """

    parse: Callable[[str, str], Any]
    metavar: str
    help: str
    words: tuple[str, ...] | None = None

    @classmethod
    def one_of(cls, words: tuple[str, ...], help: str) -> Option:
        """Return an option whose value is one of some words, in any case."""
        return cls(partial(option_text.word, words=words), f"{{{','.join(words)}}}", help, words)


OPTIONS: Final[Mapping[str, Option]] = {
    "recording_ids": Option(option_text.recording_ids, "ID[,ID...]", "only these recordings"),
    "scope_ids": Option(
        option_text.scope_ids,
        "N[,N...]|all",
        "recordings of these scopes, imported ones too, with the columns scope_id and "
        "qualified_name (default: the archive's own, without these columns)",
    ),
    "channel": Option(
        option_text.plain, "FRAGMENT", "only recordings whose original channel contains this"
    ),
    "alias": Option(
        option_text.plain, "NAME", "only recordings whose original channel has this alias"
    ),
    "stream_id": Option(option_text.int32, "ID", "only recordings of this stream"),
    "session_id": Option(option_text.int32, "ID", "only recordings of this session"),
    "live": Option(
        option_text.truth,
        "{true,false}",
        "only recordings in progress, or only those that have stopped",
    ),
    "from_position": Option(
        option_text.integer, "P", "leave out messages that begin at a lower position"
    ),
    "to_position": Option(
        option_text.integer, "P", "leave out messages that begin at P or a higher position"
    ),
    "from_time": Option(
        parse_time,
        "TIME",
        "leave out what was certainly recorded before TIME: ISO 8601 with a zone, a number "
        "with a unit such as 1772357400000ms, 10m, 2h or 3d ago, or today (UTC)",
    ),
    "to_time": Option(
        parse_time, "TIME", "leave out what was certainly recorded at TIME or later"
    ),
    "from_index": Option(option_text.integer, "N", "begin at this index of a raft journal"),
    "from_asqn": Option(
        option_text.integer,
        "N",
        "begin at the record of a raft journal with the highest asqn up to N",
    ),
    "last": Option(
        option_text.integer,
        "N",
        "only the newest N of these messages of each recording, of all templates",
    ),
    "first": Option(
        option_text.integer,
        "N",
        "only the first N of these messages of each recording, of all templates",
    ),
    "columns": Option(option_text.names, "NAME[,NAME...]", "only these columns, in this order"),
    "schema": Option(
        option_text.plain,
        "SCHEMA",
        "an SBE schema, XML or .sbeir, of the payloads: their fields are decoded",
    ),
    "template": Option(
        option_text.template,
        "TEMPLATE",
        "name or id of the one message of the schema to read (default: all)",
    ),
    "others": Option.one_of(
        get_args(Others),
        "messages of other templates are left out (the default), or rows of nulls",
    ),
    "types": Option.one_of(
        ("semantic", "wire"),
        "semantic (the default): decimals, timestamps and dates where the schema has them; wire: "
        "the numbers that they are in the payload",
    ),
    "enums": Option.one_of(("name", "number"), "values of enums: name (the default) or number"),
    "sets": Option.one_of(
        ("struct", "number"), "values of sets: struct of booleans (the default) or number"
    ),
    "timestamps": Option(
        option_text.pairs,
        "FIELD=UNIT[,...]",
        "these integer fields are times since 1970 in s, ms, us or ns, although the schema does "
        "not say so",
    ),
    "text_encoding": Option.one_of(
        ("utf-8", "iso-8859-1", "bytes"),
        "of texts for which the schema has no encoding or US-ASCII (default: utf-8)",
    ),
    "payload": Option.one_of(("raft-journal",), "decode records of a raft journal"),
    "checksum": Option.one_of(
        _CHECKSUMS, "verify each frame against the checksum it was recorded with"
    ),
    "mode": Option(
        parse_mode,
        f"{{{','.join(MODES)}}}",
        "treatment of damaged messages and malformed payloads (default: FAILFAST)",
        MODES,
    ),
}
"""The options by which a selection is given as text, by the names of its attributes."""


def parse_texts(texts: Mapping[str, str], spell: Spell) -> dict[str, Any]:
    """Return the values of options from their texts, both by name (ConfigurationError)."""
    return {name: OPTIONS[name].parse(text, spell(name)) for name, text in texts.items()}


def refuse(selection: Selection, names: Iterable[str], why: str, spell: Spell) -> None:
    """Refuse options that a surface cannot do.

    Args:
        selection: the selection.
        names: of these options.
        why: the rest of the message.
        spell: the surface's names.

    Raises:
        ConfigurationError: one of them is given.
    """
    for name in names:
        if getattr(selection, name) != getattr(EVERYTHING, name):
            raise ConfigurationError(f"{spell(name)}: {why}", spell(name))
