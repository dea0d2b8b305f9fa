"""Names of `dataclasses` for the modules that have not moved to it yet."""

from dataclasses import dataclass as record
from dataclasses import fields, is_dataclass, replace

__all__ = ["field_names", "record", "replace"]


def field_names(value: object) -> tuple[str, ...]:
    """Return the names of a dataclass instance's fields; none of anything else."""
    return tuple(each.name for each in fields(value)) if is_dataclass(value) else ()
