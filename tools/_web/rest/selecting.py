"""The parameters of paths that select recordings and messages, of `OPTIONS` of a selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

from fastapi import Query

from aerotape.replay.offline import option_text
from aerotape.replay.offline.selection import OPTIONS, Selection, parse_texts
from aerotape.units import MAX_LONG

OF_RECORDINGS: Final = ("channel", "alias", "stream_id", "session_id", "live")
OF_SEARCHES: Final = ("from_position", "to_position", "from_time", "to_time", "checksum")
OF_MESSAGES: Final = (*OF_SEARCHES, "last", "first")
"""Not those by which terms are searched, which may take long."""
_COUNTS: Final = ("last", "first")
_TYPES: Final[dict[Callable[[str, str], Any], type]] = {
    option_text.integer: int,
    option_text.int32: int,
    option_text.truth: bool,
}


def spell(name: str) -> str:
    """Return the parameter for an option of reading."""
    return "position" if name == "from_position" else name


def selection_of(names: Sequence[str], most: int = MAX_LONG) -> Callable[..., Selection]:
    """Return the dependency of a path that has the parameters of some options.

    Args:
        names: of the options.
        most: the most messages that they may count.
    """

    def selection(**given: Any) -> Selection:
        values = {name: given[spell(name)] for name in names if given[spell(name)] is not None}
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        return Selection.of(values | parse_texts(texts, spell), spell)

    parameters = [
        Parameter(
            spell(name),
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(name, most),
        )
        for name in names
    ]
    selection.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return selection


def _annotation(name: str, most: int) -> Any:
    option = OPTIONS[name]
    least = highest = None
    if name in _COUNTS:
        least, highest = 1, most
    elif option.parse is option_text.integer:
        least, highest = 0, MAX_LONG
    kind = _TYPES.get(option.parse, str)
    return Annotated[kind | None, Query(description=option.help, ge=least, le=highest)]
