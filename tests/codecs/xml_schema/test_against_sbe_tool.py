"""Schemas read from XML have the tree that sbe-tool computes for them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.builders.mutated_schema import mutated_schema
from support.builders.payload_schema import BIG_ENDIAN_SCHEMA, SCHEMA
from support.builders.random_schema import random_schema
from support.builders.sbe_text import schema_text, var_data
from support.jvm import java
from support.jvm.sbe_tool import compile_schemas

from aerotape.codecs.generate import OWN_SCHEMAS
from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import SchemaError

# Random schemas for each seed.
PER_SEED = 40
# sbe-tool loses the byte order of a set without choices.
EMPTY_SET = re.compile(r"<set [^>]*(/>|>[^<]*</set>)")

SEMANTIC_TYPE = re.compile(r"semantic_type='\w*'")


def tree(schema: Schema) -> str:
    """A schema as text, in which NaN equals itself; sbe-tool sorts messages in its own way, and has
    nanoseconds as the unit of each field without one, and no semantic types of types."""
    text = repr(replace(schema, messages=tuple(sorted(schema.messages, key=lambda m: m.id))))
    return SEMANTIC_TYPE.sub("", text.replace("time_unit='nanosecond'", "time_unit=''"))


def require_same(folder: Path, name: str) -> None:
    ours = load_schema(folder / f"{name}.xml")
    assert tree(ours) == tree(load_schema(folder / f"{name}.sbeir")), name


def test_random_schemas(jars: dict[str, Path], tmp_path: Path, seeds: range) -> None:
    """All constructs in random combinations; what sbe-tool refuses is refused."""
    numbers = range(seeds.start * PER_SEED, seeds.stop * PER_SEED)
    schemas = {f"s{number}": random_schema(number) for number in numbers}
    refused = compile_schemas(schemas, tmp_path, jars["sbe-all"])
    assert len(refused) < len(schemas) / 4, "the generator makes too few valid schemas"
    for name in schemas:
        if name not in refused:
            require_same(tmp_path, name)
            continue
        with pytest.raises(SchemaError):
            load_schema(tmp_path / f"{name}.xml")


def test_document_types(jars: dict[str, Path], tmp_path: Path) -> None:
    """sbe-tool accepts a document type, too: without a DTD, and with one that it can load."""
    (tmp_path / "x.dtd").write_text("")
    declaration, _, body = SCHEMA.partition("?>")
    schemas = {
        f"s{number}": f"{declaration}?>\n<!DOCTYPE messageSchema{dtd}>{body}"
        for number, dtd in enumerate(("", ' SYSTEM "x.dtd"'))
    }
    assert compile_schemas(schemas, tmp_path, jars["sbe-all"]) == {}
    for name in schemas:
        require_same(tmp_path, name)


def test_mutated_schemas(jars: dict[str, Path], tmp_path: Path, seeds: range) -> None:
    """With random mistakes too: what sbe-tool refuses is refused, by the error for mistakes, and
    what both accept has the same tree."""
    numbers = range(seeds.start * PER_SEED, seeds.stop * PER_SEED)
    schemas = {f"s{number}": mutated_schema(number) for number in numbers}
    refused = compile_schemas(schemas, tmp_path, jars["sbe-all"])
    assert len(refused) > len(schemas) / 4, "most changes should be mistakes"
    for name, text in schemas.items():
        try:
            load_schema(tmp_path / f"{name}.xml")
        except SchemaError:
            continue
        assert name not in refused, refused[name]
        if not EMPTY_SET.search(text):
            require_same(tmp_path, name)


def test_schemas_of_aeron_and_ours(jars: dict[str, Path], tmp_path: Path) -> None:
    """The schemas of Aeron Archive, Aeron Cluster, sbe-tool and aerotape."""
    schemas = {path.stem: path.read_text() for path in OWN_SCHEMAS.glob("*.xml")}
    for jar in (java.find_jar(java.AERON_ALL), jars["sbe-all"]):
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".xml") and not name.startswith("META-INF"):
                    schemas[Path(name).stem] = archive.read(name).decode()
    schemas |= {"garage": SCHEMA, "garage-big-endian": BIG_ENDIAN_SCHEMA}
    assert {"aeron-archive-codecs", "aeron-cluster-codecs", "sbe-ir", "entity"} < schemas.keys()
    assert compile_schemas(schemas, tmp_path, jars["sbe-all"]) == {}
    for name in schemas:
        require_same(tmp_path, name)


def test_what_sbe_tool_cannot_read(jars: dict[str, Path], tmp_path: Path) -> None:
    """The standard allows white space around numbers, enums of all unsigned numbers, and a default
    namespace, SBE 2.0 an element of messages; a constant type is constant in any field."""
    fields = (
        '<field name="f" id="1" type="T"/><field name="g" id="2" type="C" presence="optional"/>'
    )
    types = (
        var_data("text", "uint8")
        + '<type name="C" primitiveType="int8" presence="constant">\n -3\n</type>'
        + '<enum name="T" encodingType="uint64"><validValue name="A"> 7 </validValue></enum>'
    )
    message = f'<messages><sbe:message name="M" id="1">{fields}</sbe:message></messages>'
    text = schema_text('package="p" id="1"', types=types, messages=message)
    text = text.replace("sbe:", "").replace("xmlns:sbe", "xmlns")
    assert "m" in compile_schemas({"m": text}, tmp_path, jars["sbe-all"])
    (message_read,) = load_schema(tmp_path / "m.xml").messages
    assert message_read.block_length == 8
    assert message_read.fields[1].constant == -3
