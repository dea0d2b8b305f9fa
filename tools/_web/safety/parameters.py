"""Parameters that a path does not have, or has once, are refused: not all of them would count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from aerotape.tools._cli.help.did_you_mean import hint


async def check_parameters(request: Request) -> None:
    """Check the names of the query's parameters.

    Raises:
        HTTPException: 400, the path does not have one of them, or one is given twice.
    """
    route = request.scope.get("route")
    if isinstance(route, APIRoute) and request.query_params:
        known = sorted(_names(route.dependant))
        for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
            if count > 1:
                raise HTTPException(
                    HTTPStatus.BAD_REQUEST, f"parameter {name[:100]!r} is given {count} times"
                )
            if name not in known:
                proposal = hint(name, known) or f": expected {', '.join(known) or 'none'}"
                raise HTTPException(
                    HTTPStatus.BAD_REQUEST, f"unknown parameter {name[:100]!r}{proposal}"
                )


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (each.alias for each in dependant.query_params)
    for each in dependant.dependencies:
        yield from _names(each)
