"""The commands `aerotape entity follow` and `list`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine
from support.entity.topics import new_topic

from aerotape.tools._cli.times import time_text


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'entities.db'}"


def lines(cli: CommandLine, *args: object) -> list[dict[str, Any]]:
    """Run a command with --json and return the objects that it printed, one a line."""
    return [json.loads(each) for each in cli.run(*args, "--json").stdout.decode().splitlines()]


def history(cli: CommandLine, topic: str) -> None:
    """Two appends, a delete and a purge."""
    key = "--topic", topic, "--key", "a"
    events = '{"payload": {"n": 1.50}, "tags": ["x"]}', '{"payload": "t", "payload_type": "text"}'
    cli.run("entity", "append", *key, *events)
    cli.run("entity", "delete", *key, "--to", 1)
    cli.run("entity", "append", *key[:3], "b", '{"payload": 2, "tags": ["y"]}')
    cli.run("entity", "purge", *key)


def test_follow(cli: CommandLine, url: str) -> None:
    """Changes as JSON and as text, by tag, and from the positions of a change."""
    topic = new_topic()
    history(cli, topic)
    command = "entity", "follow", "--topic", topic, "--until-caught-up"
    changes = lines(cli, *command)
    assert [(each["key"], each["change"]) for each in changes] == [
        ("a", "append"), ("a", "delete"), ("b", "append"), ("a", "purge")
    ]  # fmt: skip
    assert {each["topic"] for each in changes} == {topic}
    assert [each["payload"] for each in changes[0]["events"]] == [{"n": 1.5}, "t"]
    assert changes[0]["events"][0]["tags"] == ["x"]
    assert changes[1]["to_seq_nr"] == 1
    assert b'{"n": 1.50}' in cli.run(*command, "--json").stdout
    for index, change in enumerate(changes):
        assert lines(cli, *command, "--from", change["positions"]) == changes[index + 1 :]
    shown = cli.run(*command).stdout.decode().splitlines()
    assert shown == ['a 1 json {"n": 1.50}', "a 2 text t", "a deleted up to 1", "b 1 json 2",
                     "a purged"]  # fmt: skip
    assert lines(cli, *command, "--from", "now") == []
    tagged = lines(cli, *command, "--tag", "y", "--tag", "z")
    assert [each["change"] for each in tagged] == ["delete", "append", "purge"]
    replicate = "entity", "replicate", "--topic", topic, "--store", url, "--until-caught-up"
    cli.run(*replicate, "--no-index-positions")
    refused = cli.run(*command, "--store", url, expect=1)
    assert b"start the replicator without --no-index-positions" in refused.stderr
    cli.run(*replicate)
    (stored,) = lines(cli, *command, "--store", url)
    assert (stored["key"], stored["events"]) == ("b", changes[2]["events"])


def test_live(cli: CommandLine) -> None:
    """Without --until-caught-up it follows, and SIGTERM ends it without an error text."""
    topic = new_topic()
    history(cli, topic)
    running = cli.start("entity", "follow", "--topic", topic, "--json")
    assert running.stdout is not None
    try:
        for _ in range(4):
            running.stdout.readline()
        cli.run("entity", "append", "--topic", topic, "--key", "c", "{}")
        assert json.loads(running.stdout.readline())["key"] == "c"
    finally:
        running.terminate()
        output, error = running.communicate(timeout=30)
    assert (running.returncode, output, error) == (143, b"", b"")


def test_refused_follow(cli: CommandLine) -> None:
    """Unknown topics and wrong positions are refused with what was expected."""
    topic = new_topic()
    history(cli, topic)
    command = "entity", "follow", "--until-caught-up", "--topic"
    assert "has no recording" in cli.error(*command, "unknown")
    assert "has 1 partitions" in cli.error(*command, topic, "--from", "0,0", code=2)
    assert "'soon': expected beginning" in cli.error(*command, topic, "--from", "soon", code=2)
    assert "ends at" in cli.error(*command, topic, "--from", "1048576")


def test_list(cli: CommandLine, url: str) -> None:
    """Topics of the archive, topics of a store, and pages of ids."""
    topic = new_topic()
    cli.run("entity", "append", "--topic", topic, "--key", "z", "{}", "--partitions", 3)
    history(cli, topic)
    (recorded,) = [each for each in cli.json("entity", "list") if each["topic"] == topic]
    assert (recorded["type"], recorded["partitions"]) == ("VD_JOURNAL", 3)
    assert recorded["recorded_bytes"] > 0
    assert topic in cli.run("entity", "list").stdout.decode()
    cli.run("entity", "replicate", "--topic", topic, "--store", url, "--until-caught-up")
    (stored,) = cli.json("entity", "list", "--store", url)
    assert stored["topic"] == topic
    assert stored["replicated_bytes"] == recorded["recorded_bytes"]
    command = "entity", "list", "--store", url, "--topic", topic
    ids = cli.json(*command)
    assert [(each["key"], each["seq_nr"], each["deleted_to"]) for each in ids] == [
        ("b", 1, None), ("z", 1, None)
    ]  # fmt: skip
    header, first, _ = cli.run(*command).stdout.decode().splitlines()
    assert header.split() == ["key", "partition", "seq_nr", "deleted_to", "updated", "expires"]
    assert time_text(ids[0]["updated_ms"]) in first
    assert cli.json(*command, "--limit", 1) == ids[:1]
    assert cli.json(*command, "--after", "b") == ids[1:]
    # The same from the recordings.
    recorded_ids = cli.json("entity", "list", "--topic", topic)
    assert recorded_ids == ids
    assert cli.json("entity", "list", "--topic", topic, "--after", "b") == ids[1:]
    assert cli.json("entity", "list", "--topic", topic, "--limit", 1) == ids[:1]


def test_refused_list(cli: CommandLine, url: str, tmp_path: Path) -> None:
    """A topic that does not exist is refused; nothing is created."""
    command = "entity", "list"
    assert "has no recording" in cli.error(*command, "--topic", "t")
    assert "give --topic" in cli.error(*command, "--limit", "3", "--store", url, code=2)
    assert "check the URL" in cli.error(*command, "--topic", "t", "--store", url)
    assert list(tmp_path.iterdir()) == []
