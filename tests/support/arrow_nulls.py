"""Checks that batches are valid, also against what their fields declare about nulls."""

from __future__ import annotations

from typing import Any


def check_batch(batch: Any) -> None:
    """Check that a record batch or a table is valid, and that its fields may have its nulls."""
    import pyarrow

    batch.validate(full=True)
    for each in batch.to_batches() if isinstance(batch, pyarrow.Table) else [batch]:
        for field, column in zip(each.schema, each.columns, strict=True):
            _check(field, column)


def _check(field: Any, array: Any) -> None:
    """Check the nulls of an array and of all arrays in it, also below a null."""
    from pyarrow import types

    assert field.nullable or array.null_count == 0, field
    if types.is_struct(field.type):
        for index, child in enumerate(field.type):
            _check(child, array.field(index))
    elif types.is_list(field.type):
        _check(field.type.value_field, array.values)
