"""The Java harness with the Java archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.jvm.java import HarnessError, JavaArchive, JavaClient
from support.model.messages import digest, messages

StartClient = Callable[[Path | str], JavaClient]
IPC = "aeron:ipc?term-length=65536"


def test_messages_are_the_same_in_both_languages(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Java and Python generate the same payloads and digests from the same seed."""
    client = java_client(java_archive.aeron_dir)
    subscription = client.add_subscription(IPC, 7)
    publication = client.add_publication(IPC, 7)
    offered = client.offer(publication, seed=42, count=20, min_length=0, max_length=1500)
    polled = client.poll(subscription, 20, details=True)
    expected = list(messages(42, 20, 0, 1500))
    assert [bytes.fromhex(row["payload"]) for row in polled["messages"]] == expected
    assert polled["digest"] == offered["digest"] == digest(expected)
    assert len({len(payload) for payload in expected}) > 10


def test_a_refused_start_is_an_error(java_archive: JavaArchive, aeron_dir: Path) -> None:
    """A Java archive that cannot start (directory in use) is an error with its log, no hang."""
    with pytest.raises(HarnessError, match="active mark file"):
        JavaArchive(java_archive.archive_dir, aeron_dir, driver="external").start()
