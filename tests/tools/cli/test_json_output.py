"""What commands print with --json has the fields that docs/json-output.md documents.

`support.json_output` checks each output of commands that other tests run; here are the commands
whose output those tests do not read whole.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError
from support.builders.offline_directory import build
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine, aerotape
from support.journals import raft_bytes as built
from support.json_output import check
from support.jvm.java import ROOT

from aerotape.tools import entity, ledger, tool
from aerotape.tools import journal as raft
from aerotape.tools._cli import json_schema
from aerotape.tools._cli.main import command_files
from aerotape.tools._cli.output import ABSENT, Absent

SCHEMA = ROOT / "tests/demo/market-data.xml"
EVENT = '{"seq_nr": 1, "payload": {"price": 3}}\n'


def test_every_command_is_documented() -> None:
    """Commands of groups too; `completion` prints scripts, `help` texts."""
    commands = set(command_files()) - {"completion", "help"}
    for name, group in (("tool", tool), ("ledger", ledger), ("entity", entity), ("journal", raft)):
        commands.remove(name)
        commands |= {f"{name} {command}" for command in group.MODULES}
    found = set(json_schema.commands())
    options = {name for name in found if "--" in name}
    assert found - options == commands


def test_the_page_is_generated() -> None:
    """`python -m aerotape.tools._cli.json_schema --page > docs/json-output.md`."""
    assert (ROOT / "docs/json-output.md").read_text() == json_schema.page()


def test_a_changed_field_is_seen() -> None:
    """A field more, a field less and another type are refused."""
    check(("find", "--json"), '{"recording_id": 1}\n')
    for wrong in ('{"recording_id": "1"}', "{}", '{"recording_id": 1, "more": 2}'):
        with pytest.raises(ValidationError):
            check(("find", "--json"), wrong)


def test_a_schema_is_that_of_the_types_and_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field without a description is refused."""
    monkeypatch.setattr(json_schema, "commands", lambda: {"find": (Found,)})
    expected = {
        "type": "object",
        "properties": {
            "names": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "description": "its names, which may be long",
            },
            "inner": {"$ref": "#/$defs/Inner", "description": "the rest"},
        },
        "required": ["inner"],
        "additionalProperties": False,
    }
    assert json_schema.schema()["properties"] == {"find": {"anyOf": [expected]}}
    monkeypatch.setattr(json_schema, "commands", lambda: {"find": (Undescribed,)})
    with pytest.raises(KeyError, match="count"):
        json_schema.schema()


@dataclass
class Inner:
    """A part.

    Attributes:
        count: a number.
    """

    count: int


@dataclass(kw_only=True)
class Found:
    """A record.

    Attributes:
        names: its names,
            which may be long.
        inner: the rest.
    """

    names: Sequence[str | None] | Absent = ABSENT
    inner: Inner


@dataclass
class Undescribed:
    """A record."""

    count: int


@pytest.fixture(scope="module")
def cli() -> Iterator[CommandLine]:
    """The command line, with a running archive."""
    with serve("aerotape") as served:
        yield CommandLine(served)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory."""
    return build(tmp_path / "archive")


def checked(cli: CommandLine, *args: object, given: str = "") -> Any:
    """Run a command, check its output, and return the first line as it was read."""
    with cli.start(*args, "--json", stdin=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(given, timeout=60)
    assert process.returncode == 0, err
    check([*map(str, args), "--json"], out)
    return json.loads(out.splitlines()[0] if not out.startswith("[") else out)


def test_streams(cli: CommandLine) -> None:
    """Recording, publishing and subscribing; the recording is then purged."""
    checked(cli, "ping")
    checked(cli, "record", "aeron:ipc", 55)
    signals = cli.start("signals", "--json", text=True)
    assert signals.stderr is not None and "watching" in signals.stderr.readline()
    subscriber = cli.start("subscribe", "aeron:ipc", 55, "--count", 2, "--json", text=True)
    assert subscriber.stderr is not None and "subscribed" in subscriber.stderr.readline()
    assert checked(cli, "publish", "aeron:ipc", 55, "a", "b")["messages"] == 2
    out, _ = subscriber.communicate(timeout=60)
    check(("subscribe", "--json"), out)
    assert signals.stdout is not None
    lines = [signals.stdout.readline() for _ in range(2)]
    signals.terminate()
    signals.communicate()
    check(("signals", "--json"), "".join(lines))
    recording_id = json.loads(lines[0])["recording_id"]
    checked(cli, "stop-replay", "--recording", recording_id)
    checked(cli, "stop", "aeron:ipc", 55)
    checked(cli, "purge", recording_id, "--yes")
    checked(cli, "counters")
    checked(cli, "metrics", cli.archive.archive_dir)


def test_entities(cli: CommandLine, tmp_path: Path) -> None:
    """Topics, ids and changes."""
    store = f"sqlite:{tmp_path / 'journals.db'}"
    checked(cli, "entity", "append", "--topic", "orders", "--key", "k", "-", given=EVENT)
    assert checked(cli, "entity", "list")
    with cli.start("entity", "replicate", "--topic", "orders", "--store", store, "--json") as one:
        assert one.stdout is not None
        line = one.stdout.readline().decode()
        check(("entity", "replicate", "--json"), line)
        one.terminate()
    assert checked(cli, "entity", "list", "--store", store)
    assert checked(cli, "entity", "list", "--store", store, "--topic", "orders")
    checked(
        cli, "entity", "follow", "--topic", "orders", "--from", "beginning", "--until-caught-up"
    )


def test_files_of_users_and_schemas(tmp_path: Path) -> None:
    users, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_text("a secret of alice\n")
    secret.chmod(0o600)
    for name in ("alice", "bob"):
        options = ("--secret-file", secret, "--iterations", 4096, "--json")
        aerotape("users", users, "add", name, *options)
    aerotape("users", users, "list", "--json")
    aerotape("users", users, "remove", "bob", "--json")
    aerotape("schema", SCHEMA, "--json")
    aerotape("schema", SCHEMA, "--check", "--json")
    (tmp_path / "wrong.xml").write_text("<messageSchema/>")
    aerotape("schema", tmp_path / "wrong.xml", "--check", "--json", expect=None)


def test_archives(directory: Path, tmp_path: Path) -> None:
    """Settings, and what works on a directory."""
    aerotape("archive", "--print-config", "--json")
    for command in ("describe", "count-entries", "pid", "errors", "repair"):
        aerotape("tool", directory, command, "--json", expect=None)
    aerotape("tool", directory, "capacity", "--json")
    aerotape("tool", directory, "capacity", 1 << 20, "--dry-run", "--json")
    aerotape("tool", directory, "export", 0, tmp_path / "exported", "--json", expect=None)
    aerotape("metrics", directory, "--json")
    aerotape("plot", directory, 0, "-o", tmp_path / "plot.png", "--json", expect=None)
    aerotape("bench", "record", "--bytes", "4m", "--rounds", 1, "--dir", tmp_path, "--json")


def test_a_machine(cli: CommandLine) -> None:
    """The findings of the doctor, whatever they are here."""
    with cli.start("doctor", "--json", text=True) as process:
        out, _ = process.communicate(timeout=60)
    check(("doctor", "--json"), out)
    assert json.loads(out)


def test_raft_journals(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    records = [built.record(n, n, built.application(n, n, b"data", 1, 2), 2) for n in (1, 2)]
    built.write_segment(journal, 1, 1, records, size=1024)
    for command in ("list", "show", "verify"):
        aerotape("journal", command, journal, "--json", expect=None)


@pytest.mark.parametrize("command", ["parquet", "table"])
def test_plans_of_tables(command: str, directory: Path, tmp_path: Path) -> None:
    """Without Spark; the directory has recordings that are converted, and others."""
    pytest.importorskip("pyspark")
    pytest.importorskip("deltalake")
    done = aerotape(command, directory, tmp_path / "out", "--dry-run", "--json", expect=None)
    assert '"action": "convert"' in done.out


@pytest.mark.spark
def test_tables(directory: Path, tmp_path: Path) -> None:
    aerotape("parquet", directory, tmp_path / "folder", "--json", expect=None)
    pytest.importorskip("deltalake")
    aerotape("table", directory, tmp_path / "table", "--json", expect=None)
