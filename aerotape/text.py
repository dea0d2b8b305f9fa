"""Text from elsewhere, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with its control characters escaped: it drives no terminal, forges no line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
