"""Random SBE schemas with a few random changes, most of which are mistakes."""

from __future__ import annotations

import random
from xml.etree import ElementTree

from support.builders.random_schema import random_schema

_ATTRIBUTES = (
    "name", "id", "type", "presence", "valueRef", "offset", "length", "nullValue", "minValue",
    "maxValue", "primitiveType", "encodingType", "sinceVersion", "blockLength", "dimensionType",
    "semanticType", "characterEncoding",
)  # fmt: skip
_VALUES = (
    "", "x", "0", "1", "-1", "3", "7", "9", "10", "255", "256", "70000", "99999999999", "1.5",
    "int8", "uint16", "uint64", "char", "double", "constant", "optional", "required", "E.V", "a b",
    "messageHeader", "groupSizeEncoding",
)  # fmt: skip


def mutated_schema(seed: int) -> str:
    """Return the text of a schema; the same for the same seed."""
    rng = random.Random(seed)
    ElementTree.register_namespace("sbe", "http://fixprotocol.io/2016/sbe")
    root = ElementTree.fromstring(random_schema(seed))
    for _ in range(rng.choice((1, 1, 2))):
        _change(root, rng)
    return ElementTree.tostring(root, encoding="unicode")


def _change(root: ElementTree.Element, rng: random.Random) -> None:
    elements = list(root.iter())
    parents = {child: parent for parent in elements for child in parent}
    names = [name for element in elements if (name := element.get("name"))]
    element = rng.choice(elements[1:])
    parent = parents[element]
    match rng.randrange(6):
        case 0 if element.attrib:
            del element.attrib[rng.choice(list(element.attrib))]
        case 1:
            element.set(rng.choice(_ATTRIBUTES), rng.choice((*_VALUES, *names[:30])))
        case 2:
            parent.remove(element)
        case 3:
            parent.append(element)
        case 4:
            element.text = rng.choice(_VALUES)
        case _:
            target = rng.choice(elements)
            if target not in element.iter():
                parent.remove(element)
                target.append(element)
