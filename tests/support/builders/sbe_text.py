"""SBE schemas as text, with the common parts, so that tests contain only their own types."""

from __future__ import annotations

_SCHEMA = """\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" {identity} byteOrder="{byte_order}">
  <types>
    <composite name="messageHeader">
      <type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/>
      <type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/>
    </composite>
    <composite name="groupSizeEncoding">
      <type name="blockLength" primitiveType="uint16"/>
      <type name="numInGroup" primitiveType="{num_in_group}"/>
    </composite>
{types}
  </types>
{messages}
</sbe:messageSchema>
"""


def schema_text(
    identity: str,
    *,
    types: str,
    messages: str,
    byte_order: str = "littleEndian",
    num_in_group: str = "uint16",
) -> str:
    """Return a schema with the usual header and group size, and the given types and messages.

    Args:
        identity: the attributes package, id, version, and optional others.
    """
    return _SCHEMA.format(
        identity=identity,
        byte_order=byte_order,
        num_in_group=num_in_group,
        types=types,
        messages=messages,
    )


def var_data(name: str, length: str, encoding: str = "", most: int | None = None) -> str:
    """Return the type of variable data, with the types of its length and of its characters, if
    any."""
    maximum = "" if most is None else f' maxValue="{most}"'
    characters = f' characterEncoding="{encoding}"' if encoding else ""
    return f"""\
    <composite name="{name}">
      <type name="length" primitiveType="{length}"{maximum}/>
      <type name="varData" primitiveType="uint8" length="0"{characters}/>
    </composite>
"""
