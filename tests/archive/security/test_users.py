"""A users file for Java's and our clients: plain secrets, proofs, roles and changes of the file."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.authenticator import Guard
from support.daemon.control_rig import RawClient, await_true
from support.daemon.recording import recorded
from support.jvm.java import JavaArchiveException, JavaClient

import aerotape
from aerotape import UserSecret, _native
from aerotape.archive.security.users_file import Role, make_user, put_user, remove_user
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import AuthenticationError, UnauthorisedError
from aerotape.protocol import ErrorCode

_streams = itertools.count(1200)
SECRETS = {"reader": b"r:ead", "recorder": b"rec", "admin": "ädmin".encode()}


def put(path: Path, name: str, role: Role, secret: bytes) -> None:
    """Put a user into the file."""
    put_user(path, make_user(name, role, secret, 4096))


@pytest.fixture(scope="module")
def users_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a user of each role of clients."""
    path = tmp_path_factory.mktemp("users") / "users"
    roles = (Role.READ, Role.RECORD, Role.ADMIN)
    for (name, secret), role in zip(SECRETS.items(), roles, strict=True):
        put(path, name, role, secret)
    return path


@pytest.fixture(scope="module")
def archive(users_file: Path, run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Our archive with the file."""
    with run_archive("aerotape", {"aerotape.users.file": str(users_file)}) as running:
        yield running


def refusal(archive: Any, credentials: Any, **options: Any) -> int:
    """Return the error code with which our client is refused."""
    with pytest.raises(aerotape.ArchiveError) as caught:
        archive.connect(credentials=credentials, **options)
    return caught.value.error_code


def code_of(call: Callable[..., Any], *args: Any) -> int:
    """Return the error code of the response to a request."""
    with pytest.raises(aerotape.ArchiveError) as caught:
        call(*args)
    return caught.value.error_code


@pytest.mark.jvm
def test_java_client_sends_user_and_secret(archive: Any) -> None:
    """Credentials are `user:secret`; the user's role applies to the requests."""
    with JavaClient(archive.aeron_dir) as java:
        java.connect(archive.control_channel, credentials="reader:r:ead")
        assert java.call("listRecordings", 0, 10) == []
        with pytest.raises(JavaArchiveException) as caught:
            java.call("startRecording", "aeron:ipc", 77, "LOCAL")
        assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION
        for wrong in ("reader:read", "reader", "nobody:x", "", ":", "admin:ädmin ", "x" * 3000):
            with pytest.raises(JavaArchiveException) as caught:
                java.connect(archive.control_channel, credentials=wrong, challengeAnswer="p=AAAA")
            assert caught.value.error_code == ErrorCode.AUTHENTICATION_REJECTED, wrong
        java.connect(archive.control_channel, credentials="admin:ädmin")
        java.call("startRecording", "aeron:ipc", 78, "LOCAL")
        java.call("stopRecording", "aeron:ipc", 78)


@pytest.mark.parametrize("plain", [False, True])
def test_our_client_connects_with_its_secret(archive: Any, plain: bool) -> None:
    """The secret is sent or proved; a wrong secret and an unknown user get the same error."""
    for name, secret in SECRETS.items():
        with archive.connect(credentials=UserSecret(name, secret, plain=plain)) as client:
            assert _may(client, client.list_recordings, 0), name
    rejected = ErrorCode.AUTHENTICATION_REJECTED
    assert refusal(archive, UserSecret("reader", b"wrong", plain=plain)) == rejected
    assert refusal(archive, UserSecret("nobody", b"r:ead", plain=plain)) == rejected
    assert "r:ead" not in archive.log()


def test_roles_apply_to_requests(archive: Any) -> None:
    """`read` may list and replay, `record` may record, `admin` may do everything."""
    unauthorised = ErrorCode.UNAUTHORISED_ACTION
    with archive.connect(credentials=UserSecret("recorder", SECRETS["recorder"])) as recorder:
        made = recorded(recorder, 3)
        with archive.connect(credentials=UserSecret("reader", SECRETS["reader"])) as reader:
            with reader.replay(made.recording_id) as replay:
                assert [message.payload for message in replay] == [each[0] for each in made.sent]
            assert code_of(reader.start_recording, "aeron:ipc", made.stream_id) == unauthorised
            assert code_of(reader.stop_recording, "aeron:ipc", made.stream_id) == unauthorised
            with pytest.raises(
                UnauthorisedError,
                match="unauthorised action: start recording: user 'reader' has role read, and it"
                " needs role record",
            ):
                reader.start_recording("aeron:ipc", made.stream_id)
    aeron = _native.AeronClient(str(archive.aeron_dir))
    for name, is_allowed in (("recorder", False), ("admin", True)):
        raw = RawClient(aeron, "aeron:ipc?term-length=64k", response_stream_id=next(_streams))
        raw.connect(encoded_credentials=name.encode() + b":" + SECRETS[name])
        answer = raw.call(codecs.PurgeRecordingRequest, recording_id=99_999)
        assert (answer.relevant_id != unauthorised) is is_allowed, answer
    aeron.close()


def test_a_client_without_credentials_is_told_of_users(archive: Any) -> None:
    """The refusal says that the archive has users; one with a wrong secret does not."""
    with pytest.raises(AuthenticationError, match="this archive has users: connect as one"):
        archive.connect()
    with pytest.raises(AuthenticationError, match=r"authentication rejected \(error"):
        archive.connect(credentials=UserSecret("reader", b"wrong"))


@pytest.mark.jvm
def test_java_client_proves_that_it_knows_the_secret(archive: Any) -> None:
    """The proof works as documented, with Java's own cryptography."""
    with JavaClient(archive.aeron_dir) as java:
        address = archive.control_channel.rpartition("=")[2].replace("localhost", "127.0.0.1")
        proving = {"credentials": "reader", "address": address}
        java.connect(archive.control_channel, **proving, secret="r:ead")
        assert java.call("listRecordings", 0, 1) is not None
        with pytest.raises(JavaArchiveException) as caught:
            java.connect(archive.control_channel, **proving, secret="read")
        assert caught.value.error_code == ErrorCode.AUTHENTICATION_REJECTED


@pytest.mark.parametrize("kind", KINDS)
def test_another_archive_replicates_with_credentials(
    archive: Any, run_archive: Callable[..., Any], kind: str
) -> None:
    """It sends user and secret; with a wrong secret the replication fails."""
    with archive.connect(credentials=UserSecret("recorder", SECRETS["recorder"])) as recorder:
        made = recorded(recorder, 1)
    with run_archive(kind) as other, other.connect(credentials=b"") as client:
        source = (made.recording_id, archive.control_channel)
        client.replicate(*source, encoded_credentials=b"reader:wrong")
        await_true(lambda: any("rejected" in str(each) for each in client.poll_for_errors()))
        assert list(client.list_recordings()) == []
        client.replicate(*source, encoded_credentials=b"reader:r:ead")
        await_true(lambda: any(each.stop_position == made.end for each in client.list_recordings()))


def test_hashing_blocks_no_other_client(archive: Any, users_file: Path) -> None:
    """During a slow hash, other clients send requests and prove their secrets."""
    put_user(users_file, make_user("slow", Role.READ, b"slow", 2_000_000))
    aeron = _native.AeronClient(str(archive.aeron_dir))
    served, slow, proving = (
        RawClient(aeron, "aeron:ipc?term-length=64k", response_stream_id=next(_streams))
        for _ in range(3)
    )
    served.connect(encoded_credentials=b"reader:r:ead")
    correlation_ids = [aeron.next_correlation_id() for _ in range(2)]
    for raw, credentials, correlation_id in zip(
        (slow, proving), (b"slow:slow", b"slow"), correlation_ids, strict=True
    ):
        raw.send(
            codecs.AuthConnectRequest(
                correlation_id=correlation_id,
                response_stream_id=raw.response_stream_id,
                version=1 << 16,
                response_channel=raw.response_channel,
                encoded_credentials=credentials,
            )
        )
    proving.await_message(codecs.Challenge)
    for _ in range(10):
        assert served.call(codecs.ArchiveIdRequest).code is codecs.ControlResponseCode.OK
    slow.poll()
    assert slow.received == []
    assert slow.response(correlation_ids[0]).code is codecs.ControlResponseCode.OK
    remove_user(users_file, "slow")
    aeron.close()


def test_changes_apply_while_the_archive_runs(archive: Any, users_file: Path) -> None:
    """Added users can connect at once, removed ones lose access, invalid files are ignored."""
    with archive.connect(credentials=UserSecret("recorder", SECRETS["recorder"])) as recorder:
        made = recorded(recorder, 1)
    put(users_file, "guest", Role.READ, b"first")
    with archive.connect(credentials=UserSecret("guest", "first")) as client:
        assert _may(client, client.list_recordings, 0)
        assert refusal(archive, UserSecret("guest", "second")) == ErrorCode.AUTHENTICATION_REJECTED
        put(users_file, "guest", Role.RECORD, b"second")
        for plain in (False, True):
            assert refusal(archive, UserSecret("guest", "first", plain=plain))
            archive.connect(credentials=UserSecret("guest", "second", plain=plain)).close()
        await_true(lambda: _may(client, client.try_stop_recording_subscription, 999))
        remove_user(users_file, "guest")
        # An earlier permission must not be remembered.
        await_true(lambda: not _may(client, client.list_recording, made.recording_id))
        assert not _may(client, client.get_archive_id)
    assert refusal(archive, UserSecret("guest", "second")) == ErrorCode.AUTHENTICATION_REJECTED
    good = users_file.read_bytes()

    def open_to_all() -> None:
        users_file.write_bytes(good)
        users_file.chmod(0o644)

    for spoil, complaint in (
        (partial(users_file.write_bytes, b"nonsense\n"), "line 1: not NAME:ROLE"),
        (partial(users_file.write_bytes, b"# nobody\n"), "has no users"),
        (open_to_all, "chmod 600"),
        (users_file.unlink, "No such file"),
    ):
        spoil()
        archive.connect(credentials=UserSecret("reader", SECRETS["reader"])).close()
        await_true(lambda: complaint in archive.log())  # noqa: B023
        [report] = [line for line in archive.log().splitlines() if complaint in line]
        assert "the last valid users stay in force" in report
    users_file.write_bytes(good)
    users_file.chmod(0o600)
    archive.connect(credentials=UserSecret("reader", SECRETS["reader"])).close()


def test_an_idle_user_loses_access_when_removed(archive: Any, users_file: Path) -> None:
    """Its first request after the removal is refused."""
    put(users_file, "leaver", Role.ADMIN, b"secret")
    with (
        archive.connect(credentials=UserSecret("leaver", "secret")) as leaver,
        archive.connect(credentials=UserSecret("reader", SECRETS["reader"])) as reader,
    ):
        leaver.get_archive_id()
        remove_user(users_file, "leaver")
        time.sleep(1.2)
        assert code_of(leaver.purge_recording, 0) == ErrorCode.UNAUTHORISED_ACTION
        reader.get_archive_id()


def _may(_client: aerotape.ArchiveClient, call: Callable[..., Any], *args: Any) -> bool:
    try:
        call(*args)
    except aerotape.ArchiveError as error:
        return error.error_code != ErrorCode.UNAUTHORISED_ACTION
    return True


def test_an_invalid_users_file_prevents_the_start(tmp_path: Path) -> None:
    """The error is one line, before anything is created."""
    with pytest.raises(aerotape.ConfigurationError, match="No such file"):
        aerotape.Archive.launch(dir=tmp_path / "archive", users_file=tmp_path / "missing")
    empty = tmp_path / "empty"
    empty.touch(0o600)
    with pytest.raises(aerotape.ConfigurationError, match=r"empty has no users: add one with"):
        aerotape.Archive.launch(dir=tmp_path / "archive", users_file=empty)
    # An empty variable must not disable authentication.
    for given in ({"users_file": ""}, {"properties": {"aerotape.users.file": " "}}):
        with pytest.raises(aerotape.ConfigurationError, match=r"users\.file is empty: give a file"):
            aerotape.Archive.launch(dir=tmp_path / "archive", **given)
    with pytest.raises(aerotape.ConfigurationError, match="both set the authenticator"):
        aerotape.Archive.launch(
            dir=tmp_path / "archive",
            users_file=tmp_path / "missing",
            properties={
                "aeron.archive.authenticator.supplier": "support.daemon.authenticator:Guard"
            },
        )
    with pytest.raises(aerotape.ConfigurationError, match="both decide on clients"):
        aerotape.Archive.launch(
            dir=tmp_path / "archive", users_file=tmp_path / "missing", authenticator=Guard()
        )
