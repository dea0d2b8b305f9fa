"""Qualified ids: names, both halves as unsigned and signed numbers, ordering, generation."""

from __future__ import annotations

import random

import pytest

from aerotape.errors import QualifiedIdError
from aerotape.qualified_id import QualifiedId

UUID_TEXT = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
UUID_ID = QualifiedId(0xF47AC10B58CC4372, 0xA5670E02B2C3D479)


@pytest.mark.parametrize(
    ("scope_id", "ledger_id", "name"),
    [
        (0, 7, "00000000000000000000000000000007"),
        (0, 0, "0" * 32),
        (0, 2**63 - 1, "00000000000000007fffffffffffffff"),
        (UUID_ID.scope_id, UUID_ID.ledger_id, UUID_TEXT.replace("-", "")),
        (2**64 - 1, 2**64 - 1, "f" * 32),
    ],
)
def test_names_have_32_lower_case_digits(scope_id: int, ledger_id: int, name: str) -> None:
    """A name converts to scope and ledger id and back."""
    qualified_id = QualifiedId(scope_id, ledger_id)
    assert str(qualified_id) == name
    assert QualifiedId.parse(name) == qualified_id
    assert QualifiedId.parse(name.upper()) == qualified_id
    assert (qualified_id.scope_id, qualified_id.ledger_id) == (scope_id, ledger_id)


def test_a_uuid_is_a_name() -> None:
    """The digits have dashes and are in either case."""
    assert QualifiedId.parse(UUID_TEXT) == QualifiedId.parse(UUID_TEXT.upper()) == UUID_ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "0" * 31,
        "0" * 33,
        "0x" + "0" * 30,
        " " + "1" * 31,
        "1" * 32 + "\n",
        "g" * 32,
        "\u0661" * 32,
        "{" + UUID_TEXT + "}",
        UUID_TEXT[:-1],
        UUID_TEXT.replace("-", "", 1),
        "f47ac10b58cc-4372-a567-0e02-b2c3d479",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """The error names the input."""
    with pytest.raises(QualifiedIdError) as error:
        QualifiedId.parse(text)
    assert repr(text) in str(error.value)


def test_int64_fields_hold_the_twos_complement() -> None:
    """Both halves convert to signed numbers and back."""
    assert UUID_ID.signed == (UUID_ID.scope_id - 2**64, -6528233730098342791)
    for qualified_id in (UUID_ID, QualifiedId(0, 7), QualifiedId(1, 2**63), QualifiedId(2**63, 0)):
        assert QualifiedId.from_signed(*qualified_id.signed) == qualified_id


def test_scope_0_has_ids_of_63_bits() -> None:
    """Other scopes allow all 64."""
    assert QualifiedId(1, 2**63).ledger_id == 2**63
    with pytest.raises(QualifiedIdError, match="9223372036854775808 is too large for scope 0"):
        QualifiedId(0, 2**63)
    with pytest.raises(QualifiedIdError, match="-1 is negative"):
        QualifiedId.from_signed(0, -1)
    with pytest.raises(QualifiedIdError, match="too large for scope 0"):
        QualifiedId.parse("0" * 16 + "8" + "0" * 15)


@pytest.mark.parametrize(("scope_id", "ledger_id"), [(-1, 0), (2**64, 0), (1, -1), (1, 2**64)])
def test_numbers_outside_64_bits_are_refused(scope_id: int, ledger_id: int) -> None:
    with pytest.raises(QualifiedIdError, match="is not an unsigned 64-bit number"):
        QualifiedId(scope_id, ledger_id)


class Seven:
    """An integer of another library."""

    def __index__(self) -> int:
        return 7


def test_ids_are_integers() -> None:
    """Integers of other libraries are converted; other types are refused at once."""
    assert str(QualifiedId(Seven(), 1)) == f"{7:016x}{1:016x}"  # type: ignore[arg-type]
    for value in (1.5, "1", None):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            QualifiedId(1, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("scope_id", "ledger_id"), [(2**63, 0), (1, 2**63), (-(2**63) - 1, 0)])
def test_signed_numbers_outside_64_bits_are_refused(scope_id: int, ledger_id: int) -> None:
    with pytest.raises(QualifiedIdError, match="is not a signed 64-bit number"):
        QualifiedId.from_signed(scope_id, ledger_id)


def test_ids_sort_unsigned_by_scope_then_ledger() -> None:
    """Keys and names sort as the ids do."""
    halves = (0, 1, 7, 2**31, 2**63 - 1, 2**63, 2**64 - 1)
    expected = [
        QualifiedId(scope_id, ledger_id)
        for scope_id in halves
        for ledger_id in halves
        if scope_id or ledger_id < 2**63
    ]
    shuffled = random.Random(1).sample(expected, len(expected))
    assert sorted(shuffled) == expected
    assert sorted(shuffled, key=lambda each: each.key) == expected
    assert sorted(shuffled, key=str) == expected
    assert all(QualifiedId.from_key(each.key) == each for each in expected)


def test_a_key_has_16_bytes() -> None:
    with pytest.raises(QualifiedIdError, match="15 bytes instead of 16"):
        QualifiedId.from_key(bytes(15))


def test_a_path_has_four_parts() -> None:
    """Each part has 8 digits, padded with zeros."""
    assert str(UUID_ID.path) == "f47ac10b/58cc4372/a5670e02/b2c3d479"
    assert str(QualifiedId(1, 2).path) == "00000000/00000001/00000000/00000002"
