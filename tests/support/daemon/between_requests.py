"""Changes of a recording between a client's look-up and its request for a replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aerotape.archive.replication.replication_session import ReplicationSession
from aerotape.client.replay import requests
from aerotape.codecs.generated import archive as codecs


def before_replay(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], object]) -> list[int]:
    """Make changes right before the next requests for a replay, one before each.

    Returns:
        The positions of the requests, while they are sent.
    """
    original, left, asked = requests._call, list(changes), list[int]()

    def call(*args: Any) -> Any:
        if left:
            left.pop(0)()
        made = original(*args)
        assert isinstance(made.message, codecs.ReplayRequest)
        asked.append(made.message.position)
        return made

    monkeypatch.setattr(requests, "_call", call)
    return asked


def before_replay_of_source(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Make a change at the source right before a replication's first request for a replay.

    It is made in the thread of the archive that replicates, which has to be in this process.
    """
    original, left = ReplicationSession._replay, [change]

    def replay(self: ReplicationSession, *args: Any) -> Any:
        if left:
            left.pop(0)()
        return original(self, *args)

    monkeypatch.setattr(ReplicationSession, "_replay", replay)
