"""Our codecs compared with Aeron's own Java codecs (archive schema version 13)."""

from __future__ import annotations

import struct
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.jvm.java_codecs import JavaCodecs, JavaField, JavaMessage, field_names, package

from aerotape.codecs.generated import archive, archive_removed, mark
from aerotape.codecs.runtime import Message

JAVA_ARCHIVE_VERSION = 13
MODULES = (archive, archive_removed, mark)
EVERY_MESSAGE = pytest.mark.parametrize(
    ("module", "kind"),
    [
        pytest.param(module, kind, id=kind.__name__)
        for module in MODULES
        for kind in module.MESSAGES.values()
    ],
)
BITS = {"byte": 8, "int": 32, "long": 64}
TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=300)


def values_of(module: ModuleType, field: JavaField, name: str) -> st.SearchStrategy[object]:
    """Any value of a field; None if it is optional."""
    if field.type == "text":
        return TEXT
    if field.type == "bytes":
        return st.binary(max_size=300)
    if field.type not in BITS:
        return st.sampled_from(list(getattr(module, field.type)))
    limit = 1 << (BITS[field.type] - 1)
    null = int(field.null)
    numbers = st.integers(-limit, limit - 1)
    # Null has the same encoding as the number; our codec returns None where None is possible.
    if field.since_version > 0 or null != -limit:
        return st.none() | numbers.filter(lambda number: number != null)
    return numbers


def messages_of(
    module: ModuleType, kind: type[Message], java: JavaMessage
) -> st.SearchStrategy[Message]:
    fields = {name: values_of(module, java.fields[name], name) for name in field_names(kind)}
    return st.builds(kind, **fields)


def telling(module: ModuleType, kind: type[Message], java: JavaMessage) -> Message:
    """A message whose fields all have different values, in every byte where possible."""
    values: dict[str, object] = {}
    for index, name in enumerate(field_names(kind), start=1):
        field = java.fields[name]
        if field.type in BITS:
            size = BITS[field.type] // 8
            pattern = bytes((16 * index + byte) % 256 for byte in range(size))
            values[name] = int.from_bytes(pattern, "little", signed=True)
        elif field.type == "text":
            values[name] = f"aeron:udp?endpoint=localhost:{40_000 + index}|alias={name}"
        elif field.type == "bytes":
            values[name] = bytes(range(index, 256))
        else:
            values[name] = list(getattr(module, field.type))[-1]
    return kind(**values)


def as_version(data: bytes, version: int) -> bytes:
    """The same message with another schema version in its header."""
    return data[:6] + struct.pack("<H", version) + data[8:]


@pytest.mark.parametrize("modules", [(archive, archive_removed), (mark,)], ids=["archive", "mark"])
def test_all_messages_and_fields_exist(
    java_codecs: JavaCodecs, modules: tuple[ModuleType, ...]
) -> None:
    """Each message of the Java codecs exists, with the same id, block length and field names."""
    java = java_codecs.messages(package(modules[0]))
    expected = {
        message.name: (message.template_id, message.block_length, set(message.fields))
        for message in java.values()
    }
    messages = {id_: kind for module in modules for id_, kind in module.MESSAGES.items()}
    ours = {
        kind.__name__: (template_id, kind.BLOCK_LENGTH, set(field_names(kind)))
        for template_id, kind in messages.items()
    }
    assert ours == expected
    assert {kind.TEMPLATE_ID for kind in messages.values()} == set(messages)


@EVERY_MESSAGE
def test_java_writes_the_same_bytes(
    java_codecs: JavaCodecs, module: ModuleType, kind: type[Message]
) -> None:
    """Each message equals the Java encoder's byte for byte, and both codecs read the other's."""
    java = java_codecs.messages(package(module))[kind.__name__]
    message = telling(module, kind, java)
    theirs = java_codecs.encode(module, message)
    assert as_version(message.encode(), java.schema_version).hex() == theirs.hex()
    assert module.decode(theirs) == message
    assert java_codecs.decode(module, kind, message.encode()) == java_codecs.printed(
        module, message
    )


@EVERY_MESSAGE
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_values_agree_with_java(
    java_codecs: JavaCodecs, module: ModuleType, kind: type[Message], data: st.DataObject
) -> None:
    """Any values, including limits and nulls, are exchanged between Java's codecs and ours."""
    java = java_codecs.messages(package(module))[kind.__name__]
    message = data.draw(messages_of(module, kind, java))
    encoded = message.encode()
    theirs = java_codecs.encode(module, message)
    assert as_version(encoded, java.schema_version) == theirs
    assert module.decode(theirs) == message
    assert module.decode(encoded) == message
    assert java_codecs.decode(module, kind, encoded) == java_codecs.printed(module, message)


def older(module: ModuleType, kind: type[Message], java: JavaMessage, version: int) -> bytes:
    """A message as a sender of an older version writes it: without newer fields."""
    message = telling(module, kind, java)
    whole = message.encode()
    fixed = [name for name in field_names(kind) if java.fields[name].type not in ("text", "bytes")]
    block_length = kind.BLOCK_LENGTH
    if module is not mark:  # the mark file's block has a fixed length, whatever the version
        for name in fixed:
            field = java.fields[name]
            if field.since_version > version:
                block_length -= BITS[field.type] // 8
    body = whole[8 : 8 + block_length]
    for name in field_names(kind):
        value = getattr(message, name)
        if name not in fixed and java.fields[name].since_version <= version:
            raw = value.encode("ascii") if isinstance(value, str) else value
            body += struct.pack("<I", len(raw)) + raw
    return struct.pack("<HHHH", block_length, kind.TEMPLATE_ID, kind.SCHEMA_ID, version) + body


@pytest.mark.parametrize("version", range(JAVA_ARCHIVE_VERSION + 1))
def test_messages_of_older_senders_are_read_as_by_java(
    java_codecs: JavaCodecs, version: int
) -> None:
    """For every older schema version, fields unknown to the sender are None, as null in Java."""
    absent = 0
    for module, kind in ((m, k) for m in MODULES for k in m.MESSAGES.values()):
        java = java_codecs.messages(package(module))[kind.__name__]
        data = older(module, kind, java, version)
        decoded = module.decode(data)
        assert java_codecs.decode(module, kind, data) == java_codecs.printed(module, decoded)
        # A message newer than the sender has no older form: its fields are as new as the message.
        first = min(field.since_version for field in java.fields.values())
        for name in field_names(kind):
            unknown = max(version, first) < java.fields[name].since_version
            assert (getattr(decoded, name) is None) == unknown, (kind.__name__, name)
            absent += unknown
    assert (absent > 0) == (version < 12)
