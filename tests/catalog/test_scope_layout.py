"""Names and order of the directories of imported recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from aerotape.catalog.scope_layout import (
    imported_directory,
    imported_ids,
    unsigned,
)
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import QualifiedId

HIGH = (1 << 64) - 1


def test_a_directory_has_four_levels_of_unsigned_hexadecimal_numbers() -> None:
    """The example of the acceptance sheet."""
    id = QualifiedId.parse("f47ac10b-58cc-4372-a567-0e02b2c3d479")
    assert imported_directory(Path("/store"), id) == Path(
        "/store/f47ac10b/58cc4372/a5670e02/b2c3d479"
    )


def test_ids_are_found_in_unsigned_order(tmp_path: Path) -> None:
    """The order is that of the unsigned scope, then the unsigned id; other names do not count."""
    ids = [QualifiedId(*each) for each in ((1, 7), (1, 1 << 63), (1 << 63, 0), (HIGH, HIGH))]
    for id in reversed(ids):
        imported_directory(tmp_path, id).mkdir(parents=True)
    for name in ("0-0.rec", "aerotape-quarantine", "0000000g", "00000001/x", "00000002"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "00000003").write_text("a file")
    (tmp_path / "00000000" / "00000001" / "00000009").write_text("a file")
    # There is no directory of scope 0.
    (tmp_path / "00000000" / "00000000" / "00000000" / "00000001").mkdir(parents=True)
    assert imported_ids(tmp_path) == ids
    assert imported_ids(tmp_path, 1) == ids[:2]
    assert imported_ids(tmp_path, 2) == []
    assert imported_ids(tmp_path, 0) == []


def test_scope_ids_are_unsigned() -> None:
    """Two's complement is accepted; more than 64 bits are refused."""
    assert unsigned(-1) == HIGH
    assert unsigned(7) == 7
    for scope_id in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(ConfigurationError, match="does not fit in 64 bits"):
            unsigned(scope_id)
