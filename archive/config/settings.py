"""The sources of the archive's settings, and the effective values.

In ascending priority: the environment (`AERON_ARCHIVE_SEGMENT_FILE_LENGTH` for
`aeron.archive.segment.file.length`), properties files in the order given, -D, options. The media
driver reads its environment variables itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.archive.config.properties_file import read_properties_file
from aerotape.archive.config.property import Property, properties_of
from aerotape.archive.config.property_names import (
    AERON_DIR,
    DRIVER_TIMEOUT,
    OWN_PREFIX,
    THREAD_NAMING,
    WITHOUT_EFFECT,
    nearest,
    variable,
)

DEFAULT = "default"
# Properties of the media driver that the archive uses too.
_SHARED = (
    AERON_DIR,
    DRIVER_TIMEOUT,
    THREAD_NAMING,
    *(each.driver_name for each in properties_of(ArchiveConfig).values() if each.driver_name),
)


@dataclass(slots=True)
class Settings:
    """Properties with their origins.

    Attributes:
        sections: the dataclasses of features with their properties.
    """

    values: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    sections: tuple[type[Any], ...] = ()

    @property
    def _properties(self) -> Mapping[str, Property]:
        return properties_of(ArchiveConfig, *self.sections)

    def put(self, name: str, value: str, origin: str) -> None:
        """Set a property, replacing an earlier value."""
        self.values[name] = value
        self.origins[name] = origin

    def take_environment(self, environment: Mapping[str, str]) -> None:
        """Add the environment variables of properties; empty ones count as not set."""
        names = {variable(name): name for name in (*self._properties, *_SHARED)}
        prefixes = ("AERON_ARCHIVE_", *self._own_prefixes())
        ignored = {variable(name) for name in WITHOUT_EFFECT}
        for key in sorted(environment):
            if not environment[key]:
                continue
            if key in names:
                self.put(names[key], environment[key], f"environment {key}")
            elif key.startswith(prefixes) and key not in ignored:
                # No warning about settings of clients, which share the environment.
                hint = nearest(key, names)
                self.warnings.append(
                    f"environment {key} is not a property of the archive, ignored{hint}"
                )

    def _own_prefixes(self) -> set[str]:
        """The prefixes of the variables for this package's properties."""
        return {
            variable(".".join(name.split(".")[:2])) + "_"
            for name in self._properties
            if name.startswith(OWN_PREFIX)
        }

    def take_files(self, places: Iterable[str]) -> None:
        """Add properties files; later ones override earlier ones.

        Raises:
            ConfigurationError: a file cannot be read.
        """
        for place in places:
            for name, value in read_properties_file(place).items():
                self.put(name, value, place)

    def config(self) -> ArchiveConfig:
        """Build the configuration and check it.

        Raises:
            ConfigurationError: an invalid value; the message has its origin.
        """
        config = ArchiveConfig.from_properties(self.values, self.origins, self.sections)
        config.warnings[:0] = self.warnings
        return config


@dataclass(frozen=True, slots=True)
class Setting:
    """The effective value of a property.

    Attributes:
        name: the property.
        value: as text, in the syntax of properties.
        origin: the source of the value; ``default`` if it was not given.
        default: the default as text; None for properties of the media driver.
    """

    name: str
    value: str
    origin: str
    default: str | None


def effective(config: ArchiveConfig, settings: Settings, aeron_dir: str) -> list[Setting]:
    """Return all properties of the archive, and those given for the media driver.

    Args:
        aeron_dir: the default media driver directory.
    """
    defaults = ArchiveConfig.defaults(config.added)
    rows = []
    for name, known in config.properties.items():
        value, default = (known.kind.write(each.value(name)) for each in (config, defaults))
        rows.append(Setting(name, value, _origin(name, known, settings), default))
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


def _origin(name: str, known: Property, settings: Settings) -> str:
    if name in settings.origins:
        return settings.origins[name]
    if known.driver_name in settings.origins:
        return f"{known.driver_name} from {settings.origins[known.driver_name]}"
    return DEFAULT
