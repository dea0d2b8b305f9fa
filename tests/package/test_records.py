"""Records are to be had as dataclasses are, and behave as they do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from aerotape import records


@records.record(frozen=True, slots=True)
class Frozen:
    """A record."""

    KIND: ClassVar[str] = "frozen"

    number: int
    name: str = "none"
    others: list[int] = records.field(default_factory=list)
    hidden: bytes = records.field(default=b"", repr=False)

    @property
    def twice(self) -> int:
        return 2 * self.number


@dataclass(frozen=True, slots=True)
class FrozenDataclass:
    """Its model."""

    KIND: ClassVar[str] = "frozen"

    number: int
    name: str = "none"
    others: list[int] = dataclasses.field(default_factory=list)
    hidden: bytes = dataclasses.field(default=b"", repr=False)

    @property
    def twice(self) -> int:
        return 2 * self.number


@records.record(slots=True, kw_only=True)
class Open:
    """A record whose fields may change."""

    number: int = 1
    name: str


@dataclass(slots=True, kw_only=True)
class OpenDataclass:
    """Its model."""

    number: int = 1
    name: str


@records.record(frozen=True)
class Plain:
    """A record without slots."""

    number: int = 7


class Derived(Plain):
    """Has an attribute of its own."""

    def __init__(self) -> None:
        super().__init__(8)
        self.more = 9


@pytest.mark.parametrize("kind", [Frozen, FrozenDataclass])
def test_frozen(kind: Any) -> None:
    """Made, shown, compared, hashed, copied and refused as a frozen dataclass is."""
    made = kind(1, "one", hidden=b"?")
    assert repr(made) == f"{kind.__name__}(number=1, name='one', others=[])"
    assert (made.number, made.name, made.others, made.hidden) == (1, "one", [], b"?")
    assert (made.twice, kind.KIND) == (2, "frozen")
    assert made == kind(1, "one", [], b"?") != kind(1, "one", [])
    assert made != (1, "one", [], b"?")
    assert kind(1).others is not kind(1).others
    assert hash(kind(1, others=())) == hash(kind(1, others=())) != hash(kind(2, others=()))
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert copied == made
    with pytest.raises(dataclasses.FrozenInstanceError, match="number"):
        made.number = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="number"):
        del made.number
    with pytest.raises((AttributeError, TypeError)):
        made.unknown = 1
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        kind(1, unknown=2)
    assert list(inspect.signature(kind).parameters) == ["number", "name", "others", "hidden"]
    match made:
        case kind(1, name):
            assert name == "one"
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize("kind", [Open, OpenDataclass])
def test_open(kind: Any) -> None:
    """Fields of one that is not frozen change; it has no hash and takes names only."""
    made = kind(name="one")
    made.number = 2
    assert made == kind(number=2, name="one")
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(AttributeError):
        made.unknown = 1
    with pytest.raises(TypeError):
        hash(made)
    with pytest.raises(TypeError):
        kind(1, "one")


@pytest.mark.parametrize("kind", [Frozen, FrozenDataclass])
def test_as_a_dataclass(kind: Any) -> None:
    """The functions of dataclasses work on it, and ours as they do."""
    made = kind(1, others=[2])
    fields = {"number": 1, "name": "none", "others": [2], "hidden": b""}
    assert [each.name for each in dataclasses.fields(kind)] == list(fields)
    assert records.field_names(made) == tuple(fields)
    assert dataclasses.asdict(made) == fields
    assert dataclasses.replace(made, number=3) == kind(3, others=[2])
    assert dataclasses.is_dataclass(made) and dataclasses.is_dataclass(kind)
    assert records.field_names("text") == ()


def test_own_asdict_and_replace() -> None:
    """They do on a record what those of dataclasses do."""
    made = Frozen(1, others=[2])
    assert records.asdict(made) == dataclasses.asdict(made)
    assert records.replace(made, number=3) == dataclasses.replace(made, number=3)


def test_without_slots() -> None:
    """It is frozen too; a class derived from it that is no record may have what it likes."""
    assert Plain.number == 7
    assert Plain() == Plain(7) != Plain(8)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Plain().more = 1  # type: ignore[attr-defined]
    derived = Derived()
    assert (derived.number, derived.more) == (8, 9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        derived.number = 1  # type: ignore[misc]
    with pytest.raises(TypeError, match="Other: a record cannot be derived"):

        @records.record(frozen=True)
        class Other(Plain):
            other: int = 1


def test_what_is_to_follow_the_making_follows_it() -> None:
    @records.record(frozen=True, slots=True)
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError(f"{self.number} is odd")

    assert Even(2).number == 2
    with pytest.raises(ValueError, match="3 is odd"):
        Even(3)
    with pytest.raises(ValueError, match="5 is odd"):
        records.replace(Even(2), number=5)
