"""XML of a schema: files that it includes, encodings, and what a hostile file cannot do."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.payload_schema import SCHEMA as GARAGE
from support.builders.sbe_text import schema_text

from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.xml_schema.document import MAX_BYTES, Element, _Parser
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
    return SCHEMA.replace(TYPES, "\n".join(map(include, hrefs)))


def include(href: str) -> str:
    return f'<xi:include {XI} href="{href}"/>'


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
    expected = (
        "schema.xml:1: a document type declaration (DOCTYPE) with declarations in brackets, such "
        "as entities, is not accepted: remove them"
    )
    assert refusal(tmp_path, declared + body) == expected
    external = '<!DOCTYPE x [<!ENTITY a11 SYSTEM "file:///etc/passwd">]>\n'
    assert refusal(tmp_path, external + body) == expected
    parameter = '<!DOCTYPE x SYSTEM "x.dtd" [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>\n'
    assert refusal(tmp_path, parameter + body) == expected
    twice = f'<!DOCTYPE x SYSTEM "x.dtd">{declared}'
    assert "a second document type declaration" in refusal(tmp_path, twice + body)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "doctype",
    [
        "<!DOCTYPE x>",
        '<!DOCTYPE sbe:messageSchema SYSTEM "x.dtd">',
        '<!DOCTYPE x\n  PUBLIC "-//B3//DTD"\n  "http://localhost/x.dtd"\n>',
    ],
)
def test_a_document_type_without_declarations(tmp_path: Path, doctype: str, encoding: str) -> None:
    """It is accepted and not loaded, also in an included file; entities of it are not known, and
    messages have the lines of the file."""
    (tmp_path / "x.dtd").write_text('<!ENTITY a "int8">')
    declaration, _, body = SCHEMA.replace("UTF-8", encoding.removesuffix("-sig"), 1).partition("?>")
    text = f"{declaration}?>\n<!-- <!DOCTYPE a [ -->\n{doctype}{body}"
    path = tmp_path / "schema.xml"

    def load_text(text: str) -> Schema:
        path.write_bytes(text.encode(encoding))
        return load_schema(path)

    assert load_text(text) == load(tmp_path, SCHEMA)
    for wrong in (text.replace('"int8"', '"int7"'), text.replace('"int8"', '"&a;"')):
        line = wrong[: wrong.index('name="T"')].count("\n") + 1
        with pytest.raises(SchemaError, match=rf"schema\.xml:{line}: .*(int7|undefined entity)"):
            load_text(wrong)
    with pytest.raises(SchemaError, match="undefined entity"):
        load_text(text.replace("</types>", "&a;</types>"))
    included = {"types": f"{doctype}\n{TYPES}"}
    assert load(tmp_path, including("types.xml"), **included) == load(tmp_path, SCHEMA)


def test_sizes_are_limited(tmp_path: Path) -> None:
    """The sum of all files is limited, also if one file is included again and again."""
    large = f"<types>{' ' * (MAX_BYTES // 3)}</types>"
    many = including(*["large.xml"] * 3)
    assert refusal(tmp_path, many, large=large) == (
        "large.xml: the schema is larger than 8 MiB with what it includes"
    )


def test_a_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that include each next one twice are too large together, which is found at once; files
    that are included often and are small are accepted."""
    parsed: list[str] = []
    parse = _Parser.parse

    def noted(self: _Parser, content: bytes) -> Element:
        parsed.append(self._file.stem)
        return parse(self, content)

    monkeypatch.setattr(_Parser, "parse", noted)
    files = {f"f{n}": f"<types>{include(f'f{n + 1}.xml') * 2}</types>" for n in range(24)}
    problem = refusal(tmp_path, including("f0.xml"), f24=TYPES, **files)
    assert "the schema is larger than 8 MiB with what it includes" in problem
    assert sorted(parsed) == sorted(["schema", *files, "f24"])
    parsed.clear()
    empty = "<types/>"
    load(tmp_path, including("headers.xml", *["empty.xml"] * 50), headers=TYPES, empty=empty)
    assert sorted(parsed) == ["empty", "headers", "schema"]


def test_depth_is_that_of_all_includes(tmp_path: Path) -> None:
    """Also of files that were parsed before, where fewer files were around them."""
    chain = {f"a{n}": f"<types>{include(f'a{n + 1}.xml')}</types>" for n in range(60)}
    chain["a60"] = "<types/>"
    outer = {f"b{n}": f"<types>{include(f'b{n + 1}.xml')}</types>" for n in range(60)}
    outer["b60"] = f"<types>{include('a0.xml')}</types>"
    both = including("headers.xml", "a0.xml", "b0.xml")
    assert "is in 100 other files" in refusal(tmp_path, both, headers=TYPES, **chain, **outer)
    load(tmp_path, including("headers.xml", "a0.xml", "b40.xml"))


def test_files_that_are_not_regular(tmp_path: Path) -> None:
    """A pipe without a writer is not waited for; devices, sockets and directories are refused."""
    os.mkfifo(tmp_path / "pipe.xml")
    (tmp_path / "folder.xml").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket.xml"))
        for name, reason in (
            ("pipe", "not a regular file"),
            ("folder", "Is a directory"),
            ("socket", "No such device or address"),
        ):
            assert refusal(tmp_path, including(f"{name}.xml")) == (
                f"schema.xml:3: include: cannot read '{name}.xml': {reason}"
            )


def test_links(tmp_path: Path) -> None:
    """Links within the folder are followed, others are not; a schema that is a link includes files
    of its folder, and of the folder that it leads to."""
    folder, other = tmp_path / "schemas", tmp_path / "other"
    (folder / "..data").mkdir(parents=True)
    other.mkdir()
    (other / "types.xml").write_text(TYPES)
    (folder / "..data" / "types.xml").write_text(TYPES)
    (folder / "types.xml").symlink_to("..data/types.xml")  # as in a mounted ConfigMap
    expected = load(folder, including("types.xml"))
    for name, target in (
        ("file.xml", other / "types.xml"),
        ("device.xml", Path("/dev/zero")),
        ("passwd.xml", Path("/etc/passwd")),
        ("folder", other),
        ("loop.xml", folder / "loop.xml"),
    ):
        (folder / name).symlink_to(target)
        href = "folder/types.xml" if name == "folder" else name
        reason = refusal(folder, including(href))
        assert reason.startswith(f"schema.xml:3: include: cannot read {href!r}: ")
        assert "leads out of the folder" in reason or "symbolic links" in reason
    (folder / "schema.xml").write_text(including("types.xml"))
    (tmp_path / "linked").symlink_to(folder)
    assert load_schema(tmp_path / "linked" / "schema.xml") == expected
    (other / "schema.xml").symlink_to(folder / "schema.xml")
    assert load_schema(other / "schema.xml") == expected
    (other / "types.xml").unlink()
    (other / "types.xml").symlink_to(folder / "types.xml")
    assert load_schema(other / "schema.xml") == expected


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
