"""The commands `aerotape entity …`, run as a user runs them, with our archive and the Java one."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.daemon.command_line import CommandLine
from support.entity.topics import new_topic


def lines(cli: CommandLine, *args: object) -> list[dict[str, Any]]:
    """Run a command with --json and return the objects that it printed, one a line."""
    printed = cli.run(*args, "--json").stdout.decode().splitlines()
    return [json.loads(line) for line in printed]


def journal(topic: str, key: str = "order-1") -> tuple[str, ...]:
    return "--topic", topic, "--key", key


def test_append_read_delete_purge(cli: CommandLine) -> None:
    """A journal is written, read, shortened and deleted by its key."""
    topic = new_topic()
    order = journal(topic)
    appended = cli.json(
        "entity",
        "append",
        *order,
        '{"payload": {"price": 3}, "tags": ["new"]}',
        '{"payload": "note", "payload_type": "text"}',
        '{"payload": "00ff", "payload_type": "binary"}',
        "{}",
        "--expire-after",
        "1 day",
        "--metadata",
        '{"user": 7}',
    )
    assert (appended["from_seq_nr"], appended["to_seq_nr"]) == (1, 4)
    assert (appended["topic"], appended["key"], appended["partition"]) == (topic, "order-1", 0)
    read = lines(cli, "entity", "read", *order)
    assert [(each["seq_nr"], each["payload_type"], each["payload"]) for each in read] == [
        (1, "json", {"price": 3}),
        (2, "text", "note"),
        (3, "binary", "00ff"),
        (4, "none", None),
    ]
    assert read[0]["tags"] == ["new"]
    assert {each["expire_after_ns"] for each in read} == {86_400_000_000_000}
    assert read[3]["metadata"] == {"user": 7}
    people = cli.run("entity", "read", *order, "--from", 2).stdout.decode().splitlines()
    assert people == ["2 text note", "3 binary 00ff", "4 none"]
    assert cli.json("entity", "pointer", *order)["seq_nr"] == 4
    assert cli.json("entity", "delete", *order, "--to", 2)["deleted"] is True
    assert [each["seq_nr"] for each in lines(cli, "entity", "read", *order)] == [3, 4]
    cli.json("entity", "append", *order, '{"payload": []}')
    assert cli.json("entity", "pointer", *order)["seq_nr"] == 5
    cli.json("entity", "purge", *order)
    assert lines(cli, "entity", "read", *order) == []
    assert cli.json("entity", "pointer", *order) == {
        "topic": topic,
        "key": "order-1",
        "seq_nr": None,
    }


def test_events_of_standard_input(cli: CommandLine) -> None:
    """Events may come a line each from standard input, with their sequence numbers."""
    order = journal(new_topic())
    events = '{"seq_nr": 2, "payload": 1}\n\n{"seq_nr": 7, "payload": 2}\n'
    append_lines(cli, order, events.encode())
    assert [each["seq_nr"] for each in lines(cli, "entity", "read", *order)] == [2, 7]


def test_appending_what_read_printed(cli: CommandLine) -> None:
    """The output of read --json may be the standard input of append; the events are equal."""
    topic = new_topic()
    one, other = journal(topic, "one"), journal(topic, "other")
    cli.run("entity", "append", *one, '{"payload": [1], "tags": ["a"]}', '{"payload": null}', "{}")
    printed = cli.run("entity", "read", *one, "--json").stdout
    append_lines(cli, other, printed)
    names = ("seq_nr", "tags", "payload_type", "payload")
    found, expected = (
        [[each[name] for name in names] for each in lines(cli, "entity", "read", *key)]
        for key in (other, one)
    )
    assert found == expected and len(found) == 3


def test_payloads_in_json_are_not_rewritten(cli: CommandLine) -> None:
    """Payloads are appended and printed as they are written, without line breaks."""
    topic = new_topic()
    one, other = journal(topic, "one"), journal(topic, "other")
    payloads = [
        '{"price": 2.50, "id":12345678901234567890.123, "a":1, "a":2}',
        r'["\u00fc \ud800", "ü😀", 1E400, -0.0]',
    ]
    cli.run("entity", "append", *one, *(f'{{"payload": {each} }}' for each in payloads))
    printed = cli.run("entity", "read", *one, "--json").stdout
    assert all(f'"payload": {each}, "' in printed.decode() for each in payloads)
    append_lines(cli, other, printed)
    again = cli.run("entity", "read", *other, "--json").stdout.decode()
    assert all(f'"payload": {each}, "' in again for each in payloads)


def test_a_payload_with_line_breaks_is_one_line(cli: CommandLine) -> None:
    """Its value can be appended again; characters that control a terminal are escaped."""
    order, payload = journal(new_topic()), '{"a":\r\n [1,\n2.50],"\x7f\x9b\u2028": "\\n"}'
    cli.run("entity", "append", *order, f'{{"payload": {payload}}}')
    printed = cli.run("entity", "read", *order, "--json").stdout
    assert printed.count(b"\n") == 1
    assert rb'{"a":   [1, 2.50],"\u007f\u009b\u2028": "\n"}' in printed
    assert json.loads(printed)["payload"] == json.loads(payload)


def append_lines(
    cli: CommandLine, key: tuple[str, ...], lines: bytes, command: str = "append"
) -> None:
    """Append events, or save a snapshot, that standard input has, a line each."""
    subprocess.run(
        [sys.executable, "-m", "aerotape", "entity", command, *key, "-"],
        input=lines,
        env=cli.environment,
        timeout=60,
        check=True,
        capture_output=True,
    )


def test_an_unknown_topic_is_not_created(cli: CommandLine) -> None:
    """All commands but append refuse it: its name may be wrong."""
    topic = new_topic()
    order = journal(topic)
    for command, *rest in (("read",), ("pointer",), ("delete", "--to", 3), ("purge",)):
        error = cli.error("entity", command, *order, *rest, "--json")
        assert f"topic {topic} has no recording: check its name" in error
    assert topic not in cli.run("list", "--json").stdout.decode()
    cli.run("entity", "append", *order, "{}", "--partitions", 3)


def test_delete_without_a_journal(cli: CommandLine) -> None:
    """A delete of nothing reports that it wrote nothing."""
    topic = new_topic()
    cli.run("entity", "append", *journal(topic), "{}")
    other = journal(topic, "other")
    assert cli.json("entity", "delete", *other, "--to", 3)["deleted"] is False
    assert cli.json("entity", "pointer", *other)["seq_nr"] is None
    assert lines(cli, "entity", "read", *other) == []


def test_an_event_is_its_payload(cli: CommandLine) -> None:
    """A JSON value that has no member of an event is appended as it is written."""
    order = journal(new_topic())
    payloads = ['{"price": 3.10}', "7", '"text"', "[1, null]", "null", '{"id": {"tags": []}}']
    cli.run("entity", "append", *order, *payloads, '{"tags": ["x"], "payload": 8}')
    shown = cli.run("entity", "read", *order).stdout.decode()
    for payload in payloads:
        assert payload in shown
    rows = lines(cli, "entity", "read", *order)
    assert [each["payload"] for each in rows] == [*map(json.loads, payloads), 8]
    assert [each["tags"] for each in rows] == [[]] * len(payloads) + [["x"]]


def test_partitions(cli: CommandLine) -> None:
    """A new topic gets the number of partitions given; another number is refused later."""
    topic = new_topic()
    for number in range(4):
        cli.run("entity", "append", *journal(topic, f"k{number}"), "{}", "--partitions", 3)
    assert lines(cli, "entity", "read", *journal(topic, "k3"))[0]["partition"] in (0, 1, 2)
    error = cli.error("entity", "read", *journal(topic), "--partitions", 2, code=2)
    assert f"topic {topic} has 3 partitions" in error


def test_store(cli: CommandLine, tmp_path: Path) -> None:
    """With --store, a journal is read from the store and the log."""
    order = journal(new_topic())
    store = ("--store", f"sqlite:{tmp_path / 'journals.db'}")
    cli.run("entity", "append", *order, "{}", "{}")
    cli.run("entity", "replicate", "--topic", order[1], *store, "--until-caught-up")
    cli.run("entity", "append", *order, "{}", *store)
    assert [each["seq_nr"] for each in lines(cli, "entity", "read", *order, *store)] == [1, 2, 3]
    assert "xyz" in cli.error("entity", "read", *order, "--store", "xyz:", code=2)


def test_errors(cli: CommandLine) -> None:
    """A user's mistakes are one line and exit code 2; refused events are exit code 1."""
    order = journal(new_topic())
    append = ("entity", "append", *order)
    assert "event 2: { is not JSON" in cli.error(*append, "{}", "{", code=2)
    assert "event 1: {} 1 is not JSON: trailing" in cli.error(*append, "{} 1", code=2)
    assert "is not JSON" in cli.error(*append, '{"payload": NaN}', code=2)
    assert "is not JSON" in cli.error(*append, '{"payload": 01}', code=2)
    assert "payload_type" in cli.error(*append, '{"payload_type": "xml"}', code=2)
    assert "'seqNr'" in cli.error(*append, '{"seqNr": 1}', code=2)
    assert "some events have a seq_nr" in cli.error(*append, '{"seq_nr": 1}', "{}", code=2)
    assert "hexadecimal" in cli.error(
        *append, '{"payload": "xx", "payload_type": "binary"}', code=2
    )
    assert "payload_type none has no payload" in cli.error(
        *append, '{"payload_type": "none", "payload": 1}', code=2
    )
    surrogate = '{"payload": "\\ud800", "payload_type": "text"}'
    assert "surrogates not allowed" in cli.error(*append, surrogate, code=2)
    no_text = b"\xff".decode(errors="surrogateescape")
    assert "is not UTF-8" in cli.error(*append[:-1], no_text, "{}", code=2)
    assert "is not JSON: EOF" in cli.error(*append, '{"payload": ' + "[" * 100_000, code=2)
    deep = "[" * 50_000 + "]" * 50_000
    assert "nested too deeply" in cli.error(*append, f'{{"tags": {deep}}}', code=2)
    assert "nested deeper than 500 levels" in cli.error(*append, f'{{"payload": {deep}}}')
    assert "expected sequence numbers that rise" in cli.error(*append, '{"seq_nr": 0}')
    assert "rise" in cli.error(*append, '{"seq_nr": 2}', '{"seq_nr": 1}')
    assert "not a topic's name" in cli.error("entity", "purge", *journal("a|b"), code=2)
    assert "not between" in cli.error("entity", "delete", *order, "--to", 0, code=2)


def test_expected_number(cli: CommandLine) -> None:
    """An append with --expect fails, and changes nothing, if the journal has another last event."""
    topic = new_topic()
    order = journal(topic)
    cli.run("entity", "append", *order, "{}", "--expect", 0)
    for expect in (0, 2):
        failed = cli.error("entity", "append", *order, "{}", "--expect", expect)
        assert f"ends with event 1, not with {expect}" in failed
    done = cli.json("entity", "append", *order, "{}", "{}", "--expect", 1)
    assert (done["from_seq_nr"], done["to_seq_nr"]) == (2, 3)
    failed = cli.error("entity", "append", *order, '{"seq_nr": 9}', "--expect", 3)
    assert "with expect=3 they begin with 4" in failed
    assert cli.json("entity", "pointer", *order)["seq_nr"] == 3


def test_concurrent_appends_without_numbers(cli: CommandLine) -> None:
    """Commands that append at the same time all append after the last event."""
    order = journal(new_topic())
    cli.run("entity", "append", *order, "{}")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: cli.json("entity", "append", *order, "{}", "{}"), range(12)))
    acknowledged = sorted(
        number for each in done for number in (each["from_seq_nr"], each["to_seq_nr"])
    )
    assert acknowledged == list(range(2, 26))
    read = lines(cli, "entity", "read", *order)
    assert [each["seq_nr"] for each in read] == list(range(1, 26))


def test_snapshots(cli: CommandLine, tmp_path: Path) -> None:
    """A snapshot is saved and printed, from the log and from a store; its line can be saved."""
    topic = new_topic()
    order, other = journal(topic), journal(topic, "other")
    save = ("entity", "save-snapshot", *order)
    assert "has no recording" in cli.error(*save, '{"seq_nr": 1}')
    for key in (order, other):
        cli.run("entity", "append", *key, "{}", "{}", "{}")
    assert cli.run("entity", "snapshot", *order).stdout == b""
    saved = cli.json(*save, '{"seq_nr": 2, "payload": {"n": 2.50}}', "--metadata", "[1]")
    assert (saved["topic"], saved["key"], saved["seq_nr"]) == (topic, "order-1", 2)
    printed = cli.run("entity", "snapshot", *order, "--json").stdout
    assert b'"payload": {"n": 2.50}' in printed
    (found,) = lines(cli, "entity", "snapshot", *order)
    assert (found["seq_nr"], found["offset"], found["metadata"]) == (2, saved["offset"], [1])
    append_lines(cli, other, printed, "save-snapshot")
    assert cli.run("entity", "snapshot", *other).stdout == b'2 json {"n": 2.50}\n'
    cli.run(*save, '{"seq_nr": 3, "payload": "00ff", "payload_type": "binary"}')
    assert cli.run("entity", "snapshot", *order).stdout == b"3 binary 00ff\n"
    assert "ends with event 3" in cli.error(*save, '{"seq_nr": 4}')
    for text in ("{}", '{"seq_nr": 1, "tags": []}'):
        assert "expected one object with a seq_nr" in cli.error(*save, text, code=2)
    assert "is not JSON" in cli.error(*save, "{", code=2)


def test_store_only(cli: CommandLine, tmp_path: Path) -> None:
    """With --store-only no archive is needed; a note says how old the answer may be."""
    topic = new_topic()
    order = journal(topic)
    store = ("--store", f"sqlite:{tmp_path / 'journals.db'}")
    cli.run("entity", "append", *order, "{}", "{}")
    cli.run("entity", "save-snapshot", *order, '{"seq_nr": 1, "payload": 7}')
    cli.run("entity", "replicate", "--topic", topic, *store, "--until-caught-up")
    cli.run("entity", "append", *order, "{}")
    nowhere = cli.environment | {"AERON_DIR": str(tmp_path / "none")}
    expected = {"read": b"1 none\n2 none\n", "snapshot": b"1 json 7\n"}
    for command in ("read", "snapshot", "pointer"):
        stored = ("entity", command, *order, *store, "--store-only")
        done = cli.run(*stored, "--aeron-dir", tmp_path / "none", env=nowhere)
        assert f"topic {topic} as replicated at 2".encode() in done.stderr
        assert b"(partition 0, the oldest of 1): newer records may be missing" in done.stderr
        if command in expected:
            assert done.stdout == expected[command]
    assert cli.json(*stored)["seq_nr"] == 2
    assert "no store; give --store" in cli.error("entity", "read", *order, "--store-only", code=2)
    unknown = ("entity", "read", *journal("unknown"), *store, "--store-only")
    assert f"has no topic unknown; its topics are: {topic}" in cli.error(*unknown)
