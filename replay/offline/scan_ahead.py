"""Scanning many ranges: small ones in remote storage are read several at a time.

A small recording there costs a few requests one after the other, whatever its length. Reading
several at the same time hides that; the order of the results stays that of the ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from aerotape.replay.offline.reader import RecordingRange, Scan
from aerotape.replay.offline.table import TableReader
from aerotape.url_path import AT_ONCE, is_url

if TYPE_CHECKING:
    import pyarrow

    Scanned = tuple[Scan, Iterable[pyarrow.RecordBatch]]

_SMALL: Final = 1 << 20


def scans(
    table: TableReader, parts: Sequence[RecordingRange]
) -> Iterator[tuple[RecordingRange, Callable[[], Scanned]]]:
    """Yield each range with a function that returns its scan and its batches.

    The function, and taking batches, raise what `TableReader.read` does.
    """
    remote = [index for index, part in enumerate(parts) if _is_worth_it(part)]
    if len(remote) < 2:
        for part in parts:
            yield part, partial(table.scan, part)
        return
    pending: dict[int, Future[Scanned]] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aerotape-scan") as threads:
        upcoming = iter(remote)
        try:
            for index, part in enumerate(parts):
                while len(pending) < AT_ONCE and (following := next(upcoming, None)) is not None:
                    pending[following] = threads.submit(_read, table, parts[following])
                future = pending.pop(index, None)
                yield part, partial(table.scan, part) if future is None else future.result
        finally:
            for future in pending.values():
                future.cancel()


def _is_worth_it(part: RecordingRange) -> bool:
    return is_url(part.archive_dir) and part.length <= _SMALL


def _read(table: TableReader, part: RecordingRange) -> Scanned:
    scan, batches = table.scan(part)
    return scan, list(batches)
