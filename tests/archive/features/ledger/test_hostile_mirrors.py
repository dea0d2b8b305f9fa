"""Requests and metadata whose mirrors are not what the protocol has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.features.ledger.protocol.member_record import NOT_REPLICATED, MemberRecord
from aerotape.archive.features.ledger.requests import handlers_of
from aerotape.client.ledger.requests import info_of
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.errors import AerotapeError, CodecError, ConfigurationError

NESTED = "[" * 100_000
NOT_JSON = ["[", "nothing", "\x1b[2J", "[1,]", NESTED, '["a"', "1" * 5_000]
OTHERS = ["{}", '"a"', "5", "true", "[1]", "[[]]", "[null]", "NaN"]
NOT_REPLICAS = [
    *NOT_JSON,
    '"a"',
    "5",
    "[1]",
    '{"own": 5}',
    '{"boot": []}',
    '{"unknown": 1}',
    '{"groups": 5}',
    '{"groups": [[1]]}',
    '{"groups": ["a"]}',
    '{"promised": [Infinity, "a"]}',
    '{"version": [[1, "a"], Infinity]}',
    '{"version": 1}',
    '{"history": [[1, 2, 3]]}',
]


@pytest.mark.parametrize("text", [*NOT_JSON, *OTHERS])
def test_a_ledger_with_mirrors_that_are_no_channels(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is refused, and logged as one line without a traceback."""
    create = handlers_of(Mock(), frozenset())[codecs.CreateLedgerRequest]
    sent: list[tuple[Any, ...]] = []
    session: Any = SimpleNamespace(send_error=lambda *response: sent.append(response))
    request: Any = SimpleNamespace(mirrors=text)
    with pytest.raises(ConfigurationError) as refused:
        create(Mock(), session, request)
    assert len(str(refused.value)) < 400
    send_failure(session, 7, "CreateLedgerRequest", refused.value, ErrorLog())
    assert [each[0] for each in sent] == [7]
    assert [record.exc_info for record in caplog.records] == [None]
    assert "\n" not in caplog.text.strip()


@pytest.mark.parametrize("text", NOT_REPLICAS)
def test_a_member_record_that_is_not_one(text: str) -> None:
    """It is one kind of error, which those that read it expect."""
    with pytest.raises(CodecError, match="not the JSON of a member_record"):
        MemberRecord.decode(text)


def test_a_member_record() -> None:
    """What is encoded is decoded."""
    epoch = (1, "a")
    record = MemberRecord(own="a", groups=(("", "b"),), version=(epoch, 2), history=((epoch, 0),))
    assert MemberRecord.decode(record.encode()) == record
    assert MemberRecord.decode(None) == MemberRecord.decode("{}") == NOT_REPLICATED


@pytest.mark.parametrize("text", [*NOT_JSON, "5", '{"a": 1}'])
def test_an_archive_that_reports_no_mirrors(text: str) -> None:
    """A client raises an error of its own for what an archive has sent."""
    descriptor: Any = SimpleNamespace(
        scope_id=0,
        ledger_id=1,
        ledger_type=codecs.LedgerType.PD_JOURNAL,
        digest_type=next(iter(codecs.DigestType)),
        state=codecs.LedgerState.OPEN,
        created_ms=1,
        recording_id=1,
        recorded_position=0,
        confirmed_position=0,
        last_pushed=0,
        last_confirmed=0,
        length=0,
        recording_counter_id=0,
        confirmed_counter_id=0,
        write_quorum=1,
        ack_quorum=1,
        has_password=0,
        mirrors="[]",
        members=text,
    )
    with pytest.raises(AerotapeError, match="mirrors are not valid"):
        info_of(descriptor)
