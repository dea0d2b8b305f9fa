"""Passwords of ledgers: who checks them, what is stored, and what a client receives."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from support.daemon.archives import ServedArchive

import aerotape
from aerotape.archive.features.ledger.metadata import (
    PASSWORD_LOST,
    LedgerMetadata,
    check_password,
    hash_of_token,
)
from aerotape.client.ledger import requests
from aerotape.client.session.exchange import list_items
from aerotape.client.session.request import Call, Listing, nothing
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.errors import LedgerPasswordError
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import run


def stored(archive: ServedArchive, ledger: QualifiedId) -> bytes:
    """Return what the archive stores of a password."""
    path = archive.archive_dir / "ledgers.sqlite"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        [[value]] = database.execute(
            'SELECT password_hash FROM ledgers WHERE "key" = ?', [ledger.key]
        ).fetchall()
    assert isinstance(value, bytes)
    return value


def test_what_is_stored_is_not_sent_and_opens_nothing(
    archive: ServedArchive, client: aerotape.ArchiveClient
) -> None:
    """A descriptor has a flag instead; the stored hash is refused as a token by every request."""
    first, second = (client.declare_ledger(password=b"secret") for _ in range(2))
    found = stored(archive, first)
    assert found != stored(archive, second), "of one password, ledgers store different hashes"
    listing = Listing(
        codecs.LedgerInfoRequest(**requests.id_fields(first), password_token=b""), "get", 1
    )
    [descriptor] = run(list_items(client._session, listing))
    assert isinstance(descriptor, codecs.LedgerDescriptor)
    assert found not in descriptor.encode()
    assert descriptor.has_password is codecs.BooleanType.TRUE
    fields: dict[str, Any] = {**requests.id_fields(first), "password_token": found}
    performed: list[Callable[[], object]] = [
        lambda: run(
            list_items(client._session, Listing(codecs.LedgerInfoRequest(**fields), "open", 1))
        ),
        lambda: run(
            list_items(client._session, Listing(codecs.AttachWriterRequest(**fields), "attach", 1))
        ),
        lambda: client._run(Call(codecs.RecoverLedgerRequest(**fields), "recover", nothing)),
    ]
    for perform in performed:
        with pytest.raises(LedgerPasswordError, match=f"wrong password for ledger {first}"):
            perform()
    assert [client.ledger_info(each).has_password for each in (first, second)] == [True, True]
    assert not client.ledger_info(client.declare_ledger()).has_password


def test_a_password_of_a_ledger_without_one_is_ignored(client: aerotape.ArchiveClient) -> None:
    """As in BookKeeper, each opens it."""
    ledger = client.declare_ledger()
    client.open_ledger_writer(ledger, b"any").detach()
    client.open_ledger_read_only(ledger, b"other").close()


def test_a_replay_needs_no_password(client: aerotape.ArchiveClient) -> None:
    """So it protects from no client that may replay recordings."""
    with client.create_ledger(password=b"secret") as writer:
        writer.add(b"readable payload")
    recording_id = client.ledger_info(writer.qualified_id).recording_id
    with client.replay(recording_id) as replay:
        assert [b"readable payload" in message.payload for message in replay] == [True]


@pytest.mark.parametrize("token", [b"", b"\0", b"token", hash_of_token(QualifiedId(0, 1), b"t")])
def test_a_lost_password_is_not_matched(token: bytes) -> None:
    """The error says where it was lost."""
    metadata = LedgerMetadata(QualifiedId(0, 1), password_hash=PASSWORD_LOST)
    with pytest.raises(LedgerPasswordError, match="was lost with the ledgers"):
        check_password(metadata, token)
