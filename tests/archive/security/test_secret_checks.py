"""Hashing of secrets: hosts take turns, and nobody waits for long behind those of others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.daemon.control_rig import await_true

from aerotape.archive.security.authentication import SessionProxy
from aerotape.archive.security.scram import Verifier
from aerotape.archive.security.secret_checks import (
    MAX_WAITING_OF_A_HOST,
    BusyError,
    SecretChecks,
    host_of,
)
from aerotape.archive.security.users import UsersGuard
from aerotape.archive.security.users_file import Role, make_user, put_user

ITERATIONS = 5_000


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Hashing waits for it."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def checks(gate: threading.Event) -> Iterator[SecretChecks[str]]:
    checks: SecretChecks[str] = SecretChecks()
    yield checks
    gate.set()
    checks.close()


def begin(checks: SecretChecks[str], gate: threading.Event, done: list[str]) -> None:
    """Have the thread at work until the gate is opened."""
    begun = threading.Event()

    def check() -> str:
        begun.set()
        gate.wait(20)
        done.append("first")
        return "first"

    checks.submit("first", ITERATIONS, check)
    assert begun.wait(10)


def test_hosts_take_turns(checks: SecretChecks[str], gate: threading.Event) -> None:
    """Whoever sends many waits behind nobody's back; answers go to whom they belong."""
    done: list[str] = []

    def noted(name: str) -> Callable[[], str]:
        return lambda: done.append(name) or name  # type: ignore[func-returns-value]

    begin(checks, gate, done)
    names = ["mallory1", "mallory2", "mallory3", "alice1", "bob1", "alice2"]
    results = [checks.submit(name[:-1], ITERATIONS, noted(name)) for name in names]
    gate.set()
    assert [result.result(10) for result in results] == names
    turns = ["first", "mallory1", "alice1", "bob1", "mallory2", "alice2", "mallory3"]
    assert done == turns


def test_a_host_has_a_few_waiting(checks: SecretChecks[str], gate: threading.Event) -> None:
    """Of each; others are still taken."""
    begin(checks, gate, [])
    for _ in range(MAX_WAITING_OF_A_HOST):
        checks.submit("mallory", ITERATIONS, lambda: "")
    with pytest.raises(BusyError, match="16 other secrets from this host are to be checked first"):
        checks.submit("mallory", ITERATIONS, lambda: "")
    checks.submit("alice", ITERATIONS, lambda: "")


def test_who_would_wait_too_long_is_refused(
    checks: SecretChecks[str], gate: threading.Event
) -> None:
    """However slow the own secret is, what counts is what comes before it."""
    begin(checks, gate, [])
    checks.submit("slow", 9_000_000, lambda: "")
    with pytest.raises(BusyError, match=r"for 4\.5 s to come"):
        checks.submit("alice", ITERATIONS, lambda: "")


def test_a_check_that_fails_is_the_failure_of_its_client(
    checks: SecretChecks[str], gate: threading.Event
) -> None:
    """And the thread goes on."""
    failing = checks.submit("alice", ITERATIONS, lambda: str(1 // 0))
    assert isinstance(failing.exception(10), ZeroDivisionError)
    assert checks.submit("alice", ITERATIONS, lambda: "next").result(10) == "next"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.0.0.1:4000", "10.0.0.1:4001"),
        ("aeron:ipc", "aeron:ipc"),
        ("[2001:db8::1]:4000", "[2001:db8:0:0:1::2]:4001"),
        ("[fe80::1%eth0]:4000", "[fe80::2%eth0]:4000"),
    ],
)
def test_sources_of_one_host(one: str, other: str) -> None:
    """Whatever the port; networks of IPv6 count as hosts."""
    assert host_of(one) == host_of(other)


def test_sources_of_several_hosts() -> None:
    """Each is its own."""
    sources = ("10.0.0.1:4000", "10.0.0.2:4000", "aeron:ipc", "[2001:db8::1]:4000")
    hosts = {host_of(source) for source in (*sources, "[2001:db8:0:1::1]:4000", "")}
    assert len(hosts) == 6


@dataclass
class Session:
    """A control session that is to be decided on."""

    session_id: int
    source_identity: str
    principal: bytes | None = None
    refusal: str | None = None
    challenges: list[bytes] = field(default_factory=list)

    def challenge(self, encoded_challenge: bytes) -> bool:
        self.challenges.append(encoded_challenge)
        return True

    def authenticate(self, encoded_principal: bytes) -> bool:
        self.principal = encoded_principal
        return True

    def reject(self, why: str = "") -> None:
        self.refusal = why

    @property
    def is_decided(self) -> bool:
        return self.principal is not None or self.refusal is not None


@dataclass
class Door:
    """A guard, and the secrets that it hashes, while the gate is open."""

    guard: UsersGuard
    gate: threading.Event
    hashed: list[bytes]
    sessions: int = 0

    def knock(self, credentials: bytes, host: str = "10.0.0.1") -> Session:
        """Come with credentials, and be there to be answered."""
        self.sessions += 1
        session = Session(self.sessions, f"{host}:{self.sessions}")
        self.guard.on_connect_request(session.session_id, credentials, 0)
        self.is_decided(session)
        return session

    def is_decided(self, session: Session) -> bool:
        """Ask once."""
        if not session.is_decided:
            self.guard.on_connected_session(SessionProxy(session), 0)
        return session.is_decided

    def decide(self, session: Session) -> Session:
        """Wait until it is decided."""
        await_true(lambda: self.is_decided(session))
        return session


@pytest.fixture
def door(tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    path = tmp_path / "users"
    for name in ("alice", "bob"):
        put_user(path, make_user(name, Role.READ, name.encode(), ITERATIONS))
    guard = UsersGuard(path)
    hashed: list[bytes] = []
    accepts = Verifier.accepts_secret

    def accepts_in_time(verifier: Verifier, secret: bytes) -> bool:
        gate.wait(20)
        hashed.append(secret)
        return accepts(verifier, secret)

    monkeypatch.setattr(Verifier, "accepts_secret", accepts_in_time)
    gate.set()
    yield Door(guard, gate, hashed)
    gate.set()
    guard.close()


BUSY = f"{MAX_WAITING_OF_A_HOST} other secrets from this host are to be checked first: try again"


def test_wrong_secrets_keep_nobody_out(door: Door) -> None:
    """Neither who was there before, nor who proves the secret, nor the user that they name, who
    comes from another host; who is refused for them is told to try again."""
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    door.gate.clear()
    flood = [door.knock(b"bob:wrong%d" % number) for number in range(30)]
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    proving = door.knock(b"bob")
    await_true(lambda: door.is_decided(proving) or bool(proving.challenges))
    assert proving.challenges
    bob = door.knock(b"bob:bob", host="10.0.0.2")
    await_true(lambda: sum(door.is_decided(each) for each in flood) >= 13)
    assert {each.refusal for each in flood if each.is_decided} == {BUSY}
    assert not door.is_decided(bob)
    # Looked at behind bob's, which waits for its turn by then.
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    door.gate.set()
    assert door.decide(bob).principal == b"bob"
    refusals = [door.decide(each).refusal for each in flood]
    # The one that was being hashed, and those that waited.
    assert MAX_WAITING_OF_A_HOST <= refusals.count("") <= MAX_WAITING_OF_A_HOST + 1
    # Behind the one that was being hashed, and one of the waiting ones.
    assert door.hashed.index(b"bob") <= 3


def test_refusals_do_not_tell_who_is_a_user(door: Door) -> None:
    """However many secrets wait, and under whatever names: a name changes nothing."""
    door.gate.clear()
    flood = [door.knock(b"nobody%d:x" % number) for number in range(40)]
    await_true(lambda: sum(door.is_decided(each) for each in flood) >= 23)
    for name in (b"alice", b"nobody", b"nobody1"):
        assert door.decide(door.knock(name + b":guess")).refusal == BUSY
    elsewhere = [door.knock(name + b":guess", host="10.0.0.2") for name in (b"alice", b"nobody")]
    bob = door.knock(b"bob:bob", host="10.0.0.2")
    assert not any(door.is_decided(each) for each in (*elsewhere, bob))
    door.gate.set()
    assert door.decide(bob).principal == b"bob"
    assert [door.decide(each).refusal for each in elsewhere] == ["", ""]


def test_nothing_is_hashed_for_who_cannot_be_answered(door: Door) -> None:
    """A client that has sent a request only costs no turn."""
    for number in range(100):
        door.guard.on_connect_request(1_000 + number, b"alice:wrong%d" % number, 0)
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    assert door.hashed == [b"alice"]


def test_one_secret_is_hashed_once(door: Door) -> None:
    """By whomever it is sent, right or wrong, as often as that is; also of a user there is not."""
    door.gate.clear()
    crowd = [door.knock(b"bob:bob") for _ in range(30)]
    wrong = [door.knock(b"alice:bob") for _ in range(30)]
    nobody = [door.knock(b"nobody:bob") for _ in range(30)]
    door.gate.set()
    assert {door.decide(each).principal for each in crowd} == {b"bob"}
    assert {door.decide(each).refusal for each in (*wrong, *nobody)} == {""}
    for _ in range(3):
        for credentials in (b"alice:bob", b"nobody:bob"):
            assert door.decide(door.knock(credentials)).refusal == ""
    assert door.hashed == [b"bob"] * 3


def test_a_new_secret_counts_that_was_wrong_before(door: Door) -> None:
    """What is remembered goes with what is in the file."""
    assert door.decide(door.knock(b"alice:new")).refusal == ""
    put_user(door.guard._file.path, make_user("alice", Role.READ, b"new", ITERATIONS))
    assert door.decide(door.knock(b"alice:new")).principal == b"alice"
    assert door.decide(door.knock(b"alice:alice")).refusal == ""
