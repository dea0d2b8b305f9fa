"""Tests of aerotape.tools._cli.option_names."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import aerotape
from aerotape.errors import AeronError, AerotapeError, ConfigurationError
from aerotape.tools._cli import option_names
from aerotape.tools._cli.option_names import message_of

_ROOT = Path(aerotape.__file__).parents[1]
_LIBRARY = ("aerotape", "archive", "client", "entity", "replay")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AeronError("no driver (aeron_dir)"), "no driver (aeron_dir)"),
        (AeronError("no driver (aeron_dir)").naming("aeron_dir"), "no driver (--aeron-dir)"),
        (
            AeronError("/tmp/aeron_dir/x: give aeron_dir, a.aeron_dir").naming("aeron_dir"),
            "/tmp/aeron_dir/x: give --aeron-dir, a.aeron_dir",
        ),
        (
            ConfigurationError("give stores or force").naming("stores", "force"),
            "give --store or --force",
        ),
        (ConfigurationError("from_=3: expected").naming("from_"), "--from=3: expected"),
        (KeyError("aeron_dir"), "'aeron_dir'"),
    ],
    ids=["not named", "named", "in a path", "two", "a prefix", "other"],
)
def test_only_arguments_that_the_error_names_become_options(error: Exception, message: str) -> None:
    """Words that are equal to an argument, of a path or a user, stay as they are."""
    assert message_of(error) == message


def test_an_error_that_quotes_another_names_its_options() -> None:
    """The message of a cause is often a part of the message."""
    try:
        try:
            raise AeronError("no driver (aeron_dir)").naming("aeron_dir")
        except AeronError as error:
            raise AerotapeError(f"cannot bench: {error}") from error
    except AerotapeError as error:
        assert message_of(error) == "cannot bench: no driver (--aeron-dir)"


def test_arguments_survive_pickling() -> None:
    """Errors cross processes, of Spark for example."""
    error = pickle.loads(pickle.dumps(AeronError("aeron_dir", 7).naming("aeron_dir")))
    assert (error.arguments, error.code) == (("aeron_dir",), 7)


def test_each_argument_that_an_error_names_has_an_option_and_is_in_its_text() -> None:
    """And no option is there for an argument that no error names."""
    named: set[str] = set()
    for folder in _LIBRARY:
        for file in (_ROOT / folder).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "naming":
                    text = "".join(_texts(ast.walk(call.func)))
                    names = list(_texts(call.args))
                    assert all(name in text for name in names), f"{file}:{call.lineno}"
                    named.update(names)
    assert named == set(option_names._OPTIONS)


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the string literals among nodes, those of f-strings too."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
