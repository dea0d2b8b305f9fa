"""The generator: committed modules are up to date, unsupported constructs are refused."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from support.builders.sbe_text import schema_text, var_data

from aerotape.codecs import generate, sbe_tool
from aerotape.codecs.emitter import module_source
from aerotape.codecs.sbe_tool import compile_schema
from aerotape.codecs.schema import Schema
from aerotape.errors import CodecError, ConfigurationError

TYPES = (
    var_data("text", "uint32", "US-ASCII", most=1_073_741_824)
    + var_data("utf8", "uint32", "UTF-8", most=1_073_741_824)
    + var_data("short", "uint16")
    + """\
    <composite name="price">
      <type name="mantissa" primitiveType="int64"/>
      <type name="exponent" primitiveType="int8"/>
    </composite>
    <enum name="side" encodingType="uint8"><validValue name="BUY">1</validValue></enum>
    <set name="flags" encodingType="uint8"><choice name="LAST">0</choice></set>
    <type name="symbol" primitiveType="char" length="8"/>
    <type name="fixed" primitiveType="int32" presence="constant">9</type>"""
)


@pytest.fixture(scope="session")
def schema_folder() -> Path:
    """The directory of Aeron's schemas, in the sources from which the native core is built."""
    return sbe_tool.find_schema_folder()


def schema_of(folder: Path, jar: Path, *messages: str, byte_order: str = "littleEndian") -> Schema:
    """The tree of a schema whose messages M0, M1, … have the fields given."""
    path = folder / "schema.xml"
    elements = "".join(
        f'<sbe:message name="M{index}" id="{index}">{fields}</sbe:message>'
        for index, fields in enumerate(messages)
    )
    identity = 'package="test" id="7" version="3"'
    path.write_text(schema_text(identity, types=TYPES, messages=elements, byte_order=byte_order))
    return compile_schema(path, jar)


def test_committed_modules_are_up_to_date(
    jars: dict[str, Path], schema_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Generating from Aeron's schemas, and ours, produces exactly the committed modules."""
    options = ["--check", "--schemas", str(schema_folder), "--sbe-jar", str(jars["sbe-all"])]
    status = generate.main(options)
    assert status == 0, capsys.readouterr().err
    modules = {**generate.MODULES, **generate.OWN_MODULES}
    assert capsys.readouterr().out.count("up to date") == len(modules)


def test_one_schema_to_one_module(
    jars: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A schema and a module on the command line: the module has the command in its header."""
    schema_of(tmp_path, jars["sbe-all"], '<field name="a" id="1" type="int32"/>')
    module = tmp_path / "quotes.py"
    options = [str(tmp_path / "schema.xml"), str(module), "--sbe-jar", str(jars["sbe-all"])]
    assert generate.main(options) == 0
    command = "python -m aerotape.codecs.generate schema.xml quotes.py\n"
    assert f"Regenerate: {command}" in module.read_text()
    assert generate.main([*options, "--check"]) == 0
    missing_directory = [options[0], str(tmp_path / "no" / "quotes.py"), *options[2:]]
    assert generate.main(missing_directory) == 1
    assert "no/quotes.py" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        generate.main(options[:1])
    assert caught.value.code == 2
    assert "MODULE is required" in capsys.readouterr().err


def test_demo_module_is_up_to_date(
    jars: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo's market-data module is generated from its schema."""
    demo = Path(__file__).parents[1] / "demo"
    files = [str(demo / "market-data.xml"), str(demo / "market_data.py")]
    status = generate.main([*files, "--check", "--sbe-jar", str(jars["sbe-all"])])
    assert status == 0, capsys.readouterr().err


def test_check_reports_a_stale_module(
    jars: dict[str, Path], schema_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check fails for an edited or missing module and does not write it; without it, it is
    written."""
    for name in (*generate.MODULES.values(), *generate.OWN_MODULES.values()):
        shutil.copy(Path(generate.__file__).parent / "generated" / name, tmp_path)
    edited = tmp_path / "archive.py"
    original = edited.read_text()
    edited.write_text(original.replace("BLOCK_LENGTH: ClassVar[int] = 32", "BLOCK_LENGTH = 33", 1))
    (tmp_path / "mark.py").unlink()
    options = ["--schemas", str(schema_folder), "--sbe-jar", str(jars["sbe-all"])]
    options += ["--out", str(tmp_path)]
    assert generate.main([*options, "--check"]) == 1
    assert capsys.readouterr().err.count("out of date") == 2
    assert not (tmp_path / "mark.py").exists()
    assert generate.main(options) == 0
    assert edited.read_text() == original
    assert (tmp_path / "mark.py").exists()


UNSUPPORTED = (
    '<group name="x" id="1"><field name="a" id="2" type="int32"/>'
    '<group name="m" id="3"><field name="b" id="4" type="int32"/></group></group>',
    '<group name="x" id="1"><data name="t" id="2" type="text"/></group>',
    '<field name="x" id="1" type="price"/>',
    '<field name="x" id="1" type="flags"/>',
    '<field name="x" id="1" type="symbol"/>',
    '<field name="x" id="1" type="double"/>',
    '<field name="x" id="1" type="fixed"/>',
    '<field name="x" id="1" type="side" sinceVersion="2"/>',
    '<data name="x" id="1" type="utf8"/>',
    '<data name="x" id="1" type="short"/>',
)


def test_unsupported_constructs_are_reported(jars: dict[str, Path], tmp_path: Path) -> None:
    """Unsupported constructs are refused by message and field name."""
    schema = schema_of(tmp_path, jars["sbe-all"], *UNSUPPORTED)
    for message in schema.messages:
        with pytest.raises(CodecError, match=rf"^{message.name}\.x is not supported"):
            module_source(replace(schema, messages=(message,)), "schema.xml")
    big = schema_of(tmp_path, jars["sbe-all"], "", byte_order="bigEndian")
    with pytest.raises(CodecError, match=r"schema test: .*little endian"):
        module_source(big, "schema.xml")


def test_generated_module_of_another_schema_works(
    jars: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator works for any schema: keywords and clashing names become usable names."""
    fields = """
      <field name="from" id="1" type="uint16"/>
      <field name="encode" id="2" type="uint64" offset="8"/>
      <field name="buffer" id="3" type="int8" sinceVersion="2"/>
      <field name="end" id="4" type="uint8" sinceVersion="3"/>
      <data name="version" id="5" type="text" sinceVersion="3"/>
    """
    own = '<field name="self" id="1" type="int8"/>'
    source = module_source(schema_of(tmp_path, jars["sbe-all"], fields, own, ""), "schema.xml")
    module = ModuleType("aerotape_generated_in_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(source, module.__dict__)
    quote = module.M0(from_=65_535, encode_=1 << 63, buffer=-5, end=None, version="v")
    assert quote.encode().hex(" ") == (
        "12 00 00 00 07 00 03 00 ff ff 00 00 00 00 00 00 00 00 00 00 00 00 00 80 fb ff"
        " 01 00 00 00 76"
    )
    assert module.decode(quote.encode()) == quote
    older = module.M0.decode_body(quote.encode(), 8, 17, 2)
    assert older == module.M0(65_535, 1 << 63, -5, None, None)
    assert module.decode(module.M1(self_=1).encode()) == module.M1(1)
    assert module.decode(module.M2().encode()) == module.M2()


def test_schema_that_sbe_tool_refuses(jars: dict[str, Path], tmp_path: Path) -> None:
    """A wrong schema fails with the error of sbe-tool and the file name, without a stack trace."""
    with pytest.raises(CodecError, match=r"rejects .*schema\.xml.*nosuchtype") as caught:
        schema_of(tmp_path, jars["sbe-all"], '<field name="x" id="1" type="nosuchtype"/>')
    assert "\tat " not in str(caught.value)


def test_missing_requirements_are_reported(
    jars: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A missing schema, jar, crate or Java is a one-line error with the remedy."""
    with pytest.raises(ConfigurationError, match=r"missing\.xml: no such file"):
        compile_schema(tmp_path / "missing.xml", jars["sbe-all"])
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="run cargo fetch"):
        sbe_tool.find_schema_folder()
    monkeypatch.setenv("AEROTAPE_JARS", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"has no sbe-all-\*\.jar"):
        sbe_tool.find_sbe_jar()
    assert generate.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} has no sbe-all")
    assert not list(tmp_path.glob("*.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match="java not found: sbe-tool requires Java"):
        schema_of(tmp_path, jars["sbe-all"], "")
