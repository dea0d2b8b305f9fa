"""Random valid SBE schemas as text, with all constructs in random combinations."""

from __future__ import annotations

import random
from xml.sax.saxutils import quoteattr

from support.builders.sbe_text import schema_text, var_data

VERSION = 9
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_INTEGERS = (*_BITS, *(f"u{name}" for name in _BITS))
_PRIMITIVES = (*_INTEGERS, "char", "float", "double")
_SIZES = {name: int(name.strip("uint")) // 8 for name in _INTEGERS}
_SIZES |= {"char": 1, "float": 4, "double": 8}


def random_schema(seed: int) -> str:
    """Return the text of a schema; the same for the same seed."""
    return _Generator(random.Random(seed)).schema()


class _Generator:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._count = 0
        # Names by kind; those of constant types, which fields have without a presence.
        self._types: list[str] = []
        self._constants: list[str] = []
        self._sets: list[str] = []
        self._composites: list[str] = []
        self._dimensions = ["groupSizeEncoding"]
        self._data: list[str] = []
        # The primitive type and the values of each enum.
        self._enums: dict[str, tuple[str, list[str]]] = {}

    def schema(self) -> str:
        rng = self._rng
        order = rng.choice(("littleEndian", "bigEndian"))
        types = [self._enum(top=True) for _ in range(rng.randint(1, 4))]
        types += [self._set(top=True) for _ in range(rng.randint(1, 3))]
        types += [self._type(top=True) for _ in range(rng.randint(2, 8))]
        types += [self._composite(top=True) for _ in range(rng.randint(1, 5))]
        types += [self._dimension_type() for _ in range(rng.randint(0, 2))]
        types += [self._data_type() for _ in range(rng.randint(1, 3))]
        rng.shuffle(types)
        identity = f'package="random.p" id="{rng.randint(0, 65535)}" version="{VERSION}"'
        if rng.random() < 0.3:
            name = self._name("Header")
            types.append(self._header(name))
            identity += f' headerType="{name}"'
        messages = [self._message(number) for number in range(rng.randint(1, 4))]
        return schema_text(
            identity, types="\n".join(types), messages="\n".join(messages), byte_order=order
        )

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _attributes(self, **given: object) -> str:
        """The given ones that are not None, and some that do not matter to the wire."""
        rng = self._rng
        given |= {"description": rng.choice((None, None, "a <b> & c"))}
        given |= {"unknown": rng.choice((None, None, "x"))}
        given |= {"deprecated": rng.choice((None, None, None, VERSION))}
        items = [(name, value) for name, value in given.items() if value is not None]
        rng.shuffle(items)
        return " ".join(f"{name}={quoteattr(str(value))}" for name, value in items)

    def _since(self) -> int | None:
        since: int | None = self._rng.choice((None, None, None, *range(VERSION + 1)))
        return since

    def _integer(self, primitive: str) -> int:
        bits = 8 * _SIZES[primitive]
        if primitive.startswith("u"):
            return self._rng.choice((0, 1, (1 << bits) - 2, self._rng.getrandbits(bits - 1)))
        half = 1 << (bits - 1)
        return self._rng.choice((-half + 1, half - 1, -1, self._rng.randrange(half)))

    def _value(self, primitive: str) -> str:
        if primitive == "char":
            return chr(self._rng.randint(0x21, 0x7E))
        if primitive in ("float", "double"):
            return self._rng.choice(("0", "-1.5", "1e3", "NaN", str(self._rng.uniform(-9, 9))))
        return str(self._integer(primitive))

    def _type(self, *, top: bool = False, offset: int | None = None) -> str:
        rng = self._rng
        name = self._name("Type")
        primitive = rng.choice(_PRIMITIVES)
        presence = rng.choice((None, "required", "optional", "optional", "constant"))
        length = rng.choice((None, None, 1, 2, 7))
        null = least = most = reference = None
        text = ""
        if rng.random() < (0.5 if presence == "optional" else 0.1):
            null = self._value(primitive)
        if rng.random() < 0.3:
            least = self._value(primitive)
        if rng.random() < 0.3:
            most = self._value(primitive)
        if presence == "constant":
            text = self._value(primitive)
            if primitive == "char" and (length is None or length > 1):
                length = rng.choice((None, 9))
                text = rng.choice(("EUR", "a b ", "x"))
            same = [enum for enum, (kind, _) in self._enums.items() if kind == primitive]
            if same and rng.random() < 0.5:
                enum = rng.choice(same)
                reference = f"{enum}.{rng.choice(self._enums[enum][1])}"
                text, length = "", None
        encoding = rng.choice((None, None, "UTF-8", " ISO-8859-1", "US-ASCII"))
        attributes = self._attributes(
            name=name, primitiveType=primitive, presence=presence, length=length, nullValue=null,
            minValue=least, maxValue=most, valueRef=reference, characterEncoding=encoding,
            sinceVersion=self._since(), offset=rng.choice((None, 3)) if top else offset,
            semanticType=rng.choice((None, "Price")),
        )  # fmt: skip
        if top:
            (self._constants if presence == "constant" else self._types).append(name)
        return f"<type {attributes}>{quoteattr(text)[1:-1]}</type>"

    def _enum(self, *, top: bool = False, offset: int | None = None) -> str:
        rng = self._rng
        name = self._name("Enum")
        primitive = rng.choice(("char", "uint8", "int8", "uint16", "int16", "int32", "uint32"))
        backing, before = primitive, ""
        null = rng.choice((None, None, "!" if primitive == "char" else "77"))
        if primitive == "uint32" or (top and rng.random() < 0.3):
            backing = self._name("Backing")
            if not top:
                return self._set(offset=offset)
            presence = rng.choice((None, "optional"))
            of_type = "?" if primitive == "char" else "78"
            attributes = self._attributes(
                name=backing, primitiveType=primitive, presence=presence,
                nullValue=rng.choice((None, of_type)),
            )  # fmt: skip
            before = f"<type {attributes}/>\n"
        taken = {"!", "?", "77", "78"}
        values: dict[str, str] = {}
        for _ in range(rng.randint(1, 5)):
            value = self._value(primitive)
            if value not in taken:
                taken.add(value)
                values[self._name("Value")] = value
        attributes = self._attributes(
            name=name, encodingType=backing, sinceVersion=self._since(), nullValue=null,
            presence=rng.choice((None, None, "optional")), offset=offset,
        )  # fmt: skip
        if top and values:
            self._enums[name] = (primitive, list(values))
        inner = "".join(
            f"<validValue {self._attributes(name=each, sinceVersion=self._since())}>"
            f"{quoteattr(value)[1:-1] if value != chr(34) else value}</validValue>"
            for each, value in values.items()
        )
        return f"{before}<enum {attributes}>{inner}</enum>"

    def _set(self, *, top: bool = False, offset: int | None = None) -> str:
        rng = self._rng
        name = self._name("Set")
        primitive = rng.choice(("uint8", "uint16", "uint32", "uint64"))
        bits = rng.sample(range(8 * _SIZES[primitive]), rng.randint(1, 6))
        attributes = self._attributes(
            name=name, encodingType=primitive, sinceVersion=self._since(), offset=offset
        )
        if top:
            self._sets.append(name)
        inner = "".join(
            f"<choice {self._attributes(name=self._name('bit'))}>{bit}</choice>" for bit in bits
        )
        return f"<set {attributes}>{inner}</set>"

    def _composite(self, depth: int = 0, *, top: bool = False, offset: int | None = None) -> str:
        rng = self._rng
        name = self._name("Composite")
        end = 0
        members = []
        for _ in range(rng.randint(1, 5)):
            # Far enough apart for what precedes it, of which the size is not computed here.
            place = None
            if depth == 0 and rng.random() < 0.2:
                end += 5_000
                place = end
            members.append(self._member(depth, place))
        attributes = self._attributes(
            name=name, sinceVersion=self._since(), offset=offset,
            presence=rng.choice((None, None, None, "optional")),
        )  # fmt: skip
        if top:
            self._composites.append(name)
        return f"<composite {attributes}>{''.join(members)}</composite>"

    def _member(self, depth: int, offset: int | None) -> str:
        rng = self._rng
        kind = rng.choice(("type", "type", "enum", "set", "ref", "ref", "composite"))
        if kind == "composite" and depth < 2:
            return self._composite(depth + 1, offset=offset)
        if kind == "ref":
            referable = (*self._enums, *self._sets, *self._composites)
            attributes = self._attributes(
                name=self._name("ref"), type=rng.choice(referable), offset=offset,
                sinceVersion=self._since(), presence=rng.choice((None, "optional")),
            )  # fmt: skip
            return f"<ref {attributes}/>"
        if kind == "enum":
            return self._enum(offset=offset)
        return self._set(offset=offset) if kind == "set" else self._type(offset=offset)

    def _header(self, name: str) -> str:
        names = ["blockLength", "templateId", "schemaId", "version", "extra"]
        self._rng.shuffle(names)
        primitives = ("uint8", "uint16", "uint32")
        members = "".join(
            f'<type name="{each}" primitiveType="{self._rng.choice(primitives)}"/>'
            for each in names
        )
        return f'<composite name="{name}">{members}</composite>'

    def _dimension_type(self) -> str:
        rng = self._rng
        name = self._name("Dimensions")
        self._dimensions.append(name)
        count = rng.choice(
            ('"uint8"', '"uint16" maxValue="9"', '"uint32" maxValue="99"', '"int16" minValue="0"')
        )
        members = [
            f'<type name="blockLength" primitiveType="{rng.choice(("uint8", "uint16"))}"/>',
            f'<type name="numInGroup" primitiveType={count}/>',
            '<type name="numGroups" primitiveType="uint16"/>',
        ]
        rng.shuffle(members)
        since = self._attributes(name=name, sinceVersion=self._since())
        return f"<composite {since}>{''.join(members)}</composite>"

    def _data_type(self) -> str:
        rng = self._rng
        name = self._name("data")
        self._data.append(name)
        length = rng.choice(("uint8", "uint16", "uint32"))
        most = 1_000 if length == "uint32" else rng.choice((None, 100))
        text = var_data(name, length, rng.choice(("", "UTF-8", "US-ASCII")), most)
        return text.replace(
            "<composite", f"<composite {self._attributes(sinceVersion=self._since())}"
        )

    def _message(self, number: int) -> str:
        attributes = self._attributes(
            name=self._name("Message"), id=number, sinceVersion=self._since(),
            blockLength=self._rng.choice((None, None, 100_000_000)), semanticType="X",
        )  # fmt: skip
        return f"<sbe:message {attributes}>{self._body()}</sbe:message>"

    def _body(self, depth: int = 0) -> str:
        rng = self._rng
        parts = []
        at = 0
        for _ in range(rng.randint(0, 6)):
            offset = None
            if rng.random() < 0.15:
                at += 1_000_000
                offset = at
            parts.append(self._field(offset))
        for _ in range(rng.choice((0, 0, 1, 2)) if depth < 3 else 0):
            attributes = self._attributes(
                name=self._name("group"), id=self._count, sinceVersion=self._since(),
                dimensionType=rng.choice((None, *self._dimensions)),
                blockLength=rng.choice((None, None, 90_000_000)),
            )  # fmt: skip
            parts.append(f"<group {attributes}>{self._body(depth + 1)}</group>")
        for _ in range(rng.choice((0, 0, 1, 2))):
            attributes = self._attributes(
                name=self._name("data"), id=self._count, sinceVersion=self._since(),
                type=rng.choice(self._data),
            )  # fmt: skip
            parts.append(f"<data {attributes}/>")
        return "<unknown/>" + "".join(parts)

    def _field(self, offset: int | None) -> str:
        rng = self._rng
        presence = rng.choice((None, None, "required", "optional"))
        reference = None
        plain = (*_PRIMITIVES, *self._types, *self._sets, *self._composites, *self._enums)
        kind = rng.choice(plain)
        if rng.random() < 0.2 and self._constants:
            kind, presence = rng.choice(self._constants), None
        elif rng.random() < 0.2 and self._enums:
            enum = rng.choice(list(self._enums))
            primitive, values = self._enums[enum]
            reference = f"{enum}.{rng.choice(values)}"
            kind, presence = rng.choice((enum, primitive)), "constant"
        attributes = self._attributes(
            name=self._name("field"), id=self._count, type=kind, presence=presence,
            valueRef=reference, sinceVersion=self._since(), offset=offset,
            epoch=rng.choice((None, "unix")),
            timeUnit=rng.choice((None, None, "nanosecond", "microsecond")),
        )  # fmt: skip
        return f"<field {attributes}/>"
