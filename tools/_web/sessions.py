"""The control sessions of an archive, as the counters of its media driver show them.

A counter of each session names the client, where it connects from and, by its reference, the
publication of the responses. Of a client on the archive's own media driver the other counters are
known too: the replays that it is subscribed to, and the streams that it publishes. Which session
has begun a recording or a replay is not in the files.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from aerotape.cnc import CounterRecord
from aerotape.counter_keys import CounterType, key_fields

PUBLISHER_POSITION: Final = 12
"""Type id of the driver's counter of how far a publication has been written."""
SUBSCRIBER_POSITION: Final = 4
"""Type id of the driver's counter of how far an image has been read by a subscription."""
STREAM: Final = struct.Struct("<8xii")
"""The session id and stream id in the keys of both."""
_LABEL: Final = re.compile(
    r"control-session: (?P<info>.*?) ?"
    r"(?:sourceIdentity=(?P<source>\S+) sessionId=(?P<session>-?[0-9]+))?"
    r" - archiveId=-?[0-9]+",
    re.DOTALL,
)
_INFO: Final = re.compile(r"name=(?P<name>.*?)(?: version=(?P<version>\S+).*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Session:
    """A control session.

    Attributes:
        control_session_id: its id in the archive's protocol.
        client: the client's name; all that it says of itself if that has no name; "" if nothing.
        version: of the client's library; "" if unknown.
        source: the address that it connects from, ``aeron:ipc`` of this machine; "" if unknown.
        response_channel: the channel of the responses; "" while it connects.
        is_local: whether the client is on the archive's media driver.
        replays: ids of the recordings whose replays it reads; none are known if it is not local.
        published: ids of the recordings in progress whose streams it publishes; likewise.
        first_seen_ms: when this service has seen it first, epoch milliseconds.
        is_older: whether it was there when the service looked for the first time.
    """

    control_session_id: int
    client: str
    version: str
    source: str
    response_channel: str
    is_local: bool
    replays: tuple[int, ...]
    published: tuple[int, ...]
    first_seen_ms: int
    is_older: bool


class SessionLog:
    """Notes when control sessions were seen first. For one thread."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, bool]] = {}
        self._has_looked = False

    def sessions(
        self,
        own: Iterable[CounterRecord],
        counters: Iterable[CounterRecord],
        replayed: Mapping[tuple[int, int], int],
        now_ms: int,
    ) -> list[Session]:
        """Return the sessions by ascending time and id.

        Args:
            own: the archive's counters.
            counters: all of its media driver.
            replayed: recording ids by the session and stream ids of replays' publications.
            now_ms: when they were read, epoch milliseconds.
        """
        clients = _Clients(own, counters, replayed)
        found = [each for each in own if each.type_id == CounterType.CONTROL_SESSION]
        ids = [key_fields(each.type_id, each.key)["control_session_id"] for each in found]
        self._seen = {id: self._seen.get(id, (now_ms, not self._has_looked)) for id in ids}
        self._has_looked = self._has_looked or bool(own)
        made = [
            clients.session(each, id, *self._seen[id])
            for each, id in zip(found, ids, strict=True)
        ]
        return sorted(made, key=lambda each: (each.first_seen_ms, each.control_session_id))


class _Clients:
    """The clients of a media driver, by its counters."""

    def __init__(
        self,
        own: Iterable[CounterRecord],
        counters: Iterable[CounterRecord],
        replayed: Mapping[tuple[int, int], int],
    ) -> None:
        recorded = {}
        for each in own:
            if each.type_id == CounterType.RECORDING_POSITION:
                fields = key_fields(each.type_id, each.key)
                recorded[fields["session_id"]] = fields["recording_id"]
        self._channels: dict[int, str] = {}
        self._publishers: dict[int, set[int]] = defaultdict(set)
        self._published: dict[int, set[int]] = defaultdict(set)
        self._replays: dict[int, set[int]] = defaultdict(set)
        for each in counters:
            if each.type_id not in (PUBLISHER_POSITION, SUBSCRIBER_POSITION):
                continue
            session_id, stream_id = STREAM.unpack_from(each.key)
            if each.type_id == SUBSCRIBER_POSITION:
                if (session_id, stream_id) in replayed:
                    self._replays[each.owner_id].add(replayed[session_id, stream_id])
                continue
            channel = each.label.partition("aeron:")
            self._channels[each.registration_id] = "".join(channel[1:])
            self._publishers[session_id].add(each.owner_id)
            if session_id in recorded:
                self._published[each.owner_id].add(recorded[session_id])

    def session(
        self, counter: CounterRecord, id: int, first_seen_ms: int, is_older: bool
    ) -> Session:
        """Return the session of a counter."""
        label = _LABEL.fullmatch(counter.label)
        info = label["info"] if label else counter.label
        about = _INFO.fullmatch(info)
        # The publication of the responses may have the session id of that of the requests.
        owners = self._publishers[int(label["session"])] if label and label["session"] else set()
        client = next(iter(owners - {counter.owner_id}), None)
        return Session(
            control_session_id=id,
            client=about["name"] if about else info,
            version=(about["version"] or "") if about else "",
            source=(label["source"] or "") if label else "",
            response_channel=self._channels.get(counter.reference_id, ""),
            is_local=client is not None,
            replays=() if client is None else tuple(sorted(self._replays[client])),
            published=() if client is None else tuple(sorted(self._published[client])),
            first_seen_ms=first_seen_ms,
            is_older=is_older,
        )
