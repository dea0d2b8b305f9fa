"""The users file: reading, refusing and changing it; and proofs of its secrets."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import stat
import threading
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from aerotape import scram
from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users import UsersFile
from aerotape.archive.security.users_file import (
    Role,
    make_user,
    put_user,
    read_users,
    remove_user,
)
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.scram import Answer, Verifier, answer_challenge

ITERATIONS = scram.MIN_ITERATIONS


def add(path: Path, name: str, secret: bytes = b"secret", role: Role = Role.READ) -> bool:
    """Put a user into the file."""
    return put_user(path, make_user(name, role, secret, ITERATIONS))


def test_keys_are_those_of_the_standard() -> None:
    """Keys equal those of RFC 7677's example: user `user`, secret `pencil`, 4096 iterations."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    verifier = Verifier.of(b"pencil", salt, 4096)
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(verifier.stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == verifier.stored_key


def test_secrets_and_proofs() -> None:
    """The right secret is accepted, plain or as a proof; a proof is valid for one challenge, user
    and address."""
    verifier = Verifier.of(b"s3cret", b"salt" * 4, ITERATIONS)
    assert verifier.accepts_secret(b"s3cret")
    assert not verifier.accepts_secret(b"s3cret ")
    challenge, other = verifier.challenge(b"nonce-1"), verifier.challenge(b"nonce-2")
    data = answer_challenge(b"alice", b"s3cret", challenge, "10.0.0.1:8010")
    answer = Answer.parse(data)
    assert answer is not None
    assert (answer.address, answer.encode()) == ("10.0.0.1:8010", data)
    assert verifier.accepts(b"alice", challenge, answer)
    assert not verifier.accepts(b"alice", other, answer)
    assert not verifier.accepts(b"bob", challenge, answer)
    assert not verifier.accepts(b"alice", challenge, replace(answer, address="10.0.0.2:8010"))
    wrong = Answer.parse(answer_challenge(b"alice", b"guess", challenge, "10.0.0.1:8010"))
    assert wrong is not None
    assert not verifier.accepts(b"alice", challenge, wrong)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"p=",
        b"p=AA",
        b"c=ipc,p=AA",
        b"c=ipc,p=====",
        b"c=ipc,p=" + b64encode(bytes(31)),
        b"c=,p=" + b64encode(bytes(32)),
        b"c=a,b,p=" + b64encode(bytes(32)),
        b"c=\xff,p=" + b64encode(bytes(32)),
        b"x" * 5000,
        b"\xff\xfe",
        b"p",
    ],
)
def test_a_malformed_response_is_refused(answer: bytes) -> None:
    """It is no answer."""
    assert Answer.parse(answer) is None


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"your password please", "not one for a user's secret"),
        (b"scram-sha-256 r=AA==,s=AA==,i=1", "1 iterations: from 4096"),
        (b"scram-sha-256 r=AA==,s=AA==,i=2000001", "2000001 iterations: .* to 2000000"),
        (b"scram-sha-256 r=AA==,s=AA==,i=999999999", "999999999 iterations"),
        (b"scram-sha-256 r=AA==,s=A,i=5000", "damaged"),
    ],
)
def test_a_client_refuses_unsafe_challenges(challenge: bytes, why: str) -> None:
    """Challenges with too few iterations (easy to guess) or too many (slow) are refused."""
    with pytest.raises(AerotapeError, match=why):
        answer_challenge(b"alice", b"secret", challenge, "ipc")


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    """Users are read with role and verifier; the file is private and contains no secret."""
    path = tmp_path / "users"
    assert add(path, "alice", b"open sesame", Role.ADMIN) is False
    assert add(path, "bob@example.org") is False
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"sesame" not in path.read_bytes()
    users = read_users(path)
    assert {name: user.role for name, user in users.items()} == {
        "alice": Role.ADMIN,
        "bob@example.org": Role.READ,
    }
    assert users["alice"].verifier.accepts_secret(b"open sesame")
    assert users["alice"].verifier.salt != users["bob@example.org"].verifier.salt


def test_a_change_retains_the_rest(tmp_path: Path) -> None:
    """Comments in any language, order and mode are retained; a link remains a link."""
    path, link = tmp_path / "users", tmp_path / "link"
    add(path, "alice")
    add(path, "bob")
    # Å and Ņ contain a byte that some parsers take for a line end, as form feeds are.
    comment = "# Gäste\n\n# Åse, Ņina\x0c\r and others\n"
    path.write_bytes(comment.encode() + path.read_bytes() + b"#alice: not one\n")
    path.chmod(0o640)
    link.symlink_to(path)
    before = path.read_bytes().split(b"\n")
    assert add(link, "alice", b"another", Role.RECORD) is True
    after = path.read_bytes().split(b"\n")
    assert link.is_symlink()
    changed = [old for old, new in zip(before, after, strict=True) if old != new]
    assert [line.partition(b":")[0] for line in changed] == [b"alice"]
    assert list(read_users(path)) == ["alice", "bob"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert remove_user(path, "alice") is True
    assert remove_user(path, "alice") is False
    assert list(read_users(path)) == ["bob"]
    with pytest.raises(ConfigurationError, match="cannot remove bob, the last user of users file"):
        remove_user(path, "bob")
    assert path.read_bytes().endswith(b"#alice: not one\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "users"]


def test_a_file_without_users_locks_no_user_out(tmp_path: Path) -> None:
    """An emptied file leaves the last users in force, is refused at a start, and the command does
    not remove the last user; the first user can be added to a file without any.
    """
    path = tmp_path / "users"
    add(path, "alice")
    file = UsersFile(path)
    with pytest.raises(ConfigurationError, match="cannot remove alice, the last user"):
        remove_user(path, "alice")
    path.write_text("# none\n")
    assert list(file.refresh()) == ["alice"]
    with pytest.raises(ConfigurationError, match="has no users: add one"):
        UsersFile(path)
    add(path, "bob")
    assert list(file.refresh()) == ["bob"]


def test_concurrent_changes_are_all_made(tmp_path: Path) -> None:
    """No user is lost when several threads change the file."""
    path = tmp_path / "users"
    names = [f"user{number}" for number in range(12)]
    threads = [threading.Thread(target=add, args=(path, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_users(path)) == sorted(names)


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666, 0o601, 0o660])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    """A file that others may read or write is refused."""
    path = tmp_path / "users"
    add(path, "alice")
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match=rf"its mode {mode:04o} .* chmod 600"):
        read_users(path)


@pytest.mark.root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """It must belong to root or to the archive's user."""
    path = tmp_path / "users"
    add(path, "alice")
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigurationError, match="belongs to user id 12345"):
        read_users(path)


def test_a_missing_or_irregular_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_users(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for irregular in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ConfigurationError, match="not a regular file"):
            read_users(irregular)


@pytest.mark.parametrize(
    "line",
    [
        "alice",
        "alice:admin",
        "alice:king:scram-sha-256$4096$c2FsdHNhbHQ=$" + "A" * 43 + "=",
        "al ice:read:scram-sha-256$4096$c2FsdHNhbHQ=$" + "A" * 43 + "=",
        "alice:read:md5$4096$c2FsdHNhbHQ=$" + "A" * 43 + "=",
        "alice:read:scram-sha-256$1$c2FsdHNhbHQ=$" + "A" * 43 + "=",
        "alice:read:scram-sha-256$4096$c2Fs$" + "A" * 43 + "=",
        "alice:read:scram-sha-256$4096$c2FsdHNhbHQ=$AAAA",
        "alice:read:scram-sha-256$x$c2FsdHNhbHQ=$" + "A" * 43 + "=",
        "alice:read:scram-sha-256$4096$?$?",
        "\x00\xff",
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str) -> None:
    """With its number; the whole file is refused, rather than read in part."""
    path = tmp_path / "users"
    path.write_text(f"# users\n{line}\n", encoding="latin-1")
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match="line 2: not NAME:ROLE:") as caught:
        read_users(path)
    assert "\n" not in str(caught.value)


def test_a_duplicate_user_is_refused(tmp_path: Path) -> None:
    """The whole file is refused, because one entry may have an old secret."""
    path = tmp_path / "users"
    add(path, "alice")
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(ConfigurationError, match="line 2: duplicate user alice"):
        read_users(path)


@pytest.mark.parametrize(
    ("name", "secret", "iterations"),
    [
        ("", b"s", ITERATIONS),
        ("a:b", b"s", ITERATIONS),
        ("#a", b"s", ITERATIONS),
        ("ä", b"s", ITERATIONS),
        ("a" * 65, b"s", ITERATIONS),
        ("a", b"", ITERATIONS),
        ("a", b"s" * 1025, ITERATIONS),
        ("a", b"two\nlines", ITERATIONS),
        ("a", b"s", 100),
        ("a", b"s", 2_000_001),
    ],
)
def test_invalid_users_are_refused(name: str, secret: bytes, iterations: int) -> None:
    """Names and secrets that cannot be stored in the file or sent are refused."""
    with pytest.raises(ConfigurationError):
        make_user(name, Role.READ, secret, iterations)


def test_roles_cover_every_request() -> None:
    """`read` changes nothing, `record` deletes nothing, `admin` may do everything."""
    requests = {
        message.__name__: message.TEMPLATE_ID
        for message in codecs.MESSAGES.values()
        if "Request" in message.__name__ and message is not codecs.AuthConnectRequest
    }

    permissions = Permissions()

    def allowed(role: Role) -> set[str]:
        return {name for name, number in requests.items() if permissions.allow(role, number)}

    assert allowed(Role.READ) < allowed(Role.RECORD) < allowed(Role.ADMIN) == set(requests)
    changes = ("Start", "Extend", "Truncate", "Purge", "Segments", "Replicat", "UpdateChannel")
    assert not [
        name
        for name in allowed(Role.READ)
        for change in changes
        if change in name and name != "StartPositionRequest"
    ]
    destroys = ("Truncate", "Purge", "Segments", "Replicat", "UpdateChannel")
    assert not [name for name in allowed(Role.RECORD) for each in destroys if each in name]
    assert not permissions.allow(Role.RECORD, 9_999)


def test_a_change_applies_once_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that cannot be read for lack of file descriptors is read later."""
    path = tmp_path / "users"
    add(path, "alice")
    add(path, "bob")
    file = UsersFile(path)
    remove_user(path, "bob")

    def no_descriptor(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", no_descriptor)
        assert list(file.refresh()) == ["alice", "bob"]
    assert list(file.refresh()) == ["alice"]
