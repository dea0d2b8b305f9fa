"""Commands that have commands."""

from __future__ import annotations

from argparse import ArgumentParser
from types import ModuleType

import pytest

from aerotape.tools import entity, journal, ledger, tool


@pytest.mark.parametrize("group", [entity, journal, ledger, tool])
def test_each_command_has_its_module(group: ModuleType) -> None:
    """A command without one is unknown beside an argument that is the name of another one."""
    parser = ArgumentParser(prog="x")
    group.configure_for(parser, [])
    (commands,) = (each.choices for each in parser._actions if isinstance(each.choices, dict))
    assert set(commands) == set(group.MODULES)
