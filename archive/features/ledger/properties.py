"""The properties of ledgers."""

# ruff: noqa: RUF009  define() returns a dataclass field

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aerotape.archive.config import values as kinds
from aerotape.archive.config.property import define

MIRROR_CHANNELS = "aerotape.mirror.channels"


@dataclass(slots=True)
class LedgerProperties:
    """The properties (`-D`) of ledgers and their mirrors.

    Attributes:
        mirror_secret_file: the user as which this archive connects to mirrors; None: as none.
        mirror_channels: control channels of archives that any client may name as mirrors.
        are_restored: whether the directory may lack what was acknowledged.
    """

    mirror_secret_file: Path | None = define(
        "aerotape.mirror.secret.file", kinds.OPTIONAL_PATH, None
    )
    mirror_channels: tuple[str, ...] = define(MIRROR_CHANNELS, kinds.CHANNELS, ())
    are_restored: bool = define("aerotape.ledgers.restored", kinds.BOOLEAN, False)
