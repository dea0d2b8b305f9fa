"""Validation of column names given by users."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from aerotape.errors import ConfigurationError


def check_columns(columns: Sequence[str], known: Sequence[str], name: str = "columns") -> None:
    """Raise ConfigurationError for unknown or duplicate columns, or an empty list."""
    if isinstance(columns, str):
        raise ConfigurationError(f"{name}: {columns!r} is not a list of names", name)
    for column in columns:
        if column not in known:
            close = get_close_matches(column, known, 1)
            hint = f", do you mean {close[0]}?" if close else ""
            raise ConfigurationError(
                f"{name}: unknown column {column!r}{hint} (known: {', '.join(known)})", name
            )
    if not columns:
        raise ConfigurationError(f"{name}: no columns given", name)
    if len(set(columns)) < len(columns):
        raise ConfigurationError(f"{name}: duplicate column in {', '.join(columns)}", name)
