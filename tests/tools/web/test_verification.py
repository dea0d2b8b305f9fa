"""The file of a verification, which some job writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aerotape.errors import StorageError
from aerotape.tools._web.verification import read_verification

PROBLEM = {"position": 0, "detail": "damaged"}


@pytest.mark.parametrize(
    "rows",
    [
        [{"recording_id": "5", "problems": [PROBLEM]}],
        [{"recording_id": None, "problems": []}],
        [{"recording_id": 1.5, "problems": [PROBLEM]}],
        [{"recording_id": True, "problems": [PROBLEM]}],
        [{"recording_id": 5, "problems": "no list"}],
        [{"recording_id": 5, "problems": [{**PROBLEM, "detail": {}}]}],
        [{"recording_id": 5, "problems": [{**PROBLEM, "position": "0"}]}],
        {"recording_id": 5},
        5,
    ],
)
def test_what_is_no_verification(tmp_path: Path, rows: Any) -> None:
    path = tmp_path / "verified.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(StorageError, match="is not what"):
        read_verification(path)


def test_many_problems(tmp_path: Path) -> None:
    """As many of a recording as an answer may have."""
    path = tmp_path / "verified.json"
    row = {"recording_id": 5, "problems": [PROBLEM, {**PROBLEM, "position": None}] * 1_000}
    path.write_text(json.dumps([row, {"recording_id": 6, "problems": []}]))
    found = read_verification(path)
    assert found.checked == {5, 6}
    assert [note.position for note in found.failed[5]] == [0, None] * 50
