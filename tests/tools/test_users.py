"""The command `users`, and the authentication options of commands."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.daemon.archives import ServedArchive, serve

import aerotape
from aerotape.tools._cli.main import main

Run = Callable[..., Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command; return its JSON output, or its one line of error."""

    def call(*args: object, stdin: bytes = b"", code: int = 0) -> Any:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=bool))
        assert main([*map(str, args), "--json"]) == code
        out, err = capsys.readouterr()
        if code == 0:
            return json.loads(out)
        assert out == ""
        (line,) = err.splitlines()
        return line

    return call


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    """A file with a secret and a trailing newline, as an editor saves it."""
    path = tmp_path / "secret"
    path.write_text("open sesame\n")
    path.chmod(0o600)
    return path


def test_users_are_added_changed_and_removed(run: Run, tmp_path: Path, secret_file: Path) -> None:
    """Added, listed, changed, removed; the secret comes from a file or standard input."""
    users = tmp_path / "users"
    few = ("--iterations", 5000)
    made = run("users", users, "add", "alice", "--secret-file", secret_file, *few)
    assert made == {"added": "alice", "role": "read"}
    run("users", users, "add", "bob", "--role", "admin", "--secret-file", "-", *few, stdin=b"x\ny")
    changed = run("users", users, "add", "alice", "--role", "record", "--secret-file", secret_file)
    assert changed == {"changed": "alice", "role": "record"}
    assert run("users", users, "list") == [
        {"user": "alice", "role": "record", "iterations": 200_000},
        {"user": "bob", "role": "admin", "iterations": 5_000},
    ]
    assert run("users", users, "remove", "bob") == {"removed": "bob"}
    assert "has no user bob" in run("users", users, "remove", "bob", code=1)
    assert [row["user"] for row in run("users", users, "list")] == ["alice"]
    # For an archive that may not create files there.
    assert sorted(each.name for each in tmp_path.glob("users*")) == ["users"]


def test_mistakes_are_one_line(run: Run, tmp_path: Path, secret_file: Path) -> None:
    """Missing or wrong arguments are reported, and nothing is written."""
    users = tmp_path / "users"
    add = ("users", users, "add")
    assert "--secret-file" in run(*add, "alice", code=2)
    assert "NAME is required" in run(*add, code=2)
    assert "not used for list" in run("users", users, "list", "alice", code=2)
    assert "user name 'a:b'" in run(*add, "a:b", "--secret-file", secret_file, code=2)
    assert "expected a secret" in run(*add, "alice", "--secret-file", "-", stdin=b"\n", code=2)
    assert "No such file" in run(*add, "alice", "--secret-file", tmp_path / "none", code=2)
    assert "No such file" in run("users", users, "list", code=2)
    assert not users.exists()
    missing = tmp_path / "none" / "users"
    assert "No such file" in run(
        "users", missing, "add", "alice", "--secret-file", secret_file, code=1
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedArchive]:
    """Our archive with users: alice, whose secret is `open sesame`."""
    users = tmp_path_factory.mktemp("users") / "users"
    from aerotape.archive.security.users_file import Role, make_user, put_user

    put_user(users, make_user("alice", Role.READ, b"open sesame"))
    with serve("aerotape", {"aerotape.users.file": str(users)}) as served:
        yield served


@pytest.fixture(scope="module")
def java_guarded() -> Iterator[ServedArchive]:
    """The Java archive with an authenticator that takes `open:NAME`."""
    with serve("java", {"aeron.archive.authenticator.supplier": "harness.Guard"}) as served:
        yield served


def test_commands_authenticate(
    run: Run, guarded: ServedArchive, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options, properties or the environment give the user, whose role limits the commands."""
    where = (
        "--aeron-dir",
        guarded.aeron_dir,
        "--control-channel",
        guarded.control_channel,
    )
    who = ("--user", "alice", "--secret-file", secret_file)
    assert run("list", *where, *who) == []
    assert "UNAUTHORISED_ACTION" in run("record", "aeron:ipc", 5, *where, *who, code=1)
    assert "AUTHENTICATION_REJECTED" in run("list", *where, code=1)
    assert "give both" in run("list", *where, "--user", "alice", code=2)
    assert "one of them" in run("list", *where, *who, "--credentials-file", secret_file, code=2)
    defines = ("-Daerotape.user=alice", f"-Daerotape.secret.file={secret_file}")
    assert run("list", *where, *defines) == []
    monkeypatch.setenv("AEROTAPE_USER", "alice")
    monkeypatch.setenv("AEROTAPE_SECRET_FILE", str(secret_file))
    assert run("list", *where) == []
    secret_file.write_text("wrong")
    assert "AUTHENTICATION_REJECTED" in run("list", *where, code=1)


@pytest.mark.jvm
def test_credentials_of_other_kinds(
    run: Run, guarded: ServedArchive, java_guarded: ServedArchive, tmp_path: Path
) -> None:
    """A file is sent unchanged, to either archive."""
    credentials = tmp_path / "credentials"
    credentials.touch(0o600)
    for archive, good, refusal in (
        (guarded, b"alice:open sesame", "responds with a challenge"),
        (java_guarded, b"open:alice", "AUTHENTICATION_REJECTED"),
    ):
        where = ("--aeron-dir", archive.aeron_dir, "--control-channel", archive.control_channel)
        credentials.write_bytes(good)
        assert run("list", *where, "--credentials-file", credentials) == []
        assert run("list", *where, "--credentials-file", "-", stdin=good) == []
        credentials.write_bytes(b"nonsense")
        assert refusal in run("list", *where, "--credentials-file", credentials, code=1)


def test_streams_have_the_parameters_of_properties(
    guarded: ServedArchive, secret_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Term length, MTU and client name reach the driver; a misspelt name is a warning, and so is a
    secret that is open to others."""
    secret_file.chmod(0o644)
    with aerotape.Aeron(guarded.aeron_dir) as aeron:
        seen: list[str] = []

        def read_streams(*arguments: str) -> int:
            stop = threading.Event()

            def watch() -> None:
                while not stop.is_set():
                    for row in aeron.native.counters().rows():
                        seen.append(f"{row[1]} {row[3]}")

            watcher = threading.Thread(target=watch)
            watcher.start()
            code = main(["list", "--aeron-dir", str(guarded.aeron_dir), *arguments])
            stop.set()
            watcher.join()
            return code

        code = read_streams(
            "--control-channel",
            guarded.control_channel,
            "--user=alice",
            f"--secret-file={secret_file}",
            "-Daeron.archive.control.term.buffer.length=128k",
            "-Daeron.archive.control.mtu.length=2048",
            "-Daeron.archive.client.name=nightly",
            "-Daeron.archive.mesage.timeout=5s",
        )
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert "did you mean aeron.archive.message.timeout?" in printed.err
        open_to_others = f"{secret_file} is accessible to other users: run chmod 600 {secret_file}"
        assert f"warning: {open_to_others}\n" in printed.err
        streams = [text for text in seen if "term-length=131072" in text and "mtu=2048" in text]
        assert any("session-id" in text for text in streams), seen[:20]
        assert any("control-session: name=nightly" in text for text in seen)
