"""XML of a schema: files that it includes, encodings, and what a hostile file cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.payload_schema import SCHEMA as GARAGE
from support.builders.sbe_text import schema_text

from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.xml_schema.document import MAX_BYTES
from aerotape.errors import CodecError, SchemaError

XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'
SCHEMA = schema_text(
    'package="test" id="1" version="9"',
    types='<type name="T" primitiveType="int8"/>',
    messages='<sbe:message name="M" id="1"><field name="f" id="1" type="T"/></sbe:message>',
)
TYPES = SCHEMA[SCHEMA.index("<types>") : SCHEMA.index("</types>") + len("</types>")]


def including(*hrefs: str) -> str:
    """The schema, with these files instead of its types."""
    includes = "\n".join(f'<xi:include {XI} href="{href}"/>' for href in hrefs)
    return SCHEMA.replace(TYPES, includes)


def load(folder: Path, text: str, **files: str) -> Schema:
    for name, content in files.items():
        (folder / f"{name}.xml").write_text(content)
    path = folder / "schema.xml"
    path.write_text(text)
    return load_schema(path)


def refusal(folder: Path, text: str, **files: str) -> str:
    """The only problem of a schema, without the folder."""
    with pytest.raises(SchemaError) as caught:
        load(folder, text, **files)
    (problem,) = caught.value.problems
    return problem.removeprefix(f"{folder}/")


def test_included_files(tmp_path: Path) -> None:
    """Files in the folder and below, also of files that are included; each path is relative to the
    file that has it, and messages name that file."""
    own = '<type name="T" primitiveType="int8"/>'
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "own.xml").write_text(f'<types {XI}><xi:include href="t.xml"/></types>')
    (tmp_path / "common" / "t.xml").write_text(own)
    headers = TYPES.replace(own, "")
    text = including("headers.xml", "common/own.xml")
    assert load(tmp_path, text, headers=headers) == load(tmp_path, SCHEMA)
    (tmp_path / "common" / "t.xml").write_text(f"\n{own.replace('int8', 'int7')}")
    assert refusal(tmp_path, text).startswith('common/t.xml:2: type "T": primitiveType')


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """The encoding is that of the declaration, or of the byte order mark."""
    name = encoding.removesuffix("-sig")
    text = SCHEMA.replace("UTF-8", name, 1).replace('"test"', '"tést"')
    path = tmp_path / "schema.xml"
    path.write_bytes(text.encode(encoding))
    assert load_schema(path).package == "tést"


def test_unknown_encoding(tmp_path: Path) -> None:
    """An encoding that is not known is refused, with the line."""
    assert refusal(tmp_path, SCHEMA.replace("UTF-8", "EBCD", 1)).startswith(
        "schema.xml:1: not well-formed XML: unknown encoding"
    )


@pytest.mark.parametrize(
    "href",
    ["../types.xml", "/etc/passwd", "file:///etc/passwd", "http://localhost/types.xml", "",
     "common/../../types.xml", "..\\types.xml", "."],
)  # fmt: skip
def test_files_outside_the_folder_are_not_read(tmp_path: Path, href: str) -> None:
    """Neither files of other folders nor URLs are included."""
    folder = tmp_path / "schemas"
    folder.mkdir()
    (tmp_path / "types.xml").write_text(TYPES)
    reason = refusal(folder, including(href))
    assert reason.startswith("schema.xml:3: include: ")
    assert "expected a file in the folder" in reason or "cannot read '.'" in reason


def test_include_that_is_not_possible(tmp_path: Path) -> None:
    """A missing file, a circle, text, and a part of a file are refused where they are named."""
    assert refusal(tmp_path, including("none.xml")) == (
        "schema.xml:3: include: cannot read 'none.xml': No such file or directory"
    )
    again = f'<types {XI}>\n<xi:include href="again.xml"/></types>'
    assert refusal(tmp_path, including("again.xml"), again=again) == (
        "again.xml:2: include: 'again.xml' includes itself"
    )
    for attribute in ('parse="text"', 'xpointer="types"'):
        text = including("again.xml").replace("href", f"{attribute} href")
        assert "is not supported: include a whole XML file" in refusal(tmp_path, text)
    assert refusal(tmp_path, including("again.xml"), again="<types>\n<types>") == (
        "again.xml:2: not well-formed XML: no element found"
    )


def test_entities_are_refused(tmp_path: Path) -> None:
    """A file whose entities grow by a factor of ten each ("billion laughs"), and one with an
    external entity, are refused at their declarations."""
    laughs = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">\n' for level in range(1, 12))
    body = SCHEMA.partition("?>\n")[2].replace('"test"', '"&a11;"')
    declared = f'<!DOCTYPE x [\n<!ENTITY a0 "ha">\n{laughs}]>\n'
    expected = "schema.xml:1: a document type declaration (DOCTYPE) is not accepted: remove it"
    assert refusal(tmp_path, declared + body) == expected
    external = '<!DOCTYPE x [<!ENTITY a11 SYSTEM "file:///etc/passwd">]>\n'
    assert refusal(tmp_path, external + body) == expected
    assert refusal(tmp_path, '<!DOCTYPE x SYSTEM "http://localhost/x.dtd">\n' + body) == expected


def test_sizes_are_limited(tmp_path: Path) -> None:
    """The sum of all files is limited, also if one file is included again and again."""
    large = f"<types>{' ' * (MAX_BYTES // 3)}</types>"
    many = including(*["large.xml"] * 3)
    assert refusal(tmp_path, many, large=large) == (
        "large.xml: the schema is larger than 8 MiB with what it includes"
    )
    (tmp_path / "endless.xml").symlink_to("/dev/zero")
    assert "larger than 8 MiB" in refusal(tmp_path, including("endless.xml"))


def test_depth_is_limited(tmp_path: Path) -> None:
    """Elements, includes, and types in each other may be 100 deep."""
    deep = SCHEMA.replace("<types>", "<types>" + "<x>" * 100 + "</x>" * 100)
    assert refusal(tmp_path, deep) == "schema.xml:3: elements are nested more than 100 deep"
    files = {
        f"f{level}": f'<types {XI}><xi:include href="f{level + 1}.xml"/></types>'
        for level in range(120)
    }
    assert "is in 100 other files" in refusal(tmp_path, including("f0.xml"), **files)
    chain = [
        f'<composite name="C{level}"><ref name="r" type="C{level + 1}"/></composite>'
        for level in range(300)
    ]
    chain.append('<composite name="C300"><type name="a" primitiveType="int8"/></composite>')
    for order in (chain, chain[::-1]):
        text = SCHEMA.replace("</types>", "".join(order) + "</types>")
        with pytest.raises(SchemaError, match="more than 100 deep"):
            load(tmp_path, text)


def test_types_that_multiply_are_refused(tmp_path: Path) -> None:
    """A composite of composites of composites, ten each, has any number of members in a small
    file: it is refused where a message has it."""
    chain = (
        '<composite name="C0"><type name="a" primitiveType="int8" presence="optional"/></composite>'
    )
    for level in range(1, 9):
        refs = "".join(f'<ref name="r{each}" type="C{level - 1}"/>' for each in range(10))
        chain += f'<composite name="C{level}">{refs}</composite>'
    text = SCHEMA.replace("</types>", f"{chain}</types>")
    assert load(tmp_path, text).message("M").block_length == 1
    text = text.replace('type="T"', 'type="C8"')
    assert 'field "f": the schema has more than 500000 fields and members' in refusal(
        tmp_path, text
    )


def test_many_mistakes(tmp_path: Path) -> None:
    """A file that is nothing but mistakes is refused after the first thousand; long values are
    shortened in messages."""
    types = "<type/>" * 5000
    with pytest.raises(SchemaError) as caught:
        load(tmp_path, SCHEMA.replace("</types>", f"{types}</types>"))
    assert len(caught.value.problems) == 1000
    long = f'<type name="{"N" * 5000}" primitiveType="{"P" * 5000}"/>'
    assert len(refusal(tmp_path, SCHEMA.replace("</types>", f"{long}</types>"))) < 700


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_damaged_files(tmp_path: Path, data: st.DataObject) -> None:
    """Changed bytes and noise produce a schema or a CodecError, nothing else."""
    damaged = bytearray(GARAGE.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "schema.xml"
    for candidate in (bytes(damaged), data.draw(st.binary(max_size=100))):
        path.write_bytes(candidate)
        try:
            assert isinstance(load_schema(path), Schema)
        except CodecError:
            continue
