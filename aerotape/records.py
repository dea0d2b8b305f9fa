"""Dataclasses that are cheap to make.

`dataclasses.dataclass` writes and compiles half a dozen methods for each class, half a millisecond
of every start, and its module brings `inspect` along. For a `record` only `__init__` is written,
which calls `__post_init__` if there is one; what else it has are functions that all of them share.
To type checkers, and to the functions of `dataclasses`, a record is a dataclass.

Records cannot be derived from other records.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import asdict, field, replace
    from dataclasses import dataclass as record
else:

    def record(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only=False
    ) -> Any:
        """Make a record of a class, as `dataclasses.dataclass` makes a dataclass."""
        if cls is None:
            return lambda decorated: _make(decorated, frozen, slots, kw_only)
        return _make(cls, frozen, slots, kw_only)

    def field(**arguments: Any) -> Any:
        """Say more of a field: `default`, `default_factory` and `repr`, as of dataclasses."""
        return _Field(**arguments)

    def asdict(value: Any) -> dict[str, Any]:
        """Return the fields by name, as they are."""
        return {name: getattr(value, name) for name in value.__record_fields__}

    def replace(value: Any, /, **changes: Any) -> Any:
        """Return a record like another but for the fields given."""
        return type(value)(**{**asdict(value), **changes})


__all__ = ["asdict", "field", "field_names", "record", "replace"]

_MISSING: Final = object()


class _Field:
    """A field of a record, beyond its name and type."""

    def __init__(
        self, default: Any = _MISSING, default_factory: Any = _MISSING, repr: bool = True
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.repr = repr


def _make(cls: type, frozen: bool, slots: bool, kw_only: bool) -> type:
    if any("__record_fields__" in vars(base) for base in cls.__mro__):
        raise TypeError(f"{cls.__qualname__}: a record cannot be derived from another")
    types = {name: kind for name, kind in cls.__annotations__.items() if "ClassVar" not in kind}
    fields = {name: _field_of(vars(cls).get(name, _MISSING)) for name in types}
    if slots:
        cls = _with_slots(cls, tuple(types))
    for name, each in fields.items():
        if not slots and each.default is not _MISSING:
            setattr(cls, name, each.default)
    own: dict[str, Any] = {
        "__record_fields__": tuple(types),
        "__record_shown__": tuple(name for name, each in fields.items() if each.repr),
        "__record_values__": attrgetter(*types) if types else lambda _: (),
        "__dataclass_fields__": _DataclassFields(types, fields, kw_only),
        "__init__": _init(cls, types, fields, frozen and slots, frozen, kw_only),
        "__eq__": _equal,
        "__hash__": _hash if frozen else None,
        "__match_args__": () if kw_only else tuple(types),
    }
    if "__repr__" not in vars(cls):
        own["__repr__"] = _show
    if frozen:
        own |= {"__setattr__": _set_none, "__delattr__": _delete_none}
        if slots:
            own |= {"__getstate__": _state, "__setstate__": _restore}
    for name, value in own.items():
        setattr(cls, name, value)
    return cls


def _field_of(value: Any) -> _Field:
    return value if isinstance(value, _Field) else _Field(value)


def _with_slots(cls: type, names: tuple[str, ...]) -> type:
    """Return the class anew, for slots cannot be added to one that is there."""
    left_out = {"__dict__", "__weakref__", *names}
    namespace = {name: value for name, value in vars(cls).items() if name not in left_out}
    namespace["__slots__"] = names
    made: type = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _init(
    cls: type,
    types: dict[str, str],
    fields: dict[str, _Field],
    through_slots: bool,
    frozen: bool,
    kw_only: bool,
) -> Callable[..., None]:
    """Write `__init__`, the one method for which it matters how fast it is."""
    known: dict[str, Any] = {"_missing": _MISSING, "_set": object.__setattr__}
    parameters, body = ["self", *(["*"] if kw_only and types else [])], []
    for name, each in fields.items():
        value = name
        if each.default_factory is not _MISSING:
            known[f"_make_{name}"] = each.default_factory
            parameters.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        elif each.default is not _MISSING:
            known[f"_default_{name}"] = each.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        if through_slots:
            known[f"_set_{name}"] = vars(cls)[name].__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, '{name}', {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {lines}", known)
    init: Any = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {**types, "return": "None"}
    return init  # type: ignore[no-any-return]


class _DataclassFields:
    """What `dataclasses` looks for in a class, made when it does."""

    def __init__(self, types: dict[str, str], fields: dict[str, _Field], kw_only: bool) -> None:
        self._types = types
        self._fields = fields
        self._kw_only = kw_only

    def __get__(self, _instance: object, owner: Any) -> Any:
        import dataclasses

        specified = []
        for name, each in self._fields.items():
            told = {key: value for key, value in vars(each).items() if value is not _MISSING}
            specified.append((name, self._types[name], dataclasses.field(**told)))
        twin: Any = dataclasses.make_dataclass(owner.__name__, specified, kw_only=self._kw_only)
        made = twin.__dataclass_fields__
        owner.__dataclass_fields__ = made
        return made


def field_names(value: object) -> tuple[str, ...]:
    """Return the names of the fields of a record or a dataclass; none of anything else."""
    kind: Any = type(value)
    names: tuple[str, ...] | None = getattr(kind, "__record_fields__", None)
    if names is None and hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        return tuple(each.name for each in dataclasses.fields(kind))
    return names or ()


def _equal(self: Any, other: Any) -> bool:
    if type(other) is not type(self):
        return NotImplemented  # type: ignore[no-any-return]
    values = self.__record_values__
    return bool(values(self) == values(other))


def _hash(self: Any) -> int:
    return hash(self.__record_values__(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record_shown__)
    return f"{type(self).__qualname__}({shown})"


def _set_none(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_none(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """Whether an attribute is a frozen record's; a class derived from it may have others."""
    return "__record_fields__" in vars(type(self)) or name in self.__record_fields__


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record_fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)
