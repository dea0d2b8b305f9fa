"""Where the archive's settings come from, and what they come to.

From the weakest to the strongest: the environment (`AERON_ARCHIVE_SEGMENT_FILE_LENGTH` for
`aeron.archive.segment.file.length`), properties files in the order given, -D, options of their
own. The environment of the media driver is its own to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aerotape.archive.config.archive_config import DERIVED, ArchiveConfig
from aerotape.archive.config.properties_file import read_properties_file
from aerotape.archive.config.property_table import (
    AERON_DIR,
    PROPERTIES,
    WITHOUT_EFFECT,
    nearest,
    variable,
)

DEFAULT = "default"
_PREFIXES = (
    "AERON_ARCHIVE_",
    "AEROTAPE_USERS_",
    "AEROTAPE_RECORDING_",
    "AEROTAPE_TIME_",
    "AEROTAPE_RETENTION_",
)


@dataclass(slots=True)
class Settings:
    """Properties, and where each comes from, in words."""

    values: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, value: str, origin: str) -> None:
        """Set a property; what was set before is forgotten."""
        self.values[name] = value
        self.origins[name] = origin

    def take_environment(self, environment: Mapping[str, str]) -> None:
        """Take the variables that name properties; those that are empty count as not set."""
        names = {variable(name): name for name in (*PROPERTIES, AERON_DIR)}
        ignored = {variable(name) for name in WITHOUT_EFFECT}
        for key in sorted(environment):
            if not environment[key]:
                continue
            if key in names:
                self.put(names[key], environment[key], f"environment {key}")
            elif key.startswith(_PREFIXES) and key not in ignored:
                # Clients share the environment: their settings are not worth a warning.
                hint = nearest(key, names)
                self.warnings.append(
                    f"environment {key} is not a property of the archive, ignored{hint}"
                )

    def take_files(self, places: Iterable[str]) -> None:
        """Take properties files, later ones over earlier ones.

        Raises:
            ConfigurationError: one cannot be read.
        """
        for place in places:
            for name, value in read_properties_file(place).items():
                self.put(name, value, place)

    def config(self) -> ArchiveConfig:
        """Make the configuration, and check it.

        Raises:
            ConfigurationError: a value that cannot be used; it says where that comes from.
        """
        config = ArchiveConfig.from_properties(self.values, self.origins)
        config.warnings[:0] = self.warnings
        return config


@dataclass(frozen=True, slots=True)
class Setting:
    """A property as the archive runs with it.

    Attributes:
        value: as text, as it would be given.
        origin: where it comes from; ``default`` when it was not given.
        default: what it is when not given; None for the driver's, which knows its own.
    """

    name: str
    value: str
    origin: str
    default: str | None


def effective(config: ArchiveConfig, settings: Settings, aeron_dir: str) -> list[Setting]:
    """Return all properties of the archive, and those given for the media driver.

    Args:
        aeron_dir: the media driver's directory when none is given.
    """
    defaults = ArchiveConfig()
    rows = []
    for name, known in PROPERTIES.items():
        value, default = (
            known.kind.write(getattr(each, known.attribute)) for each in (config, defaults)
        )
        rows.append(Setting(name, value, _origin(name, settings), default))
    rows.append(
        Setting(
            AERON_DIR,
            config.aeron_dir or aeron_dir,
            settings.origins.get(AERON_DIR, DEFAULT) if config.aeron_dir else DEFAULT,
            aeron_dir,
        )
    )
    rows += [
        Setting(name, value, settings.origins[name], None)
        for name, value in sorted(config.driver_properties.items())
    ]
    return rows


def _origin(name: str, settings: Settings) -> str:
    if name in settings.origins:
        return settings.origins[name]
    derived = DERIVED.get(name)
    if derived is not None and derived[0] in settings.values:
        return f"{derived[0]} from {settings.origins[derived[0]]}"
    return DEFAULT
