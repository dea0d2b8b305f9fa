"""Text of values and objects, fit to be shown."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from operator import attrgetter


def printable(text: str) -> str:
    """Return `text` with its control characters escaped: it drives no terminal, forges no line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(thing: object, *names: str) -> str:
    """Return the `repr` of something that is opened and closed: its class and what it is about.

    An attribute that cannot be read, as of an object whose `__init__` failed, is left out.

    Args:
        thing: the object; with an attribute `is_closed` that is true it is shown as closed.
        names: of the attributes to show; an attribute of an attribute with a dot.
    """
    words = [type(thing).__name__]
    for name in names:
        with suppress(Exception):
            value = attrgetter(name)(thing)
            text = value.name if isinstance(value, Enum) else repr(value)
            words.append(f"{name.rpartition('.')[2].lstrip('_')}={text}")
    with suppress(Exception):
        if attrgetter("is_closed")(thing):
            words.append("closed")
    return f"<{' '.join(words)}>"
