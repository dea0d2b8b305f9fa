"""Texts of messages and representations: values, objects, names of options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from operator import attrgetter
from typing import Final

_NAMES_OPTIONS: Final = ContextVar("names_options", default=False)


@contextmanager
def naming_options() -> Iterator[None]:
    """Let messages name the options of commands in place of Python's arguments."""
    token = _NAMES_OPTIONS.set(True)
    try:
        yield
    finally:
        _NAMES_OPTIONS.reset(token)


def argument(name: str, option: str) -> str:
    """Return what the user can give: an argument in Python, an option within a command."""
    return option if _NAMES_OPTIONS.get() else name


def not_installed(module: str, extra: str) -> str:
    """Return the message for a module that an extra of this package brings along."""
    return (
        f"{module} is not installed: `pip install '.[{extra}]'` in aerotape's checkout, or "
        f"`pip install 'WHEEL[{extra}]'` with the wheel that `make dist` builds there"
    )


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
