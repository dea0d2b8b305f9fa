"""Mirrors of archives that know users: their role, and the channels that may be mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.control_rig import await_true
from support.processes import free_port

import aerotape
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.errors import AerotapeError, ArchiveError, ConfigurationError
from aerotape.protocol import ErrorCode


class Pair:
    """A leader and a mirror with the same users; the leader may name the mirror's channel."""

    def __init__(
        self, stack: ExitStack, folder: Path, *, secret: str = "secret", **properties: str
    ) -> None:
        self._stack = stack
        users, secret_file = folder / "users", folder / "secret"
        for role in Role:
            put_user(users, make_user(role.value, role, b"secret", 5_000))
        secret_file.write_text(f"mirror:{secret}\n")
        channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        given = {
            "aerotape.users.file": str(users),
            "aerotape.mirror.secret.file": str(secret_file),
            "aeron.archive.connect.timeout": "2s",
            "aerotape.mirror.channels": f"aeron:udp?endpoint=other:8010 {channel}",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.leader = stack.enter_context(serve("aerotape", given))
        self.mirror = stack.enter_context(
            serve("aerotape", {**given, "aeron.archive.control.channel": channel})
        )
        self.channel = channel

    def client(self, role: Role, archive: ServedArchive | None = None) -> aerotape.ArchiveClient:
        """Connect with a role, by default to the leader."""
        user = aerotape.UserSecret(role.value, b"secret")
        found = archive or self.leader
        channel = self.channel if found is self.mirror else found.control_channel
        return self._stack.enter_context(
            found.connect(control_request_channel=channel, credentials=user)
        )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    with ExitStack() as stack:
        yield lambda **options: Pair(stack, tmp_path, **options)


def create(client: aerotape.ArchiveClient, channel: str, kind: Any = "PD_JOURNAL") -> Any:
    """Create a ledger with a mirror."""
    return client.create_ledger(kind, write_quorum=2, ack_quorum=2, mirrors=[channel])


@pytest.mark.parametrize("content", [None, "", "name\n", "name:\n", ":secret\n", b"\xff:\xff"])
def test_an_unusable_secret_is_an_error_of_the_start(
    tmp_path: Path, content: str | bytes | None
) -> None:
    """Not of the first mirror; the error names the file, and the directory is free afterwards."""
    secret_file = tmp_path / "secret"
    if content is not None:
        secret_file.write_bytes(content.encode() if isinstance(content, str) else content)
    options: dict[str, Any] = {
        "dir": tmp_path / "archive",
        "aeron_dir": tmp_path / "aeron",
        "properties": {
            "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
            "aerotape.mirror.secret.file": str(secret_file),
        },
    }
    with pytest.raises(ConfigurationError, match=f"{secret_file}: "):
        aerotape.Archive.launch(**options)
    secret_file.write_text("name:secret\n")
    aerotape.Archive.launch(**options).close()


@pytest.mark.parametrize("replication", ["endpoint=localhost:0", "control-mode=response"])
@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_archives_mirror_in_their_role(
    pair: Callable[..., Pair], kind: str, replication: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Role `mirror` suffices to follow, sync and close, and for a mirror that returns."""
    channel = f"aeron:udp?{replication}"
    if replication.startswith("control"):
        channel += f"|control=localhost:{free_port()}"
    two = pair(aeron_archive_replication_channel=channel)
    client = two.client(Role.RECORD)
    writer = create(client, two.channel, kind)
    assert writer.add_many([b"one", b"two"]) == range(2)
    assert writer.sync() == 1
    writer.detach()
    writer = client.open_ledger_writer(writer.qualified_id)
    assert writer.add(b"three") == 2
    writer.close()
    reader = two.client(Role.READ, two.mirror)
    await_true(lambda: reader.ledger_info(writer.qualified_id).is_closed)
    read = reader.open_ledger_read_only(writer.qualified_id).read()
    assert [entry.payload for entry in read] == [b"one", b"two", b"three"]
    assert "unauthorised" not in caplog.text


def test_another_secret_is_refused(pair: Callable[..., Pair]) -> None:
    """The writer is refused, and the reason names the mirror."""
    two = pair(secret="other")
    with pytest.raises(AerotapeError, match=r"mirror .*: authentication rejected"):
        create(two.client(Role.RECORD), two.channel)


def test_a_mirror_may_do_nothing_else(pair: Callable[..., Pair]) -> None:
    """Its user cannot list, record, delete, or write ledgers."""
    two = pair()
    client = two.client(Role.MIRROR)
    ledger = aerotape.QualifiedId.generate()
    for call in (
        lambda: list(client.list_recordings()),
        lambda: client.start_recording("aeron:ipc", 77),
        lambda: client.purge_recording(0),
        lambda: client.replicate(0, two.channel),
        lambda: client.declare_ledger("PD_JOURNAL", ledger),
        lambda: client.open_ledger(ledger),
        lambda: client.delete_ledger(ledger),
        lambda: client.ledger_info(ledger),
        lambda: client.replace_mirror(ledger, two.channel, "aeron:udp?endpoint=localhost:1"),
    ):
        assert _code(call) == ErrorCode.UNAUTHORISED_ACTION


def test_only_configured_channels_may_be_mirrors(pair: Callable[..., Pair]) -> None:
    """A user that records cannot have the archive connect to another one; an administrator can."""
    two = pair()
    ledger = aerotape.QualifiedId.generate()
    options: Any = {"write_quorum": 2, "mirrors": ["aeron:udp?endpoint=localhost:1"]}
    recorder, admin = two.client(Role.RECORD), two.client(Role.ADMIN)
    with pytest.raises(ArchiveError, match=r"unauthorised action: .* aerotape\.mirror\.channels"):
        recorder.declare_ledger("PD_JOURNAL", ledger, **options)
    with pytest.raises(aerotape.errors.UnknownLedgerError):
        recorder.ledger_info(ledger)
    assert _code(lambda: recorder.declare_ledger("PD_JOURNAL", ledger, **options)) == (
        ErrorCode.UNAUTHORISED_ACTION
    )
    [other] = options["mirrors"]
    assert _code(lambda: recorder.replace_mirror(ledger, other, two.channel)) == (
        ErrorCode.UNAUTHORISED_ACTION
    )
    with pytest.raises(ArchiveError, match="all of its archives have to respond"):
        admin.declare_ledger("PD_JOURNAL", ledger, **options)


def _code(call: Callable[[], object]) -> int:
    with pytest.raises(ArchiveError) as caught:
        call()
    return caught.value.error_code
