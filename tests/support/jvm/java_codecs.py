"""Aeron's SBE codecs in a Java process that encodes and decodes on request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from types import ModuleType

from aerotape.codecs.runtime import Message
from aerotape.context import Closing
from support.jvm.java import AERON_ALL, find_jar, java_command
from support.processes import ChildProcess

PROGRAM = Path(__file__).resolve().parents[2] / "codecs" / "java" / "CodecBridge.java"
_TIMEOUT_S = 60.0
FieldValue = int | str | bytes | None


class JavaCodecError(Exception):
    """An exception of the Java codecs."""


@dataclasses.dataclass(frozen=True)
class JavaField:
    """A field of the Java codecs; `type` is long, int, byte, text, bytes or an enum."""

    name: str
    type: str
    null: str
    since_version: int


@dataclasses.dataclass(frozen=True)
class JavaMessage:
    """A message of the Java codecs, its fields by our names."""

    name: str
    template_id: int
    block_length: int
    schema_version: int
    fields: Mapping[str, JavaField]


class JavaCodecs(Closing):
    """A running `CodecBridge`; its process ends with `close` and when our side of stdin ends."""

    def __init__(self) -> None:
        self._process = ChildProcess(java_command(str(PROGRAM)))
        self._messages: dict[str, dict[str, JavaMessage]] = {}

    def close(self) -> None:
        """End the process."""
        self._process.stop()

    def messages(self, package: str) -> dict[str, JavaMessage]:
        """Return all messages of a Java package of codecs, by name."""
        if package not in self._messages:
            answer = self._ask("describe", str(find_jar(AERON_ALL)), package)
            described = map(_message, answer.split("\t"))
            self._messages[package] = {message.name: message for message in described}
        return self._messages[package]

    def encode(self, module: ModuleType, message: Message) -> bytes:
        """Encode `message` with Java; None becomes Java's null value."""
        described = self.messages(package(module))[type(message).__name__]
        values = [
            f"{described.fields[name].name}={_text(value, described.fields[name])}"
            for name, value in field_values(message).items()
        ]
        return bytes.fromhex(self._ask("encode", package(module), described.name, *values))

    def decode(self, module: ModuleType, kind: type[Message], data: bytes) -> list[str]:
        """Decode with Java; return the fields' values as Java prints them (data as hex)."""
        described = self.messages(package(module))[kind.__name__]
        names = [described.fields[name].name for name in field_names(kind)]
        return self._ask("decode", package(module), described.name, data.hex(), *names).split("\t")[
            1:
        ]

    def printed(self, module: ModuleType, message: Message) -> list[str]:
        """Return our fields' values as `decode` would print the same ones."""
        described = self.messages(package(module))[type(message).__name__]
        return [
            _text(value, described.fields[name]) for name, value in field_values(message).items()
        ]

    def _ask(self, *parts: str) -> str:
        self._process.send("\t".join(parts))
        answer = self._process.receive(_TIMEOUT_S)
        if answer.startswith("!"):
            raise JavaCodecError(f"{parts[:3]}: {answer}")
        return answer


def package(module: ModuleType) -> str:
    """Return the Java package that corresponds to a generated module of ours."""
    packages = {
        "archive": "io.aeron.archive.codecs",
        "archive_removed": "io.aeron.archive.codecs",
        "mark": "io.aeron.archive.codecs.mark",
    }
    return packages[module.__name__.rpartition(".")[2]]


def field_names(kind: type[Message]) -> list[str]:
    """Return the names of a message's fields, in the order of the wire."""
    return list(kind.__match_args__)


def field_values(message: Message) -> dict[str, FieldValue]:
    """Return a message's fields by name, in the order of the wire."""
    return {name: getattr(message, name) for name in field_names(type(message))}


def _message(text: str) -> JavaMessage:
    name, template_id, block_length, version, fields = text.split(":")
    described = (field.split("/") for field in fields.split(","))
    return JavaMessage(
        name,
        int(template_id),
        int(block_length),
        int(version),
        {_snake(f): JavaField(f, kind, null, int(since)) for f, kind, null, since in described},
    )


def _snake(name: str) -> str:
    # Not the generator's function, so that wrong names are detected.
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _text(value: FieldValue, field: JavaField) -> str:
    match value:
        case None:
            return field.null
        case IntEnum():
            return value.name
        case str():
            return value.encode("ascii").hex()
        case bytes():
            return value.hex()
        case _:
            return str(value)
