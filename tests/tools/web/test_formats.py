"""How pages show numbers and text."""

from __future__ import annotations

import re

import pytest

from aerotape.tools._web.pages.formats import MAX_TEXT, grouped, message_text, safe


@pytest.mark.parametrize(
    ("number", "groups"),
    [
        (0, "0"),
        (12, "12"),
        (999, "999"),
        (1_000, "1|000"),
        (-12_345, "-12|345"),
        (10**9, "1|000|000|000"),
    ],
)
def test_groups_of_digits(number: int, groups: str) -> None:
    """Their text is the number, without separators."""
    shown = str(grouped(number))
    assert re.sub('<span class="group">', "|", shown).replace("</span>", "") == groups
    assert re.sub("<[^>]*>", "", shown) == str(number)


def test_what_is_no_number_has_no_groups() -> None:
    """A ledger id, or "all", is text."""
    assert grouped("1234567") == "1234567"
    assert grouped("<b>") == "<b>"


def test_control_characters_are_escaped() -> None:
    assert safe("a\0b\x1b[2J\n\t\u202e") == "a\\x00b\\x1b[2J\n\t\\u202e"
    assert safe(5) == 5


def test_fields_keep_their_order() -> None:
    fields = {"mantissa": 1, "exponent": -4, "a": "<\0"}
    assert message_text({"fields": fields}) == '{"mantissa": 1, "exponent": -4, "a": "<\\u0000"}'


def test_a_text_is_shortened() -> None:
    """Of fields, and of a payload by what reads it."""
    shown = message_text({"fields": {"a": "x" * MAX_TEXT}})
    assert (len(shown), shown[:7], shown[-1]) == (MAX_TEXT + 1, '{"a": "', "…")
    row = {"payload": "a\0b", "is_whole": False}
    assert message_text(row) == message_text({**row, "fields": None}) == "a\\x00b…"
    assert message_text({**row, "is_whole": True}) == "a\\x00b"
