"""Mistakes in schemas: each is reported with its file, line and element."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.builders.schema_mistakes import (
    CASES,
    HERE,
    OF_SCHEMA,
    Case,
    text_of,
    text_of_schema,
)
from support.jvm.sbe_tool import compile_schemas

from aerotape.codecs.schema_files import load_schema
from aerotape.errors import SchemaError


def problems_of(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    return caught.value.problems


@pytest.mark.parametrize("name", CASES)
def test_a_mistake(name: str, tmp_path: Path) -> None:
    """A mistake is reported alone, with file, line and element."""
    case = CASES[name]
    text = text_of(case)
    line = text[: text.index(HERE)].count("\n") + 1
    path = tmp_path / "schema.xml"
    (problem,) = problems_of(path, text)
    assert problem.startswith(f"{path}:{line}: {case.expected}")
    if not case.expected.endswith(" "):
        assert problem == f"{path}:{line}: {case.expected}"


@pytest.mark.parametrize("name", OF_SCHEMA)
def test_a_mistake_in_the_schema_itself(name: str, tmp_path: Path) -> None:
    """The same for the root element and the messages."""
    path = tmp_path / "schema.xml"
    assert problems_of(path, text_of_schema(name)) == (f"{path}:{OF_SCHEMA[name][1]}",)


def test_all_are_reported(tmp_path: Path) -> None:
    """The error names the first mistake and the number of others, and has all of them, each once;
    it can be pickled, as Spark does."""
    types = '\n<type name="T" primitiveType="int7"/>\n<enum name="E" encodingType="T"/>'
    fields = '\n<field name="f" id="1" type="T"/>\n<field name="g" id="2" type="U"/>'
    path = tmp_path / "schema.xml"
    path.write_text(text_of(Case(types, fields, "")))
    with pytest.raises(SchemaError, match=r'type "T": .* \(and 1 more: .* --check') as caught:
        load_schema(path)
    first, second = caught.value.problems
    assert 'type "T": primitiveType' in first
    assert 'field "g": type "U" is not defined' in second
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.problems) == (str(caught.value), caught.value.problems)


def test_what_sbe_tool_refuses_is_refused(jars: dict[str, Path], tmp_path: Path) -> None:
    """sbe-tool refuses the schemas of the tables, but those that it accepts with a warning or
    without, and so computes something that no sender can mean."""
    texts = {name: text_of(case) for name, case in CASES.items()}
    texts |= {f"schema-{name}": text_of_schema(name) for name in OF_SCHEMA}
    accepted = {name for name, case in CASES.items() if case.accepted}
    accepted |= {f"schema-{name}" for name, (_, _, accepted) in OF_SCHEMA.items() if accepted}
    refused = compile_schemas(texts, tmp_path, jars["sbe-all"])
    assert texts.keys() - refused.keys() == accepted
