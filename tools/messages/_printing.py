"""The output of messages, of `subscribe` and `cat`.

Bytes of a message never reach a terminal as they are: what is not printable is escaped, and the
formats `raw` and `length` are refused there.
"""

from __future__ import annotations

import argparse
import importlib.util
import select
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed, utf8_text
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import Json, emit_line, note, refuse_terminal
from aerotape.tools._cli.selecting import OF_SCHEMAS, add_selection_options

if TYPE_CHECKING:
    import pyarrow

    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.message import Message
    from aerotape.replay.offline.selection import Selection

_STDOUT: Final = 1


@dataclass
class MessageRow:
    """A message.

    Attributes:
        position: its position, bytes.
        end_position: position after the message, bytes.
        session_id: session id of the stream.
        stream_id: stream id.
        term_id: term id.
        term_offset: offset in the term, bytes.
        flags: flags of the first frame.
        reserved_value: the first frame's reserved value.
        length: length of the payload, bytes.
        payload: payload: hexadecimal, or in the format asked for.
    """

    position: int
    end_position: int
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int
    length: int
    payload: Any


@dataclass
class ReceivedMessage(MessageRow):
    """A message of a subscription.

    Attributes:
        received_timestamp_ms: when it was received, epoch milliseconds.
    """

    received_timestamp_ms: int


def add_printing_options(parser: argparse.ArgumentParser) -> None:
    """Add --format and those of schemas."""
    parser.add_argument(
        "--format",
        choices=("text", "hex", "json", "raw", "length"),
        help="text (the default): a message a line, what is not printable escaped; hex: a message "
        "a line in hexadecimal; json: payloads that are JSON, one a line; raw: the payloads alone; "
        "length: each payload after its length, 4 bytes little-endian. With --json, the payload "
        "in a row has this format (default: hex)",
    )
    add_selection_options(
        parser,
        OF_SCHEMAS,
        {"schema": " and printed as JSON, without messages of other schemas and templates"},
    )


class Printer:
    """Prints messages as the options of `add_printing_options` say.

    Attributes:
        exit_code: 3 if a message was left out because its payload is not JSON, or does not match
            the schema.
    """

    def __init__(self, args: argparse.Namespace, selection: Selection) -> None:
        """Check the options, and read the schema of the selection.

        Raises:
            ConfigurationError: the options contradict each other, the terminal would receive bytes
                as they are, or the schema cannot be read.
            CodecError: it is not a schema, or has no such template.
        """
        self.exit_code = EXIT_OK
        self._args = args
        self._is_binary = args.format in ("raw", "length")
        if self._is_binary and args.json:
            raise ConfigurationError(
                f"--format {args.format} prints bytes: leave out --json", "--format"
            )
        if self._is_binary:
            refuse_terminal(f"--format {args.format}", "use --format text")
        if args.schema is not None and args.format not in (None, "json"):
            raise ConfigurationError(
                f"--schema prints JSON: leave out --format {args.format}", "--format"
            )
        self._schema = payload_schema(selection)
        self._escaped: Counter[str] = Counter()

    def print(self, message: Message, received_timestamp_ms: int | None = None) -> bool:
        """Print a message, with --json also when it was received; return whether it was printed."""
        if self._is_binary:
            if self._args.format == "length":
                sys.stdout.buffer.write(len(message.payload).to_bytes(4, "little"))
            sys.stdout.buffer.write(message.payload)
            return True
        try:
            payload = self._text_of(message.payload)
        except ValueError as error:
            self.exit_code = EXIT_DATA_SUSPECT
            note(f"warning: message at position {message.position}: {error}; not printed")
            return False
        if payload is None:
            return False
        row = message_row(message, payload) if self._args.json else None
        if row is not None and received_timestamp_ms is not None:
            row = ReceivedMessage(**vars(row), received_timestamp_ms=received_timestamp_ms)
        emit_line(row, payload, self._args)
        return True

    def report(self) -> None:
        """Say what is remarkable about the printed messages."""
        if self._escaped:
            from aerotape.codecs.payloads import escaped_text

            for name, texts in self._escaped.items():
                note(f"warning: {escaped_text(name, texts)}")

    def _text_of(self, payload: bytes) -> str | None:
        """Return the text of a payload; None for a message of another template (ValueError)."""
        if self._schema is not None:
            return decoded(self._schema, payload, self._escaped)
        if self._args.format == "json":
            return _json_line(payload)
        if self._args.format == "hex" or (self._args.format is None and self._args.json):
            return payload.hex()
        return utf8_text(payload)


def message_row(message: Message, payload: Any) -> MessageRow:
    """Return the row of a message, with the payload as it is shown, for --json."""
    return MessageRow(
        position=message.position,
        end_position=message.end_position,
        session_id=message.session_id,
        stream_id=message.stream_id,
        term_id=message.term_id,
        term_offset=message.term_offset,
        flags=message.flags,
        reserved_value=message.reserved_value,
        length=len(message.payload),
        payload=payload,
    )


def flush() -> None:
    """Flush standard output; BrokenPipeError if its reader has closed it, also without output."""
    sys.stdout.flush()
    poll = select.poll()
    poll.register(_STDOUT, 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise BrokenPipeError


def payload_schema(selection: Selection) -> PayloadSchema | None:
    """Read the schema of a selection; None without one.

    Raises:
        ConfigurationError: it cannot be read.
        CodecError: it is not a schema, or has no such template.
    """
    if selection.schema is None:
        return None
    from aerotape.codecs.payloads import PayloadSchema

    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigurationError(not_installed("pyarrow", "arrow"), "--schema")
    return PayloadSchema.from_file(
        str(selection.schema),
        selection.template,
        types=selection.types,
        enums=selection.enums,
        sets=selection.sets,
        timestamps=selection.timestamps,
        text_encoding=selection.text_encoding,
    )


def decoded(
    schema: PayloadSchema,
    payload: bytes,
    escaped: Counter[str] | None = None,
    max_bytes: int | None = None,
) -> Json | None:
    """Return the fields of a payload; None if it is of another schema or template.

    Args:
        schema: the decoder.
        payload: from its header on.
        escaped: counts the texts of each column that had bytes that are not UTF-8.
        max_bytes: the most bytes of the fields in Arrow columns, with their names in each row and
            group entry; None: no limit. Constants, and group entries of such, have bytes there but
            not in the payload.

    Raises:
        ValueError: the payload does not match the schema, or its fields are too long.
    """
    import json

    import pyarrow

    from aerotape.codecs.payload_values import json_rows

    found = schema.decode_messages(
        pyarrow.array([payload], pyarrow.binary()), malformed="drop", keep_others=False
    )
    if found.problems:
        raise ValueError(f"its payload does not match the schema: {found.problems[0][1]}")
    if max_bytes is not None and (length := _named_bytes(found.batch)) > max_bytes:
        raise ValueError(f"its fields have {length} bytes with their names, more than {max_bytes}")
    if escaped is not None:
        escaped.update(found.escaped)
    rows = json_rows(found.batch)
    if not rows:
        return None
    row = rows[0]
    if not schema.plan.flat:  # only the column of the message's template
        row = {name: value for name, value in row.items() if value is not None}
    return Json(json.dumps(row))


def _named_bytes(batch: pyarrow.RecordBatch) -> int:
    """Return the bytes of a batch, with the names of fields in each row and group entry."""
    import pyarrow

    def of(array: pyarrow.Array) -> int:
        kind = array.type
        if pyarrow.types.is_struct(kind):
            return sum(
                len(array) * len(kind.field(at).name) + of(array.field(at))
                for at in range(kind.num_fields)
            )
        if pyarrow.types.is_list(kind):
            return len(array) + of(array.flatten())
        length: int = array.nbytes
        return max(length, len(array))

    names: int = batch.num_rows * sum(map(len, batch.schema.names))
    return names + sum(map(of, batch.columns))


def _json_line(payload: bytes) -> Json:
    """Return a payload of JSON as it is, on one line and printable (ValueError)."""
    from aerotape import _native

    try:
        _native.check_json(payload)
    except ValueError as error:
        raise ValueError(f"its payload is not JSON: {error}") from None
    return Json.of(payload.decode())
