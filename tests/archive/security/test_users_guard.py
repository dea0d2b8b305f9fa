"""The users guard under load: bounded hashing, refusal when busy, no disclosure of user names."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.daemon.control_rig import await_true

from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users import MAX_QUEUED_SECRETS, UsersGuard
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.control_address import OwnAddresses
from aerotape.scram import Verifier

ITERATIONS = 5_000
ADDRESSES = OwnAddresses("aeron:udp?endpoint=10.0.0.1:8010")
BUSY = f"{MAX_QUEUED_SECRETS} other secrets are to be checked first: try again"


@dataclass
class Session:
    """A control session that waits for the guard."""

    session_id: int
    source_identity: str = "10.0.0.1:4000"
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
    """A guard that hashes secrets while a gate is open."""

    guard: UsersGuard
    gate: threading.Event = field(default_factory=threading.Event)
    hashed: list[bytes] = field(default_factory=list)
    sessions: int = 0

    def knock(self, credentials: bytes) -> Session:
        """Connect with credentials, ready for a response."""
        self.sessions += 1
        session = Session(self.sessions)
        self.guard.on_connect_request(session.session_id, credentials, 0)
        self.is_decided(session)
        return session

    def is_decided(self, session: Session) -> bool:
        """Call the guard once; return whether the session is decided."""
        if not session.is_decided:
            self.guard.on_connected_session(session, 0)
        return session.is_decided

    def decide(self, session: Session) -> Session:
        """Wait until the session is decided."""
        await_true(lambda: self.is_decided(session))
        return session

    def fill(self, *, name: bytes) -> list[Session]:
        """Close the gate and fill the queue; return the sessions that wait."""
        self.gate.clear()
        return [self.knock(name + b":wrong%d" % number) for number in range(MAX_QUEUED_SECRETS)]


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    path = tmp_path / "users"
    for name in ("alice", "bob"):
        put_user(path, make_user(name, Role.READ, name.encode(), ITERATIONS))
    door = Door(UsersGuard(path, ADDRESSES, Permissions()))
    accepts = Verifier.accepts_secret

    def accepts_when_open(verifier: Verifier, secret: bytes) -> bool:
        door.gate.wait(20)
        door.hashed.append(secret)
        return accepts(verifier, secret)

    monkeypatch.setattr(Verifier, "accepts_secret", accepts_when_open)
    door.gate.set()
    yield door
    door.gate.set()
    door.guard.close()


def test_wrong_secrets_do_not_block_known_secrets_and_proofs(door: Door) -> None:
    """With a full queue, a previously accepted secret is accepted and a name is challenged."""
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    flood = door.fill(name=b"bob")
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    assert door.knock(b"bob").challenges
    door.gate.set()
    assert {door.decide(each).refusal for each in flood} == {""}


@pytest.mark.parametrize("name", [b"bob", b"nobody"])
def test_a_full_queue_refuses_and_advises_to_retry(door: Door, name: bytes) -> None:
    """Known and unknown users alike; once there is room, the same secret is checked."""
    flood = door.fill(name=name)
    refused = [door.decide(door.knock(each)) for each in (b"alice:alice", b"nobody:x", b"bob:bob")]
    assert [each.refusal for each in refused] == [BUSY] * 3
    assert not any(door.is_decided(each) for each in flood)
    door.gate.set()
    assert {door.decide(each).refusal for each in flood} == {""}
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"


def test_an_unknown_user_costs_as_many_iterations(door: Door) -> None:
    """The same hash is computed for unknown users, so that timing does not disclose user names."""
    for name in (b"alice", b"nobody"):
        assert door.decide(door.knock(name + b":guess")).refusal == ""
    assert door.hashed == [b"guess"] * 2
    assert door.guard._verifier("nobody").iterations == ITERATIONS


def test_nothing_is_hashed_before_the_client_can_receive_a_response(door: Door) -> None:
    """A client that cannot receive a response yet takes no place in the queue."""
    for number in range(100):
        door.guard.on_connect_request(1_000 + number, b"alice:wrong%d" % number, 0)
    assert door.decide(door.knock(b"alice:alice")).principal == b"alice"
    assert door.hashed == [b"alice"]


def test_one_secret_is_hashed_once(door: Door) -> None:
    """A secret is hashed once per user name, known or not, however many clients send it."""
    door.gate.clear()
    crowd = [door.knock(b"bob:bob") for _ in range(30)]
    wrong = [door.knock(b"alice:bob") for _ in range(30)]
    unknown = [door.knock(b"nobody:bob") for _ in range(30)]
    door.gate.set()
    assert {door.decide(each).principal for each in crowd} == {b"bob"}
    assert {door.decide(each).refusal for each in (*wrong, *unknown)} == {""}
    for _ in range(3):
        for credentials in (b"alice:bob", b"nobody:bob"):
            assert door.decide(door.knock(credentials)).refusal == ""
    assert door.hashed == [b"bob"] * 3


def test_a_new_secret_is_accepted_that_was_wrong_before(door: Door) -> None:
    """Cached results are discarded with the file's entry that they belong to."""
    assert door.decide(door.knock(b"alice:new")).refusal == ""
    put_user(door.guard._file.path, make_user("alice", Role.READ, b"new", ITERATIONS))
    assert door.decide(door.knock(b"alice:new")).principal == b"alice"
    assert door.decide(door.knock(b"alice:alice")).refusal == ""


def test_an_unknown_user_is_challenged_as_a_known_one(door: Door) -> None:
    """The salt is the same each time, also after a restart; the nonce differs."""
    restarted = Door(UsersGuard(door.guard._file.path, ADDRESSES, Permissions()))
    for name in (b"alice", b"nobody"):
        [first], [second] = (each.knock(name).challenges for each in (door, restarted))
        assert first != second
        assert first.partition(b",s=")[2] == second.partition(b",s=")[2]
        assert first.endswith(b",i=%d" % ITERATIONS)


@pytest.mark.parametrize("seed", [1, 2])
def test_credentials_at_random(door: Door, seed: int) -> None:
    """Random bytes as credentials and as responses to challenges are refused, without a reason
    unless there are no credentials."""
    dice = random.Random(seed)
    parts = (b"alice", b":", b"alicE", b"\0", b"\xff", b"p=", b"scram-sha-256 ", b"A" * 44, b"$")

    def odd() -> bytes:
        return b"".join(dice.choices(parts, k=dice.randrange(5))) + dice.randbytes(
            dice.randrange(9)
        )

    for _ in range(120):
        session = door.knock(credentials := odd())
        if session.challenges:
            door.guard.on_challenge_response(session.session_id, odd(), 0)
            door.guard.on_challenged_session(session, 0)
        refusal = door.decide(session).refusal
        assert refusal == "" if credentials else "this archive has users" in str(refusal)
