"""128-bit ids of ledgers: a scope and an id within it, 64 bits each.

Names, paths and keys show both halves as unsigned numbers; int64 fields of Java, Parquet and SBE
hold their two's complement. Scope 0 is the default scope: ids there are those of systems that know
only signed 64-bit ids, so they are at most 2^63-1.
"""

from __future__ import annotations

import operator
import re
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath

from aerotape.errors import QualifiedIdError

MAX_UNSIGNED = (1 << 64) - 1
MAX_UNSCOPED = (1 << 63) - 1

_HEX = "[0-9a-fA-F]"
_NAME = re.compile(f"{_HEX}{{32}}|{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")


@dataclass(frozen=True, order=True, slots=True)
class QualifiedId:
    """The qualified id of a ledger; ordered by scope, then by ledger id, both unsigned.

    `str()` is the qualified name, 32 lower-case hexadecimal digits.

    Attributes:
        scope_id: the high 64 bits, 0 to 2^64-1.
        ledger_id: the low 64 bits, 0 to 2^64-1, or to 2^63-1 in scope 0.
    """

    scope_id: int
    ledger_id: int

    def __post_init__(self) -> None:
        for field in ("scope_id", "ledger_id"):
            name, value = field.replace("_", " "), operator.index(getattr(self, field))
            object.__setattr__(self, field, value)
            if not 0 <= value <= MAX_UNSIGNED:
                raise QualifiedIdError(f"{name} {value} is not an unsigned 64-bit number")
        if self.scope_id == 0 and self.ledger_id > MAX_UNSCOPED:
            raise QualifiedIdError(
                f"ledger id {self.ledger_id} is too large for scope 0: the largest is 2^63-1; "
                "use another scope"
            )

    @classmethod
    def parse(cls, text: str) -> QualifiedId:
        """Return the id with a qualified name.

        Args:
            text: 32 hexadecimal digits in either case, or a UUID with dashes.

        Raises:
            QualifiedIdError: `text` is neither, or not an id of scope 0.
        """
        if _NAME.fullmatch(text) is None:
            raise QualifiedIdError(
                f"{text!r} is not a qualified name: expected 32 hexadecimal digits or a UUID"
            )
        return cls.from_key(bytes.fromhex(text.replace("-", "")))

    @classmethod
    def generate(cls) -> QualifiedId:
        """Return a new random id, the halves of a UUID of version 4; never in scope 0."""
        return cls.from_key(uuid.uuid4().bytes)

    @classmethod
    def from_key(cls, key: bytes) -> QualifiedId:
        """Return the id whose `key` this is.

        Raises:
            QualifiedIdError: `key` is not 16 bytes long, or not an id of scope 0.
        """
        if len(key) != 16:
            raise QualifiedIdError(f"key {key.hex()} has {len(key)} bytes instead of 16")
        return cls(int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big"))

    @classmethod
    def from_signed(cls, scope_id: int, ledger_id: int) -> QualifiedId:
        """Return the id whose halves int64 fields hold as these numbers.

        Raises:
            QualifiedIdError: a number is not a signed 64-bit number, or `ledger_id` is negative
                in scope 0.
        """
        for name, value in (("scope id", scope_id), ("ledger id", ledger_id)):
            if not -MAX_UNSCOPED - 1 <= value <= MAX_UNSCOPED:
                raise QualifiedIdError(f"{name} {value} is not a signed 64-bit number")
        if scope_id == 0 and ledger_id < 0:
            raise QualifiedIdError(
                f"ledger id {ledger_id} is negative: ids of scope 0 are 0 to 2^63-1"
            )
        return cls(scope_id & MAX_UNSIGNED, ledger_id & MAX_UNSIGNED)

    @property
    def signed(self) -> tuple[int, int]:
        """Scope id and ledger id as int64 fields hold them, in two's complement."""
        return signed(self.scope_id), signed(self.ledger_id)

    @property
    def key(self) -> bytes:
        """16 big-endian bytes, which sort like the ids."""
        return self.scope_id.to_bytes(8, "big") + self.ledger_id.to_bytes(8, "big")

    @property
    def path(self) -> PurePosixPath:
        """The relative directory of this id: its name in four parts of 8 digits."""
        name = str(self)
        return PurePosixPath(*(name[at : at + 8] for at in range(0, 32, 8)))

    def __str__(self) -> str:
        return self.key.hex()


def signed(value: int) -> int:
    """Return an unsigned number of 64 bits as an int64 field holds it, in two's complement."""
    return value - (1 << 64) if value > MAX_UNSCOPED else value
