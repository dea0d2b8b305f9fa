"""Stub of the native core: journals of entities, and the actions that change them."""

from typing import Final, Literal, Protocol, final

from aerotape._native._scan import ArrowRecordBatch

# ---- entity/fold.rs ----------------------------------------------------------------------------

class _ActionHeader(Protocol):
    """Kind and range of an action: `aerotape.codecs.entity.actions.ActionHeader`."""

    @property
    def kind(self) -> int: ...
    @property
    def from_seq_nr(self) -> int: ...
    @property
    def to_seq_nr(self) -> int: ...

class _Head(Protocol):
    """A journal's head in a store: `aerotape.entity.records.Head`."""

    @property
    def offset(self) -> int: ...
    @property
    def seq_nr(self) -> int: ...
    @property
    def delete_to(self) -> int | None: ...

@final
class Effect:
    """The effect of an action on a journal. Each is one object: compare with `is`."""

    NONE: Final[Effect]
    ADDED: Final[Effect]
    REFUSED: Final[Effect]
    DELETED: Final[Effect]
    PURGED: Final[Effect]
    SNAPSHOT: Final[Effect]

@final
class Fold:
    """A journal, perhaps not existing, to which actions are applied in the order of the log.

    `native/src/entity/fold.rs` has the rules, in a table. Two are equal if all attributes are.
    """

    def __init__(self, head: _Head | None = None) -> None:
        """Begin with the journal of a head in a store; None: without a journal."""
    exists: Final[bool]
    """Whether there is a journal; else the other attributes but `last` have no meaning."""
    begun_at: Final[int | None]
    """Position of the action that began it, bytes; None: it is the one in the store."""
    offset: Final[int]
    """Position of its last change, bytes."""
    seq_nr: Final[int]
    """Sequence number of the last event."""
    deleted: Final[int]
    """Events up to this one are deleted; 0: none."""
    after: Final[int]
    """Of the append that was applied last, the events after this one are added."""
    last: Final[int]
    """The last sequence number, or the last deleted one if that is higher; 0 without a journal."""
    def apply(self, action: _ActionHeader, offset: int) -> Effect:
        """Apply an action.

        Args:
            action: kind and range.
            offset: position of its record, bytes.

        Raises:
            ValueError: there is no such kind.
        """
    def copy(self) -> Fold:
        """Return a journal to which other actions can be applied."""

# ---- entity/ -----------------------------------------------------------------------------------

def single_append(
    message: bytes, begin: int, seq_nr: int
) -> tuple[str | None, str | None, bytes, str | None, str] | None:
    """Take an append of an entity apart, if it has one event in JSON and no metadata of it.

    Args:
        message: the append.
        begin: offset of the first field after the entity's id, bytes.
        seq_nr: sequence number of the event.

    Returns:
        Origin, version, metadata of the append (JSON), tags (a JSON array) and payload; None or
        empty where the append has none. None for an append of another form, or a damaged one.
    """

def string_hash(text: str) -> int:
    """Return Java's `String.hashCode` of a text."""

def lower_case_hash(text: str) -> int:
    """Return Java's `String.hashCode` of a text in lower case; no sigma is a final one."""

# ---- entity/journals.rs ------------------------------------------------------------------------

def entity_journals(
    batch: ArrowRecordBatch, segments: int, max_snapshots: int
) -> tuple[
    ArrowRecordBatch, ArrowRecordBatch, list[tuple[int, int, int]], list[tuple[int, int]]
]:
    """Compute the journals that exist after all actions of some entities.

    Args:
        batch: actions (`aerotape.spark.entities.rows.ACTIONS`), sorted by id and position.
        segments: the number of segments of heads.
        max_snapshots: the most snapshots of a journal.

    Returns:
        The heads: rows of their first, last and, if it may set an expiry, last append; sequence
        number, `delete_to`, segment (of an id without a capital sigma) and record id. The events of
        appends that `single_append` takes apart: row, index of the head, sequence number, tags and
        payload. The other appends with events to store: row, index of the head, and the last event
        that is left out. The snapshots with the highest sequence numbers, of each number the last:
        row and index of the head, by head and descending number.

    Raises:
        TypeError: a column is missing or has another type.
        ValueError: an action is invalid, or the number of segments is 0.
    """

# ---- entity/json.rs ----------------------------------------------------------------------------

def check_json(text: bytes, max_depth: int | None = None) -> None:
    """Check that a text is one JSON value (RFC 8259) in UTF-8.

    Args:
        text: the text.
        max_depth: levels of arrays and objects; None: any number.

    Raises:
        ValueError: it is not, with the place, or it is nested deeper.
    """

def json_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object, their values as they are written.

    Args:
        text: the object; of members with the same name the last one counts.

    Raises:
        ValueError: the text is not JSON.
        TypeError: it is another value.
    """

def json_events(
    payload: bytes,
) -> tuple[list[tuple[int, bytes | None, Literal["none", "json", "text"], list[str]]], str | None]:
    """Read the JSON form of the payload of an append.

    Returns:
        The events: sequence number, payload, type and tags; a payload in JSON as it is written.
        The metadata, JSON; None: none.

    Raises:
        ValueError: the payload does not have this form.
    """
