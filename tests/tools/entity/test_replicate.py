"""The commands `aerotape entity replicate`, `purge-expired` and `retention`."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine
from support.entity.topics import new_topic

from aerotape.entity.stores.url import open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'entities.db'}"


def lines(cli: CommandLine, *args: object) -> list[dict[str, Any]]:
    """Run a command with --json and return the objects that it printed, one a line."""
    printed = cli.run(*args, "--json").stdout.decode().splitlines()
    return [json.loads(line) for line in printed]


def append(cli: CommandLine, topic: str, key: str, *more: object) -> None:
    cli.run("entity", "append", "--topic", topic, "--key", key, '{"payload": 1}', *more)


def numbers(url: str, topic: str, key: str) -> list[int]:
    with open_store(url) as store:
        return [each.seq_nr for each in store.events(topic, key)]


def test_replicate_until_caught_up(cli: CommandLine, url: str) -> None:
    """All that is recorded is stored; a read then takes the events from the store."""
    topic = new_topic()
    append(cli, topic, "a")
    append(cli, topic, "a")
    command = "entity", "replicate", "--topic", topic, "--store", url, "--until-caught-up"
    (row,) = lines(cli, *command)
    assert (row["topic"], row["partition"], row["events"]) == (topic, 0, 2)
    assert row["next_position"] == row["end_position"] > row["offset"] >= 0
    assert lines(cli, *command) == []
    read = lines(cli, "entity", "read", "--topic", topic, "--key", "a", "--store", url)
    assert [each["seq_nr"] for each in read] == [1, 2]
    assert b"replicated to" in cli.run(*command).stdout  # the reader's mark


@pytest.mark.crash
def test_killed_replicator(cli: CommandLine, url: str) -> None:
    """A replicator that was killed is continued at once by the next one; two are refused."""
    topic = new_topic()
    append(cli, topic, "a")
    command = "entity", "replicate", "--topic", topic, "--store", url
    running = cli.start(*command, "--json")
    try:
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["events"] == 1
        error = cli.error(*command, "--until-caught-up")
        assert "another replicator has its lock" in error
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()
    append(cli, topic, "a")
    rows = lines(cli, *command, "--until-caught-up")
    assert sum(row["events"] for row in rows) == 1
    assert numbers(url, topic, "a") == [1, 2]


def test_stopped_replicator(cli: CommandLine, url: str) -> None:
    """SIGTERM ends a following replicator without an error text."""
    topic = new_topic()
    append(cli, topic, "a")
    running = cli.start("entity", "replicate", "--topic", topic, "--store", url)
    assert running.stdout is not None
    running.stdout.readline()
    running.terminate()
    _, error = running.communicate(timeout=30)
    assert (running.returncode, error) == (143, b"")


@pytest.mark.parametrize(
    ("store", "code", "text"),
    [
        ("mysql://somewhere", 2, "expected sqlite:PATH, postgresql://HOST/DATABASE or cassandra"),
        ("sqlite:", 2, "has no path"),
        ("sqlite:x.db?namespace=A-b", 2, "namespace 'A-b': expected"),
        ("sqlite:x.db?segment_size=1", 2, "segment_size must be at least 2"),
        ("sqlite:x.db?colour=red", 2, "store option 'colour' is unknown"),
        ("sqlite:/no/such/folder/x.db", 1, "unable to open database file"),
        ("postgresql://u:secret@127.0.0.1:1/x", 1, "postgresql://u@127.0.0.1:1/x: "),
        ("cassandra://127.0.0.1:1/x", 1, "cassandra://127.0.0.1:1/x: "),
    ],
)
def test_unusable_stores(
    cli: CommandLine, store: str, code: int, text: str, tmp_path: Path
) -> None:
    """A store that cannot be used is an error with its URL, without its password."""
    topic = new_topic()
    append(cli, topic, "a")
    store = store.replace("x.db", str(tmp_path / "x.db"))
    error = cli.error(
        "entity", "replicate", "--topic", topic, "--store", store, "--until-caught-up", code=code
    )
    assert text in error
    assert "secret" not in error


def test_mistyped_topic(cli: CommandLine, tmp_path: Path) -> None:
    """No store is created for a topic that does not exist."""
    store = f"sqlite:{tmp_path / 'x.db'}"
    replicate = "entity", "replicate", "--topic", "t", "--store", store, "--until-caught-up"
    assert "topic t has no recording: check its name" in cli.error(*replicate)
    assert not (tmp_path / "x.db").exists()


def test_only_the_replicator_creates_a_store(cli: CommandLine, url: str, tmp_path: Path) -> None:
    """Commands that read refuse a path without a store, and create nothing."""
    topic = new_topic()
    append(cli, topic, "a")
    order = "--topic", topic, "--key", "a", "--store", url
    for command in (
        ("append", *order, "{}"),
        ("read", *order),
        ("pointer", *order),
        ("delete", *order, "--to", "1"),
        ("purge", *order),
        ("purge-expired", "--topic", topic, "--store", url),
        ("retention", "--topic", topic, "--max-age", "24h", "--store", url),
        ("copy-store", "--topic", topic, "--from", url, "--to", f"{url}2"),
    ):
        assert "check the URL, or start a replicator first" in cli.error("entity", *command)
        assert list(tmp_path.iterdir()) == []
    assert len(lines(cli, "entity", "read", *order[:4])) == 1


def test_copy_store(cli: CommandLine, url: str, tmp_path: Path) -> None:
    """A replicator continues in the copy; what is wrong is refused."""
    topic = new_topic()
    append(cli, topic, "a")
    replicate = "entity", "replicate", "--topic", topic, "--until-caught-up", "--store"
    lines(cli, *replicate, url)
    other = f"sqlite:{tmp_path / 'other.db'}?namespace=copied"
    copy = "entity", "copy-store", "--topic", topic, "--from", url, "--to", other
    error = cli.error(*copy[:3], "none", *copy[4:])
    assert f"has no topic none; its topics are: {topic}" in error
    assert not (tmp_path / "other.db").exists()
    copied = cli.json(*copy)
    assert copied == {"topic": topic, "journals": 1, "events": 1, "snapshots": 0}
    append(cli, topic, "a")
    (row,) = lines(cli, *replicate, other)
    assert row["events"] == 1
    assert (numbers(url, topic, "a"), numbers(other, topic, "a")) == ([1], [1, 2])
    assert "already has topic" in cli.error(*copy)


def test_unknown_topic(cli: CommandLine, url: str) -> None:
    """A topic without recordings is an error."""
    open_store(url, writable=True).close()
    topic = ("--topic", "none", "--store", url)
    for command, *rest in (
        ("replicate", "--until-caught-up"),
        ("purge-expired",),
        ("retention", "--max-age", "24h"),
    ):
        assert "topic none has no recording" in cli.error("entity", command, *topic, *rest)


def test_purge_expired(cli: CommandLine, url: str) -> None:
    """Expired journals are purged; --dry-run lists them."""
    topic = new_topic()
    append(cli, topic, "short", "--expire-after", "1 ms")
    append(cli, topic, "long", "--expire-after", "20000 days")
    append(cli, topic, "day", "--expire-after", "3 hours")
    replicate = "entity", "replicate", "--topic", topic, "--store", url, "--until-caught-up"
    lines(cli, *replicate)
    purge = "entity", "purge-expired", "--topic", topic, "--store", url
    (listed,) = lines(cli, *purge, "--dry-run")
    assert (listed["key"], listed["purged"]) == ("short", False)
    (purged,) = lines(cli, *purge)
    assert (purged["key"], purged["purged"]) == ("short", True)
    lines(cli, *replicate)
    assert numbers(url, topic, "short") == []
    assert numbers(url, topic, "long") == numbers(url, topic, "day") == [1]


def test_retention(cli: CommandLine, url: str) -> None:
    """Retention reports each partition; without a store it must be forced."""
    topic = new_topic()
    append(cli, topic, "a")
    retention = "entity", "retention", "--topic", topic, "--max-age", "24h"
    assert "give --store, or --force" in cli.error(*retention, code=2)
    lines(cli, "entity", "replicate", "--topic", topic, "--store", url, "--until-caught-up")
    (row,) = lines(cli, *retention, "--store", url)
    assert (row["partition"], row["segment_files"]) == (0, 0)
    assert row["replicated_to"] > 0
    (row,) = lines(cli, *retention, "--force")
    assert (row["start_position"], row["held_files"]) == (0, 0)
    assert "'soon' is not a duration" in cli.error(*retention[:-1], "soon", code=2)
