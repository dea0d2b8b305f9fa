"""Properties of the archive: each is a field of a dataclass, with its name and kind.

Those of the archive itself are fields of `ArchiveConfig`; a feature adds a dataclass with its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from aerotape.archive.config.values import Kind


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the archive.

    Attributes:
        section: the dataclass that has its field.
        attribute: the name of the field.
        kind: the syntax and the range of its values.
        driver_name: the property of the media driver whose value, if given, is the default.
    """

    section: type[Any]
    attribute: str
    kind: Kind
    driver_name: str | None


def define(name: str, kind: Kind, default: Any, driver_name: str | None = None) -> Any:
    """Return the dataclass field of a property; the arguments are those of `Property`."""
    options = {"name": name, "kind": kind, "driver_name": driver_name}
    return field(default=default, metadata=options)


def properties_of(*sections: type[Any]) -> Mapping[str, Property]:
    """Return the properties of dataclasses by name, in the order of their fields."""
    return _table(sections)


@cache
def _table(sections: tuple[type[Any], ...]) -> Mapping[str, Property]:
    return {
        each.metadata["name"]: Property(
            section, each.name, each.metadata["kind"], each.metadata["driver_name"]
        )
        for section in sections
        for each in fields(section)
        if each.metadata
    }
