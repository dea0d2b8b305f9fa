"""The blocking client, generated from the asyncio client."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_type_hints

import pytest

import aerotape
from aerotape.client import generate

CLASSES = (
    (aerotape.AsyncArchiveClient, aerotape.ArchiveClient),
    (aerotape.AsyncReplay, aerotape.Replay),
    (aerotape.AsyncSignals, aerotape.Signals),
)


@pytest.mark.parametrize("path", generate.SOURCES, ids=lambda path: path.parts[-3] + path.stem)
def test_the_committed_modules_are_up_to_date(path: Any) -> None:
    """Generating them again changes nothing."""
    assert generate.target(path).read_text() == generate.blocking_source(path)


SOURCE = '''"""The text of the asyncio client; callers await a result, or `AsyncThing`."""
import asyncio

from aerotape.client.event_loop import AsyncMessages, AsyncRequests
from aerotape.context import Opening
from aerotape.client.asynchronous.other import AsyncOther


class AsyncThing(AsyncRequests):
    """Runs.

    >>> async with AsyncThing() as thing:
    ...     print(await thing.of("await it"))
    await nobody
    """

    # A comment that says await and AsyncThing stays.
    lock = asyncio.Lock()

    async def of(self, é: str) -> Opening[AsyncMessages[AsyncOther]]:
        """Await what async code says."""
        "é", await self.one(  # await (1)
            [await each async for each in self.all(é)]
        )
        async with self.lock, AsyncOther("await AsyncOther"):
            return await anext(self.each, None)  # kept

    async def each(self) -> AsyncGenerator[AsyncOther, None]:
        yield self
'''
EXPECTED = '''"""The text of the blocking client; callers await a result, or `Thing`."""
import threading

from aerotape.client.blocking_requests import BlockingRequests

from aerotape.client.blocking.other import Other


class Thing(BlockingRequests):
    """Runs.

    >>> with Thing() as thing:
    ...     print(thing.of("await it"))
    await nobody
    """

    # A comment that says await and AsyncThing stays.
    lock = threading.Lock()

    def of(self, é: str) -> Other:
        """Await what async code says."""
        "é", self.one(  # await (1)
            [each for each in self.all(é)]
        )
        with self.lock, Other("await AsyncOther"):
            return next(self.each, None)  # kept

    def each(self) -> Generator[Other, None, None]:
        yield self
'''


def test_code_is_changed_and_text_is_not() -> None:
    """Of texts only examples of docstrings, as code, and names in their prose."""
    assert generate.blocking_code(SOURCE) == EXPECTED


@pytest.mark.parametrize("pair", CLASSES, ids=lambda pair: pair[1].__name__)
def test_both_have_the_same_methods(pair: tuple[type, type]) -> None:
    """Parameters, defaults and annotations are the same, and results but for their wrapping."""
    source, generated = pair
    names = {each for each in dir(generated) if not each.startswith("_")}
    assert names == {each for each in dir(source) if not each.startswith("_")}
    for name in names:
        one, two = getattr(source, name), getattr(generated, name)
        if not inspect.isfunction(one):
            continue
        own, other = inspect.signature(one), inspect.signature(two)
        assert own.parameters == other.parameters, name
        expected = re.sub(r"Opening\[AsyncMessages\[(\w+)\]\]|Opening\[(\w+)\]", r"\1\2", str(own))
        assert re.sub(r"\bAsync(?=\w)", "", expected) == str(other), name
        assert two.__doc__, name


def test_annotations_name_existing_types() -> None:
    """Every annotation of both clients can be evaluated."""
    for client in CLASSES[0]:
        for name, method in inspect.getmembers(client, inspect.isfunction):
            if not name.startswith("_") and name != "entities":
                assert "return" in get_type_hints(method), name
