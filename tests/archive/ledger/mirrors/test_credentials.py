"""Mirrors of archives that know users."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive, serve

import aerotape
from aerotape.archive.security.users_file import Role, make_user, put_user
from aerotape.errors import AerotapeError


@pytest.mark.parametrize("is_known", [True, False])
def test_archives_mirror_as_a_user(tmp_path: Path, is_known: bool) -> None:
    """Leader and mirror connect to each other with the secret of their configuration; with
    another one the writer is refused, and the reason names the mirror.
    """
    users, secret_file = tmp_path / "users", tmp_path / "secret"
    put_user(users, make_user("mirror", Role.ADMIN, b"secret", 5_000))
    put_user(users, make_user("writer", Role.RECORD, b"own", 5_000))
    secret_file.write_text("mirror:secret\n" if is_known else "mirror:other\n")
    properties = {
        "aerotape.users.file": str(users),
        "aerotape.mirror.secret.file": str(secret_file),
        "aeron.archive.connect.timeout": "1s",
    }
    with ExitStack() as stack:
        leader, mirror = (stack.enter_context(serve("aerotape", properties)) for _ in range(2))

        def connect(archive: ServedArchive) -> aerotape.ArchiveClient:
            user = aerotape.UserSecret("writer", b"own")
            return stack.enter_context(archive.connect(credentials=user))

        client = connect(leader)
        ledger = aerotape.QualifiedId.generate()
        options = {"write_quorum": 2, "ack_quorum": 2, "mirrors": [mirror.control_channel]}
        if not is_known:
            with pytest.raises(AerotapeError, match=r"mirror .*: authentication rejected"):
                client.create_ledger("PD_JOURNAL", ledger, **options)  # type: ignore[arg-type]
            return
        with client.create_ledger("PD_JOURNAL", ledger, **options) as writer:  # type: ignore[arg-type]
            assert writer.add_many([b"one", b"two"]) == 1
        reader = connect(mirror).open_ledger_read_only(ledger)
        assert [entry.payload for entry in reader.read()] == [b"one", b"two"]
