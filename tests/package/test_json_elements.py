"""Elements of files of JSON: as `json.loads` reads them, in little memory."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

from aerotape.json_elements import MAX_ELEMENT, elements_of


def read(data: bytes, name: str | None = "notes") -> list[Any]:
    return list(elements_of(io.BytesIO(data), name))


def some(rng: random.Random, depth: int = 0) -> Any:
    """Return a value of JSON."""
    kind = rng.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return rng.choice([None, True, 0, -17, 123_456_789, 1.5e300])
    if kind < 4:
        return "".join(rng.choices('a"\\,]}[{é\U0001f600\n ', k=rng.randrange(9) ** 3))
    inner = [some(rng, depth + 1) for _ in range(rng.randrange(5))]
    return inner if kind == 4 else {f"{number}]": each for number, each in enumerate(inner)}


@pytest.mark.parametrize("seed", range(60))
def test_elements_are_those_of_the_file(seed: int) -> None:
    """Wherever the array stands among the members, and however the file is written."""
    rng = random.Random(seed)
    wanted = [some(rng) for _ in range(rng.choice([0, 1, 3, 400]))]
    members = {"before": some(rng), "notes": wanted, "after": some(rng)}
    names = rng.sample(sorted(members), 3)
    indent = rng.choice([None, 1])
    text = json.dumps(
        {name: members[name] for name in names}, indent=indent, ensure_ascii=rng.random() < 0.5
    )
    assert read(f" {text}\n".encode()) == wanted
    assert read(json.dumps(wanted, indent=indent).encode(), None) == wanted


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b" ", b"{}", b"[]", b"1", b'{"notes": 1}', b'{"notes": [1', b'{"notes": [1 2]}'),
        *(b'{"notes": []', b'{"notes": []}}', b'{"notes": [1,]}', b'{"notes" [1]}', b"{1: 2}"),
        *(b"{\"notes\": [\"\xff\"]}", b"{\"notes\": [1], \"a\": }", b"\0" * 100),
        b"{\"notes\": [" + b"9" * 5_000,
    ],
)
def test_what_is_not_such_a_file(data: bytes) -> None:
    with pytest.raises(ValueError):
        read(data)


def test_values_that_are_too_long() -> None:
    """Of any kind, also if there is nothing but space."""
    text = "x" * (MAX_ELEMENT - 100)
    assert read(json.dumps({"notes": [text, text]}).encode()) == [text, text]
    for data in (f'{{"notes": ["{text}{text}"]}}', " " * 5 * MAX_ELEMENT, f'{{"{text}{text}": 1}}'):
        with pytest.raises(ValueError, match="more than 1048576 characters"):
            read(data.encode())


def test_elements_before_an_error_are_returned() -> None:
    found = elements_of(io.BytesIO(b'{"notes": [1, {"a": 2}, oops]}'), "notes")
    assert [next(found), next(found)] == [1, {"a": 2}]
    with pytest.raises(ValueError):
        next(found)
