"""Schemas with one mistake each, and how the mistake is reported."""

from __future__ import annotations

from typing import NamedTuple

from support.builders.sbe_text import schema_text, var_data

# Precedes the element with the mistake.
HERE = "<!--here-->"
IDENTITY = 'package="test" id="1" version="9"'
TYPES = (
    var_data("text", "uint16")
    + '<enum name="Side" encodingType="uint8"><validValue name="BUY">1</validValue></enum>\n'
    + '<set name="Flags" encodingType="uint8"><choice name="LAST">0</choice></set>\n'
    + '<type name="Price" primitiveType="int64" semanticType="Price"/>\n'
    + '<composite name="Pair"><type name="a" primitiveType="int8"/></composite>\n'
)


class Case(NamedTuple):
    """A schema with one mistake."""

    types: str
    message: str
    expected: str
    """The element and the description."""
    accepted: bool = False
    """Whether sbe-tool accepts it, with a warning or without."""


def of_type(text: str, expected: str, *, accepted: bool = False) -> Case:
    return Case(f"\n{HERE}{text}", "", expected, accepted)


def of_part(text: str, expected: str, *, accepted: bool = False) -> Case:
    """The mistake is in the part of the message that follows `HERE`, or in the first part."""
    text = text if HERE in text else f"{HERE}{text}"
    return Case("", text, expected, accepted)


def of_dimensions(members: str, expected: str, *, accepted: bool = False) -> Case:
    types = f'<composite name="D">{members}</composite>'
    group = f'\n{HERE}<group name="g" id="1" dimensionType="D"/>'
    return Case(types, group, f'group "g": {expected}', accepted)


def of_data(members: str, expected: str, *, accepted: bool = False) -> Case:
    types = f'<composite name="V">{members}</composite>'
    data = f'\n{HERE}<data name="d" id="1" type="V"/>'
    return Case(types, data, f'data "d": {expected}', accepted)


def member(name: str, primitive: str, more: str = "") -> str:
    return f'<type name="{name}" primitiveType="{primitive}" {more}/>'


BYTES = member("varData", "uint8", 'length="0"')
BLOCK = member("blockLength", "uint16")
COUNT = member("numInGroup", "uint16")
F = '<field name="f" id="1" type="int32"/>'

CASES = {
    # Types.
    "no-name": of_type('<type primitiveType="int8"/>', "type: attribute name is missing"),
    "no-primitive": of_type('<type name="T"/>', 'type "T": attribute primitiveType is missing'),
    "primitive": of_type(
        '<type name="T" primitiveType="int7"/>',
        "type \"T\": primitiveType 'int7': expected char, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, float, double",
    ),
    "twice": Case(
        f'\n<type name="T" primitiveType="int8"/>\n{HERE}<set name="T" encodingType="uint8"/>', "",
        'set "T": the name is already declared at ', accepted=True,
    ),
    "presence": of_type(
        '<type name="T" primitiveType="int8" presence="some"/>',
        "type \"T\": presence 'some': expected required, optional, constant",
    ),
    "length": of_type(
        '<type name="T" primitiveType="int8" length="-1"/>',
        "type \"T\": length '-1': expected a number from 0 to 2147483647", accepted=True,
    ),
    "length-in-bytes": of_type(
        '<type name="T" primitiveType="int64" length="2147483647"/>',
        'type "T": length 2147483647: expected at most 2147483647 bytes', accepted=True,
    ),
    "maximum": of_type(
        '<type name="T" primitiveType="int8" maxValue="128"/>',
        "type \"T\": maxValue 128: expected a number from -128 to 127",
    ),
    "minimum": of_type(
        '<type name="T" primitiveType="int8" minValue="many"/>',
        "type \"T\": minValue 'many': expected an integer",
    ),
    "null": of_type(
        '<type name="T" primitiveType="char" presence="optional" nullValue="65"/>',
        "type \"T\": nullValue '65': expected one character of US-ASCII",
    ),
    "real": of_type(
        '<type name="T" primitiveType="float" maxValue="1_0"/>',
        "type \"T\": maxValue '1_0': expected a number",
    ),
    "large-real": of_type(
        '<type name="T" primitiveType="float" maxValue="1e39"/>',
        'type "T": maxValue 1e39: out of the range of float', accepted=True,
    ),
    "no-constant": of_type(
        '<type name="T" primitiveType="int8" presence="constant"/>',
        'type "T": presence is constant, but the element has no value',
    ),
    "large-constant": of_type(
        '<type name="T" primitiveType="uint8" presence="constant">256</type>',
        'type "T": value 256: expected a number from 0 to 255', accepted=True,
    ),
    "long-constant": of_type(
        '<type name="T" primitiveType="char" length="2" presence="constant">EUR</type>',
        "type \"T\": value 'EUR' is longer than length 2",
    ),
    "encoding": of_type(
        '<type name="T" primitiveType="char" length="2" characterEncoding="EBCD" '
        'presence="constant">EU</type>',
        "type \"T\": characterEncoding 'EBCD' is not known",
    ),
    "characters": of_type(
        '<type name="T" primitiveType="char" length="2" presence="constant">é</type>',
        "type \"T\": value 'é': expected characters of US-ASCII", accepted=True,
    ),
    "reference-without-constant": of_type(
        '<type name="T" primitiveType="uint8" valueRef="Side.BUY"/>',
        'type "T": valueRef needs presence constant',
    ),
    "reference-of-another-size": of_type(
        '<type name="T" primitiveType="int8" presence="constant" valueRef="Side.BUY"/>',
        "type \"T\": valueRef 'Side.BUY': enum of uint8, the type is int8",
    ),
    "type-since": of_type(
        '<type name="T" primitiveType="int8" sinceVersion="10"/>',
        'type "T": sinceVersion 10 is greater than the version of the schema, 9',
    ),
    "deprecated": of_type(
        '<type name="T" primitiveType="int8" deprecated="soon"/>',
        "type \"T\": deprecated 'soon': expected a number from 0 to 2147483647",
    ),
    # Enums and sets.
    "enum-encoding": of_type(
        '<enum name="E" encodingType="int64"/>',
        "enum \"E\": encodingType 'int64': expected char, uint8, uint16, uint32, uint64, int8, "
        "int16, int32 or a simple type",
    ),
    "enum-of-array": Case(
        f'<type name="T" primitiveType="uint8" length="2"/>\n{HERE}'
        '<enum name="E" encodingType="T"/>', "",
        "enum \"E\": encodingType 'T': type \"T\" is not a single integer",
    ),
    "enum-of-unknown": of_type(
        '<enum name="E" encodingType="X"/>',
        'enum "E": type "X" is not defined: declare it in types',
    ),
    "value": Case(
        f'<enum name="E" encodingType="uint8">\n{HERE}<validValue name="A">x</validValue></enum>',
        "", "validValue \"A\": value 'x': expected an integer",
    ),
    "no-value": Case(
        f'<enum name="E" encodingType="uint8">\n{HERE}<validValue name="A"/></enum>',
        "", "validValue \"A\": value '': expected an integer",
    ),
    "value-of-null": Case(
        f'<enum name="E" encodingType="uint8">\n{HERE}<validValue name="A">255</validValue></enum>',
        "", 'validValue "A": value 255 is the null value of the enum',
    ),
    "value-out-of-range": Case(
        '<type name="T" primitiveType="uint8" maxValue="5"/><enum name="E" encodingType="T">\n'
        f'{HERE}<validValue name="A">6</validValue></enum>',
        "", 'validValue "A": value 6: expected one from 0 to 5',
    ),
    "large-value": Case(
        f'<enum name="E" encodingType="uint8">\n{HERE}<validValue name="A">256</validValue></enum>',
        "", 'validValue "A": value 256: expected a number from 0 to 255',
    ),
    "value-since": Case(
        '<enum name="E" encodingType="uint8">\n'
        f'{HERE}<validValue name="A" sinceVersion="10">1</validValue></enum>',
        "", 'validValue "A": sinceVersion 10 is greater than the version of the schema, 9',
    ),
    "value-twice": Case(
        '<enum name="E" encodingType="uint8"><validValue name="A">1</validValue>\n'
        f'{HERE}<validValue name="A">2</validValue></enum>',
        "", 'validValue "A": enum "E" has this name or value twice', accepted=True,
    ),
    "set-encoding": of_type(
        '<set name="S" encodingType="int8"/>',
        "set \"S\": encodingType 'int8': expected uint8, uint16, uint32, uint64 or a simple type",
    ),
    "bit": Case(
        f'<set name="S" encodingType="uint8">\n{HERE}<choice name="A">8</choice></set>', "",
        'choice "A": bit 8: expected a number from 0 to 7',
    ),
    "bit-twice": Case(
        '<set name="S" encodingType="uint8"><choice name="A">1</choice>\n'
        f'{HERE}<choice name="B">1</choice></set>', "",
        'choice "B": set "S" has this name or bit twice', accepted=True,
    ),
    # Composites.
    "member-offset": Case(
        f'<composite name="C"><type name="a" primitiveType="int32"/>\n{HERE}'
        '<type name="b" primitiveType="int8" offset="3"/></composite>', "",
        'type "b": offset 3: the preceding members end at 4',
    ),
    "member-twice": Case(
        f'<composite name="C"><type name="a" primitiveType="int32"/>\n{HERE}'
        '<ref name="a" type="Side"/></composite>', "",
        'ref "a": composite "C" already has a member of that name',
    ),
    "reference": Case(
        f'<composite name="C">\n{HERE}<ref name="a" type="int8"/></composite>', "",
        'ref "a": type "int8" is not defined: declare it in types',
    ),
    "circle": Case(
        f'<composite name="C"><ref name="a" type="D"/></composite><composite name="D">\n{HERE}'
        '<ref name="b" type="C"/></composite>', "",
        'ref "b": refers to itself: C, D, C',
    ),
    "group-in-composite": Case(
        f'<composite name="C">\n{HERE}<group name="g" id="1"/></composite>', "",
        'group "g": a composite cannot contain group',
    ),
    # Fields.
    "field-type": of_part(
        '<field name="f" id="1" type="Decimal9"/>',
        'field "f": type "Decimal9" is not defined: declare it in types',
    ),
    "field-without-type": of_part(
        '<field name="f" id="1"/>', 'field "f": attribute type is missing'
    ),
    "field-without-id": of_part(
        '<field name="f" type="int8"/>', 'field "f": attribute id is missing'
    ),
    "field-name": of_part(
        f'{F}\n{HERE}<field name="f" id="2" type="int8"/>',
        'field "f": message "M" has this name twice',
    ),
    "field-id": of_part(
        f'{F}\n{HERE}<group name="g" id="1"/>', 'group "g": id 1 is already that of "f"'
    ),
    "field-offset": of_part(
        f'{F}\n{HERE}<field name="g" id="2" type="int8" offset="2"/>',
        'field "g": offset 2: the preceding fields end at 4',
    ),
    "field-since": of_part(
        '<field name="f" id="1" type="int8" sinceVersion="12"/>',
        'field "f": sinceVersion 12 is greater than the version of the schema, 9',
    ),
    "semantic-type": of_part(
        '<field name="f" id="1" type="Price" semanticType="Qty"/>',
        "field \"f\": semanticType 'Qty' is not that of its type, 'Price'",
    ),
    "field-after-group": of_part(
        f'<group name="g" id="2"/>\n{HERE}{F}',
        'field "f": follows group: expected all fields, then all groups, then all data',
    ),
    "group-after-data": of_part(
        f'<data name="d" id="2" type="text"/>\n{HERE}<group name="g" id="3"/>',
        'group "g": follows data: expected all fields, then all groups, then all data',
    ),
    "constant-enum": of_part(
        '<field name="f" id="1" type="Side" presence="constant"/>',
        'field "f": presence is constant: expected a valueRef, or a type that is constant',
    ),
    "constant-number": of_part(
        '<field name="f" id="1" type="Price" presence="constant"/>',
        'field "f": presence is constant: expected a valueRef, or a type that is constant',
    ),
    "constant-composite": of_part(
        '<field name="f" id="1" type="Pair" presence="constant"/>',
        'field "f": presence is constant: expected a valueRef, or a type that is constant',
        accepted=True,
    ),
    "value-reference": of_part(
        '<field name="f" id="1" type="Side" presence="constant" valueRef="Side.HOLD"/>',
        "field \"f\": valueRef 'Side.HOLD': enum \"Side\" has no value \"HOLD\"",
    ),
    "value-reference-to-set": of_part(
        '<field name="f" id="1" type="uint8" presence="constant" valueRef="Flags.LAST"/>',
        "field \"f\": valueRef 'Flags.LAST': type \"Flags\" is not an enum",
    ),
    "value-reference-without-value": of_part(
        '<field name="f" id="1" type="Side" presence="constant" valueRef="BUY"/>',
        "field \"f\": valueRef 'BUY': expected ENUM.VALUE",
    ),
    "value-reference-of-another-type": of_part(
        '<field name="f" id="1" type="uint16" presence="constant" valueRef="Side.BUY"/>',
        "field \"f\": valueRef 'Side.BUY' is not a value of the field's type",
    ),
    # Groups and data.
    "group-block": of_part(
        f'<group name="g" id="2" blockLength="3">{F}</group>',
        'group "g": blockLength 3 is too small: the fields have 4 bytes',
    ),
    "no-dimensions": of_part(
        '<group name="g" id="2" dimensionType="X"/>',
        'group "g": type "X" is not defined: declare it in types',
    ),
    "dimensions": of_part(
        '<group name="g" id="2" dimensionType="Side"/>',
        'group "g": type "Side" is not a composite: expected one with blockLength and numInGroup',
    ),
    "no-block-length": of_dimensions(COUNT, 'composite "D" has no member "blockLength"'),
    "no-count": of_dimensions(BLOCK, 'composite "D" has no member "numInGroup"'),
    "signed-block-length": of_dimensions(
        member("blockLength", "int16") + COUNT,
        '"blockLength" is int16: expected an unsigned number',
    ),
    "signed-count": of_dimensions(
        BLOCK + member("numInGroup", "int16"),
        '"numInGroup" of composite "D" is int16: expected a minValue of 0 or more, or an unsigned '
        "number",
    ),
    "large-count": of_dimensions(
        BLOCK + member("numInGroup", "uint32"),
        '"numInGroup" has 32 bits: expected a maxValue of at most 2147483647',
    ),
    "count-of-64-bits": of_dimensions(
        BLOCK + member("numInGroup", "uint64", 'maxValue="9"'),
        '"numInGroup" is uint64: expected at most 32 bits',
    ),
    "maximum-of-count": of_dimensions(
        BLOCK + member("numInGroup", "uint8", 'maxValue="255"'),
        '"numInGroup": maxValue 255 is greater than 254',
    ),
    "minimum-of-count": of_dimensions(
        BLOCK + member("numInGroup", "uint8", 'minValue="3" maxValue="2"'),
        '"numInGroup" of composite "D": minValue 3 is greater than maxValue 2',
    ),
    "field-of-variable-length": of_part(
        '<field name="f" id="1" type="text"/>',
        'field "f": type "text" has variable length: expected it in data', accepted=True,
    ),
    "data-type": of_part(
        '<data name="d" id="2" type="uint8"/>',
        'data "d": type "uint8" is not a composite: expected one with length and varData',
    ),
    "optional-data": of_part(
        '<data name="d" id="2" type="text" presence="optional"/>',
        'data "d": presence of data cannot be optional: an absent value has length 0',
    ),
    "no-length": of_data(BYTES, 'composite "V" has no member "length"'),
    "no-data": of_data(member("length", "uint8"), 'composite "V" has no member "varData"'),
    "signed-length": of_data(
        member("length", "int8") + BYTES, '"length" is int8: expected an unsigned number'
    ),
    "large-length": of_data(
        member("length", "uint32", 'maxValue="2147483648"') + BYTES,
        '"length": maxValue 2147483648 is greater than 2147483647',
    ),
    "array-as-length": of_data(
        member("length", "uint8", 'length="2"') + BYTES,
        '"length" of composite "V": expected a single integer that is not constant',
        accepted=True,
    ),
    "data-before-length": of_data(
        BYTES + member("length", "uint8"), '"varData" of composite "V" precedes "length"',
        accepted=True,
    ),
}  # fmt: skip

MESSAGE = '<sbe:message name="M" id="1">%s</sbe:message>'
OF_SCHEMA = {
    "block": (
        ('<sbe:message name="M" id="1">', '<sbe:message name="M" id="1" blockLength="3">' + F),
        '16: message "M": blockLength 3 is too small: the fields have 4 bytes', False,
    ),
    "message-id": (
        ("</sbe:messageSchema>", '<sbe:message name="N" id="1"/></sbe:messageSchema>'),
        '17: message "N": id 1 is already that of "M"', False,
    ),
    "message-name": (
        ("</sbe:messageSchema>", '<sbe:message name="M" id="2"/></sbe:messageSchema>'),
        '17: message "M": the schema has this name twice', False,
    ),
    "message-without-id": (
        ('name="M" id="1"', 'name="M"'), '16: message "M": attribute id is missing', False
    ),
    "message-since": (
        ('name="M" id="1"', 'name="M" id="1" sinceVersion="10"'),
        '16: message "M": sinceVersion 10 is greater than the version of the schema, 9', False,
    ),
    "negative-id": (
        ('name="M" id="1"', 'name="M" id="-1"'),
        "16: message \"M\": id '-1': expected a number from 0 to 2147483647", True,
    ),
    "package": (
        ('package="test"', ""), "2: messageSchema: attribute package is missing", False
    ),
    "schema-id": ((' id="1" v', " v"), "2: messageSchema: attribute id is missing", False),
    "version": (
        ('version="9"', 'version="one"'),
        "2: messageSchema: version 'one': expected a number from 0 to 2147483647", False,
    ),
    "byte-order": (
        ("littleEndian", "middle"),
        "2: messageSchema: byteOrder 'middle': expected littleEndian or bigEndian", True,
    ),
    "header": (
        ("<sbe:messageSchema", '<sbe:messageSchema headerType="Head"'),
        '2: messageSchema: type "Head" is not defined: declare it in types', False,
    ),
    "header-without-version": (
        ('<type name="version" primitiveType="uint16"/>', ""),
        '2: messageSchema: composite "messageHeader" has no member "version"', False,
    ),
    "header-with-signed-block-length": (
        ('"blockLength" primitiveType="uint16"', '"blockLength" primitiveType="int16"'),
        '2: messageSchema: "blockLength" is int16: expected an unsigned number', False,
    ),
    "constant-in-header": (
        ('<type name="version" primitiveType="uint16"/>',
         '<type name="version" primitiveType="uint16" presence="constant">9</type>'),
        '2: messageSchema: "version" of composite "messageHeader": expected a single integer that '
        "is not constant", True,
    ),
    "another-document": (
        ("messageSchema", "schema"), "2: schema: expected messageSchema, an SBE schema", False
    ),
    "not-xml": (("</types>", "</typos>"), "15: not well-formed XML: mismatched tag", False),
}  # fmt: skip


def text_of(case: Case) -> str:
    return schema_text(IDENTITY, types=TYPES + case.types, messages=MESSAGE % case.message)


def text_of_schema(name: str) -> str:
    (old, new), _, _ = OF_SCHEMA[name]
    text = schema_text(
        IDENTITY, types='<type name="T" primitiveType="int8"/>', messages=MESSAGE % ""
    )
    assert old in text
    return text.replace(old, new)
