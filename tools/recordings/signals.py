"""Print a line whenever a recording starts, stops, is extended or deleted.

An archive sends the signals of a recording only to the client that requested it, unless it runs
with aerotape.recording.signals=all. This command therefore lists the recordings at intervals and
compares, until a first signal shows that the archive sends them all. It ends with Ctrl-C, or
after --count lines.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AeronTimeoutError
from aerotape.tools._cli.arguments import add_stream_filter, count, duration_ns, identity
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit_line, note

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.client.session.signals import RecordingSignalEvent
    from aerotape.clients import ArchiveClient


@dataclass(frozen=True)
class RecordingChange:
    """One change of a recording.

    Attributes:
        signal: ``start``, ``stop``, ``extend`` or, if it is no longer listed, ``delete``; from an
            archive that signals to all sessions also ``replicate``, ``sync``, ``merge`` and
            ``replicate_end``.
        recording_id: its id.
        position: position of the change in bytes, -1 where it is not known.
        stream_id: stream id; None, as are the next two, if the recording was purged before its
            descriptor could be requested.
        session_id: session id of the stream.
        channel: channel, without parameters that do not identify it.
    """

    signal: str
    recording_id: int
    position: int
    stream_id: int | None = None
    session_id: int | None = None
    channel: str | None = None


JSON_ROWS: Final = {"": RecordingChange}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--recording", metavar="ID", type=identity, help="only this recording")
    add_stream_filter(parser)
    parser.add_argument("--count", metavar="N", type=count, help="end after this number of lines")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=duration_ns,
        default=500_000_000,
        help="time between two listings (default: 500ms)",
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Print changes until interrupted."""
    shown = 0
    with connect(args) as client:
        watch = Watch(client, _is_wanted(args), args.interval)
        note(f"watching; {watch.begin()} recordings")
        while args.count is None or shown < args.count:
            for change in watch.wait():
                if args.count is None or shown < args.count:
                    _print(change, args)
                    shown += 1


class Watch:
    """Finds changes of recordings: by comparing listings, until a signal is received.

    This client requests only listings, so it receives a signal only if the archive sends signals
    to all sessions; from then on every change is signalled.
    """

    def __init__(
        self,
        client: ArchiveClient,
        is_wanted: Callable[[int, RecordingDescriptor | None], bool],
        interval_ns: int,
    ) -> None:
        """Create a watch; `begin` starts it.

        Args:
            is_wanted: filter by recording id and descriptor, which is None if the recording was
                purged before it could be requested.
            interval_ns: time between two listings in nanoseconds.
        """
        self._client = client
        self._is_wanted = is_wanted
        self._signals = client.signals(timeout_ns=interval_ns)
        self._is_signalled = False
        self._known: dict[int, RecordingDescriptor] = {}
        # Recordings with signals that were purged before their descriptor was requested.
        self._unlisted: set[int] = set()
        # Signals received; the client itself buffers a limited number.
        self._events: deque[RecordingSignalEvent] = deque()
        # Changes found by the last listing, whose signals may still arrive.
        self._found: list[RecordingChange] = []

    def begin(self) -> int:
        """List the recordings; return their number."""
        self._known = self._list()
        return len(self._known)

    def wait(self) -> list[RecordingChange]:
        """Return the changes since the last call, none if the interval has passed without any."""
        if not self._events:
            try:
                self._events.append(next(self._signals))
            except AeronTimeoutError:
                return [] if self._is_signalled else self._compared()
        # More may arrive during the request for one descriptor.
        self._events += self._signals.poll()
        return self._signalled(self._events.popleft())

    def _signalled(self, event: RecordingSignalEvent) -> list[RecordingChange]:
        self._is_signalled = True
        if event.recording_id < 0:  # a replication that ended without a recording
            return []
        listed = self._client.list_recording(event.recording_id)
        if listed is not None:
            if event.signal is RecordingSignal.DELETE:
                return []  # of segment files: the recording still exists
            self._known[event.recording_id] = listed
        is_deletion = event.signal is RecordingSignal.DELETE
        # A deleted recording was listed before; its deletion is reported once.
        descriptor = self._known.get(event.recording_id)
        if descriptor is None:
            if is_deletion and event.recording_id not in self._unlisted:
                return []
            self._unlisted.add(event.recording_id)
        if is_deletion:
            self._known.pop(event.recording_id, None)
            self._unlisted.discard(event.recording_id)
        if not self._is_wanted(event.recording_id, descriptor):
            return []
        change = _change(event.signal.name.lower(), event.recording_id, descriptor, event.position)
        if change in self._found:
            self._found.remove(change)
            return []
        return [change]

    def _compared(self) -> list[RecordingChange]:
        now = self._list()
        self._found = list(changes(self._known, now))
        self._known = now
        return list(self._found)

    def _list(self) -> dict[int, RecordingDescriptor]:
        found = self._client.list_recordings()
        return {
            each.recording_id: each for each in found if self._is_wanted(each.recording_id, each)
        }


def changes(
    known: dict[int, RecordingDescriptor], now: dict[int, RecordingDescriptor]
) -> Iterator[RecordingChange]:
    """Iterate the changes from one listing to the next, by recording id."""
    for recording_id in sorted(known.keys() | now.keys()):
        before, after = known.get(recording_id), now.get(recording_id)
        if after is None:
            assert before is not None
            yield _change("delete", recording_id, before, -1)
        elif before is None:
            yield _change("start", recording_id, after, after.start_position)
            if not after.is_active:
                yield _change("stop", recording_id, after, after.stop_position)
        elif before.is_active != after.is_active:
            if after.is_active:
                yield _change("extend", recording_id, after, before.stop_position)
            else:
                yield _change("stop", recording_id, after, after.stop_position)
        elif after.stop_position > before.stop_position:  # extended and stopped in between
            yield _change("extend", recording_id, after, before.stop_position)
            yield _change("stop", recording_id, after, after.stop_position)


def _change(
    signal: str, recording_id: int, descriptor: RecordingDescriptor | None, position: int
) -> RecordingChange:
    if descriptor is None:
        return RecordingChange(signal, recording_id, position)
    return RecordingChange(
        signal,
        recording_id,
        position,
        descriptor.stream_id,
        descriptor.session_id,
        descriptor.stripped_channel,
    )


def _is_wanted(args: argparse.Namespace) -> Callable[[int, RecordingDescriptor | None], bool]:
    """Return the filter of the command's options; an unknown stream passes no stream filter."""

    def is_wanted(recording_id: int, found: RecordingDescriptor | None) -> bool:
        if args.recording not in (None, recording_id):
            return False
        if found is None:
            return args.stream_id is None and not args.channel
        return (
            args.stream_id in (None, found.stream_id)
            and (args.channel or "") in found.stripped_channel
        )

    return is_wanted


def _print(change: RecordingChange, args: argparse.Namespace) -> None:
    text = f"{change.signal:<7} recording {change.recording_id} position {change.position} "
    if change.stream_id is None:
        text += "(purged before its descriptor was requested)"
    else:
        text += f"stream {change.stream_id} session {change.session_id} {change.channel}"
    emit_line(change, text, args)
    sys.stdout.flush()
