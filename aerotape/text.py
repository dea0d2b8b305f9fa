"""Texts of messages: what they quote, and what they call what a user can give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
