"""The methods of the blocking client for ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from aerotape.archive.client.executors.blocking import (
    BlockingRequests,
    blocking,
    blocking_pages,
    describe_as,
)
from aerotape.archive.client.ledger import opening, requests
from aerotape.archive.client.ledger.handles import LedgerReader, LedgerWriter
from aerotape.archive.client.requests.request import Steps

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient

P = ParamSpec("P")
S = TypeVar("S")
H = TypeVar("H", LedgerReader, LedgerWriter)


def _opening(
    request: Callable[P, Steps[S]], handle: Callable[[ArchiveClient, S], H]
) -> Callable[Concatenate[LedgerMethods, P], H]:
    """Return a method that opens a reader or a writer."""

    def method(self: LedgerMethods, /, *args: P.args, **kwargs: P.kwargs) -> H:
        return handle(cast("ArchiveClient", self), self._run(request(*args, **kwargs)))

    describe_as(method, request, returns=handle.__name__)
    return method


class LedgerMethods(BlockingRequests):
    """Creates, opens, lists and deletes ledgers, which only archives of this package have.

    Another archive is not sent these requests (IllegalOperationError).
    """

    declare_ledger = blocking(opening.declare_ledger)
    create_ledger = _opening(opening.create_ledger, LedgerWriter)
    open_ledger_writer = _opening(opening.open_ledger_writer, LedgerWriter)
    open_ledger = _opening(opening.open_ledger, LedgerReader)
    open_ledger_read_only = _opening(opening.open_ledger_read_only, LedgerReader)
    sync_ledger = blocking(opening.sync_ledger)
    ledger_info = blocking(requests.ledger_info)
    list_ledgers = blocking_pages(requests.list_ledgers)
    delete_ledger = blocking(requests.delete_ledger)
    replace_mirror = blocking(requests.replace_mirror)
