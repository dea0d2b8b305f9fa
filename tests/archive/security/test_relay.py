"""Attacks on proofs: passed on to another archive, or sent a second time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.control_rig import RawClient, await_true
from support.daemon.relay import Relay, relaying
from support.processes import free_port

import aerotape
from aerotape import UserSecret, _native
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.errors import AerotapeError

ADMIN = UserSecret("admin", b"secret")


@contextmanager
def guarded(folder: Path, **properties: str) -> Iterator[ServedArchive]:
    """Run an archive with an administrator and a user that records."""
    users = folder / "users"
    if not users.exists():
        put_user(users, make_user("admin", Role.ADMIN, b"secret", 5_000))
        put_user(users, make_user("recorder", Role.RECORD, b"own", 5_000))
    names = {name.replace("_", "."): value for name, value in properties.items()}
    with serve("aerotape", {"aerotape.users.file": str(users), **names}) as archive:
        yield archive


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[ServedArchive]:
    with guarded(tmp_path) as running:
        yield running


def connect_to(relay: Relay, archive: ServedArchive) -> None:
    """Connect to the attacker, with the archive's media driver, until it has used the proof."""
    with suppress(AerotapeError):
        aerotape.connect(
            aeron_dir=archive.aeron_dir,
            control_request_channel=relay.channel,
            credentials=ADMIN,
            timeout_ns=5_000_000_000,
        )
    await_true(lambda: relay.outcome is not None)


def test_a_proof_of_a_client_is_worthless_to_another_archive(
    archive: ServedArchive, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that connects to an attacker logs nobody in; the log says what was signed."""
    with (
        serve("aerotape") as elsewhere,
        relaying(elsewhere.aeron_dir, archive.control_channel) as relay,
    ):
        connect_to(relay, archive)
        assert relay.outcome.code is ControlResponseCode.ERROR
        assert relay.outcome.error_message == "authentication rejected"
        signed = relay.channel.rpartition("=")[2].replace("localhost", "127.0.0.1")
        assert f"proved its secret to an archive at {signed}" in caplog.text
        assert "aerotape.control.addresses" in caplog.text


def test_a_proof_is_accepted_at_an_address_that_is_configured(tmp_path: Path) -> None:
    """So clients can reach an archive through a port mapping, which the relay is here."""
    with serve("aerotape") as elsewhere:
        address = f"127.0.0.1:{free_port()}"
        channel = f"aeron:udp?endpoint={address}"
        with (
            guarded(tmp_path, aerotape_control_addresses=address) as archive,
            relaying(elsewhere.aeron_dir, archive.control_channel, channel) as relay,
        ):
            connect_to(relay, archive)
            assert relay.outcome.code is ControlResponseCode.OK


def test_a_proof_of_an_archive_is_worthless_to_another_one(tmp_path: Path) -> None:
    """An attacker that is named as a mirror does not become what the leader is elsewhere."""
    secret = tmp_path / "secret"
    secret.write_text("admin:secret\n")
    with (
        guarded(tmp_path, aerotape_mirror_secret_file=str(secret)) as leader,
        serve("aerotape") as elsewhere,
        guarded(tmp_path) as target,
        relaying(elsewhere.aeron_dir, target.control_channel) as relay,
        leader.connect(credentials=ADMIN, timeout_ns=3_000_000_000) as client,
    ):
        with suppress(AerotapeError):
            client.create_ledger(write_quorum=2, mirrors=[relay.channel])
        await_true(lambda: relay.outcome is not None)
        assert relay.outcome.code is ControlResponseCode.ERROR


def test_a_proof_is_valid_once(archive: ServedArchive) -> None:
    """Another session has another challenge."""
    aeron = _native.AeronClient(str(archive.aeron_dir))
    answer, outcomes = b"", []
    for stream_id in (31, 32):
        raw = RawClient(aeron, "aeron:ipc?term-length=64k", response_stream_id=stream_id)
        correlation_id = aeron.next_correlation_id()
        raw.send(
            codecs.AuthConnectRequest(
                correlation_id=correlation_id,
                response_stream_id=stream_id,
                version=1 << 16,
                response_channel=raw.response_channel,
                encoded_credentials=b"admin",
            )
        )
        challenge = raw.await_message(codecs.Challenge)
        answer = answer or ADMIN.prove(challenge.encoded_challenge, "ipc")
        response_id = aeron.next_correlation_id()
        raw.send(
            codecs.ChallengeResponse(
                control_session_id=challenge.control_session_id,
                correlation_id=response_id,
                encoded_credentials=answer,
            )
        )
        outcomes.append(raw.response(response_id).code)
    aeron.close()
    assert outcomes == [ControlResponseCode.OK, ControlResponseCode.ERROR]


def test_a_proof_without_an_address_is_refused_with_the_reason(archive: ServedArchive) -> None:
    """As of a client of an older version."""

    def old_form(challenge: bytes) -> bytes:
        return ADMIN.prove(challenge, "ipc").partition(b",")[2]

    with pytest.raises(AerotapeError, match=r"names no address \(c=ADDRESS\): the client is older"):
        archive.connect(credentials=b"admin", on_challenge=old_form)


@pytest.mark.parametrize("parameters", ["control-mode=manual", "endpoint={}|control=localhost:0"])
def test_no_proof_is_sent_to_whoever_receives_it(archive: ServedArchive, parameters: str) -> None:
    """A request channel whose receivers are not its endpoint is refused."""
    endpoint = archive.control_channel.rpartition("=")[2]
    with pytest.raises(AerotapeError, match="does not say which archive receives the requests"):
        archive.connect(
            control_request_channel=f"aeron:udp?{parameters.format(endpoint)}",
            control_response_channel="aeron:udp?endpoint=localhost:0",
            credentials=ADMIN,
        )


def test_the_secret_is_not_sent(archive: ServedArchive) -> None:
    """Neither in the credentials nor in the proof."""
    sent = [ADMIN.encoded_credentials()]

    def proving(challenge: bytes) -> bytes:
        sent.append(ADMIN.prove(challenge, "ipc"))
        return sent[-1]

    archive.connect(
        control_request_channel="aeron:ipc", credentials=b"admin", on_challenge=proving
    ).close()
    assert len(sent) == 2
    assert not any(b"secret" in each for each in sent)


def test_a_replication_sends_no_proof(archive: ServedArchive) -> None:
    """The source challenges the name, and the replication fails with the reason."""
    with serve("aerotape") as replica, replica.connect() as client:
        client.replicate(0, archive.control_channel, encoded_credentials=b"admin")
        text = "Replication does not support challenge/response authentication"
        await_true(lambda: any(text in str(each) for each in client.poll_for_errors()))


def test_a_wildcard_channel_accepts_this_machine(tmp_path: Path) -> None:
    """By a host name, and over IPC."""
    port = free_port()
    channel = f"aeron:udp?endpoint=0.0.0.0:{port}"
    with guarded(tmp_path, **{"aeron_archive_control_channel": channel}) as archive:
        for request in (f"aeron:udp?endpoint=localhost:{port}", "aeron:ipc"):
            archive.connect(control_request_channel=request, credentials=ADMIN).close()
