"""`cnc.dat`: a media driver's counters, errors and heartbeat, read without being its client.

The file begins with 128 bytes of metadata: version, the lengths of the five buffers that follow
one another (to-driver, to-clients, counters' metadata, counters' values, error log), then the
client liveness timeout, start timestamp and process id (CncFileDescriptor of Aeron). A counter is
a record of 512 bytes in the fourth buffer and one of 128 bytes in the fifth (CountersReader of
Agrona). The driver may be running or dead: reading neither waits nor writes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aerotape.clock import epoch_ms
from aerotape.distinct_error_log import ErrorObservation, read_errors
from aerotape.errors import AeronError

FILE_NAME: Final = "cnc.dat"
KEY_LENGTH: Final = 112
MAX_LABEL_LENGTH: Final = 380

_HEADER: Final = struct.Struct("<iiiiiiqqq")
_HEADER_LENGTH: Final = 128
_MAJOR_MINOR: Final = (0, 2)
# From the end of the to-driver buffer: the time when the driver last polled it.
_HEARTBEAT_OFFSET: Final = -128
# State, type id, time before which it is not used again, key, length of the label, label.
_METADATA: Final = struct.Struct(f"<iiq{KEY_LENGTH}si{MAX_LABEL_LENGTH}s")
# Value, registration id, owner id, reference id.
_VALUE: Final = struct.Struct("<qqqq96x")
# Counters that are read at a time.
_BLOCK: Final = 256
_UNUSED: Final = 0
_ALLOCATED: Final = 1


@dataclass(frozen=True, slots=True)
class CounterRecord:
    """A counter as it was when it was read.

    Attributes:
        counter_id: its index in the file.
        key: 112 bytes, in the format of the type.
        registration_id: correlation id of the command that added it.
        owner_id: client that added it, 0 for the driver.
        reference_id: id of the resource that it belongs to, 0 if unknown.
    """

    counter_id: int
    type_id: int
    value: int
    label: str
    key: bytes
    registration_id: int
    owner_id: int
    reference_id: int


class CncFile:
    """The file of a media driver that runs or has run in a directory.

    Attributes:
        path: the file.
        pid: process id of the driver.
        start_timestamp_ms: when it was started, epoch milliseconds.
    """

    def __init__(self, aeron_dir: str | os.PathLike[str]) -> None:
        """Read the file's layout.

        Raises:
            AeronError: the file is missing, of another version, or cannot be read.
        """
        self.path = Path(aeron_dir) / FILE_NAME
        header = self._read(0, _HEADER_LENGTH)
        if len(header) < _HEADER_LENGTH:
            raise AeronError(
                f"{self.path} is {len(header)} bytes long: a driver is starting, or it is"
                " not a media driver's file"
            )
        version, *lengths, _, self.start_timestamp_ms, self.pid = _HEADER.unpack_from(header)
        # Patch versions do not change the layout; the version is 0 until the driver is ready.
        if (version >> 16 & 0xFF, version >> 8 & 0xFF) != _MAJOR_MINOR:
            found = ".".join(str(version >> shift & 0xFF) for shift in (16, 8, 0))
            raise AeronError(
                f"{self.path} is of version {found}; 0.2.x can be read: use the tools of that"
                " driver's release"
            )
        if min(lengths) < 0:
            raise AeronError(f"{self.path} is damaged: a buffer's length is {min(lengths)}")
        begin = _HEADER_LENGTH
        begins = []
        for length in lengths:
            begins.append(begin)
            begin += length
        _, self._to_clients, self._metadata, self._values, self._errors = begins
        self._counter_count = min(lengths[2] // _METADATA.size, lengths[3] // _VALUE.size)
        self._errors_length = lengths[4]

    @property
    def heartbeat_timestamp_ms(self) -> int:
        """Time of the driver's last heartbeat, epoch milliseconds; -1 when it has ended."""
        data = self._read(self._to_clients + _HEARTBEAT_OFFSET, 8)
        return int.from_bytes(data, "little", signed=True)

    def is_active(self, timeout_ms: int = 10_000) -> bool:
        """Whether the driver's last heartbeat is at most `timeout_ms` old."""
        return epoch_ms() - self.heartbeat_timestamp_ms < timeout_ms

    def counters(self, type_id: int | None = None) -> Iterator[CounterRecord]:
        """Read the counters that are in use, all or those of one type, by their ids."""
        # The buffers have room for many more counters than are in use: 40 MB by default.
        for first in range(0, self._counter_count, _BLOCK):
            metadata = self._records(self._metadata, first, _METADATA)
            values = self._records(self._values, first, _VALUE)
            both = zip(metadata, values, strict=False)
            for counter_id, (counter, (value, *ids)) in enumerate(both, first):
                state, found_type, _, key, length, label = counter
                if state == _UNUSED:
                    return
                if state == _ALLOCATED and type_id in (None, found_type):
                    text = label[: max(length, 0)].decode("utf-8", "replace")
                    yield CounterRecord(counter_id, found_type, value, text, key, *ids)

    def _records(self, offset: int, first: int, layout: struct.Struct) -> Iterator[tuple[Any, ...]]:
        count = min(_BLOCK, self._counter_count - first)
        data = self._read(offset + first * layout.size, count * layout.size)
        return layout.iter_unpack(data[: len(data) // layout.size * layout.size])

    def errors(self) -> list[ErrorObservation]:
        """Read the driver's distinct error log."""
        return read_errors(self._read(self._errors, self._errors_length))

    def _read(self, offset: int, length: int) -> bytes:
        # Not mapped: the file goes away with its driver, and a mapping would fault then.
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                return os.pread(descriptor, length, offset)
            finally:
                os.close(descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise AeronError(
                f"no media driver in {self.path.parent}: there is no {FILE_NAME}; give the"
                " directory of one that runs (aeron_dir, $AERON_DIR)",
                error.errno or 0,
            ).naming("aeron_dir") from error
        except OSError as error:
            raise AeronError(f"cannot read {self.path}: {error.strerror}", error.errno or 0) from (
                error
            )
