"""How far a migration came that was cut short, by the names that are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aerotape.catalog.maintenance.migration_journal import Journal, MigrationStep
from aerotape.errors import StorageError

NAMES = st.sampled_from("abcdefgh")


def journal(renames: list[tuple[str, str]]) -> Journal:
    return Journal(Path("journal"), (MigrationStep(1, Path("marker"), tuple(renames)),))


def possible(renames: list[tuple[str, str]], names: set[str]) -> list[int]:
    """How many renames may have been done, by trying each number."""
    touched = {name for pair in renames for name in pair}
    found = []
    for done in range(len(renames) + 1):
        there = {target for _, target in renames[:done]} | {source for source, _ in renames[done:]}
        if names & touched == there:
            found.append(done)
    return found


@settings(deadline=None)
@given(
    st.lists(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1]), max_size=6),
    st.sets(NAMES),
)
def test_what_is_left_is_what_the_names_tell(
    renames: list[tuple[str, str]], names: set[str]
) -> None:
    """Also where one file gets a name that another one had; at random, and after each rename."""
    for there in [names] + [
        {target for _, target in renames[:done]} | {source for source, _ in renames[done:]}
        for done in range(len(renames) + 1)
    ]:
        expected = possible(renames, there)
        if not expected:
            with pytest.raises(StorageError, match="segment files have changed since"):
                journal(renames).rest(there, 0)
        else:
            [step] = journal(renames).rest(there, 0)
            assert list(step.renames) == renames[expected[-1] :]


def test_each_name_is_looked_at_a_few_times_however_many_there_are() -> None:
    class Name(str):
        __slots__ = ()
        looks = 0

        def __hash__(self) -> int:
            Name.looks += 1
            return super().__hash__()

    count = 300
    renames: list[tuple[str, str]] = [(Name(f"old{i}"), Name(f"new{i}")) for i in range(count)]
    names: set[str] = {source for source, _ in renames}
    Name.looks = 0
    [step] = journal(renames).rest(names, 0)
    assert len(step.renames) == count
    assert Name.looks < 20 * count
