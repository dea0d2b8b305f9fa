"""JSON of bounded length, which is sent in parts as fast as its client takes them.

An answer that would be longer ends after the last row that fits. The rows of a page name where the
next page begins, so no row is lost.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

from fastapi import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

MAX_ANSWER: Final = 2 << 20
"""The most bytes of an answer."""
PART: Final = 128 << 10
"""The most bytes that are sent before the client has taken what was sent before."""
_BUILDERS: Final = 3
_WAIT_S: Final = 10.0
_building: Final = threading.BoundedSemaphore(_BUILDERS)


class PartsResponse(Response):
    """A response of JSON in parts; each is released once it is sent."""

    media_type = "application/json"

    def __init__(self, parts: list[bytes]) -> None:
        """Create it.

        Args:
            parts: of the body; the list is emptied by sending.
        """
        super().__init__()
        self._parts = parts
        del self.headers["content-length"]
        self.headers["content-length"] = str(sum(map(len, parts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        self._parts.reverse()
        while self._parts:
            body = self._parts.pop()
            more = bool(self._parts)
            await send({"type": "http.response.body", "body": body, "more_body": more})


@contextmanager
def building() -> Iterator[None]:
    """Let a few threads at a time read for an answer, which may take much memory.

    Raises:
        HTTPException: 503, others have not ended within 10 s.
    """
    if not _building.acquire(timeout=_WAIT_S):
        raise HTTPException(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{_BUILDERS} other requests have read for {_WAIT_S:g} s: try again",
        )
    try:
        yield
    except Exception as error:
        # They hold what was read, and the error holds them until its response is sent.
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        _building.release()


def answer(
    rows: Iterable[str], begin: str = "[", end: str = "]", between: str = ","
) -> PartsResponse:
    """Return rows of JSON, or of another text, as many as fit.

    Args:
        rows: the rows; no more are taken than fit, and one.
        begin: the text before them.
        end: the text after them.
        between: the text between two of them.

    Raises:
        HTTPException: 413, the first row does not fit.
    """
    parts: list[bytes] = []
    open_part = bytearray(begin.encode())
    length, is_first = len(open_part) + len(end), True
    for row in rows:
        # A lone surrogate, which UTF-8 does not have, becomes an escape of JSON.
        encoded = row.encode(errors="backslashreplace")
        length += len(encoded) + 1
        if length > MAX_ANSWER:
            if is_first:
                raise too_large(len(encoded))
            break
        if not is_first:
            open_part += between.encode()
        is_first = False
        for at in range(0, len(encoded), PART):
            open_part += encoded[at : at + PART]
            if len(open_part) >= PART:
                parts.append(bytes(open_part))
                open_part.clear()
    open_part += end.encode()
    parts.append(bytes(open_part))
    return PartsResponse(parts)


def download(parts: Iterator[bytes], name: str, length: int) -> Response:
    """Return a file of any length, whose parts are made as fast as the client takes them.

    Args:
        parts: of the file.
        name: of the file.
        length: of all parts, bytes.
    """
    first = next(parts, b"")  # now that an error has a response, and the file is open
    return StreamingResponse(
        chain([first], parts),
        headers={
            "content-length": str(length),
            "content-type": "application/octet-stream",
            "content-disposition": f'attachment; filename="{name}"',
        },
    )


def too_large(length: int) -> HTTPException:
    """Return the error for a row that does not fit into an answer."""
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the next row has {length} bytes, and an answer has at most {MAX_ANSWER}: read it with a "
        "command of aerotape, or continue after it",
    )


def row_text(row: Any) -> str:
    """Return a row as JSON, as the other responses have it."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
