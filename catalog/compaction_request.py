"""How a running archive is asked to compact its catalog: by a file in its directory.

The control protocol has no such request, and who may write to the directory may do worse to it
than this. The file `aerotape-compact.request` holds a word that nobody else has thought of; the
archive looks for it about once a second, removes it, and leaves `aerotape-compact.answer` with that
word and what came of it. A request that nobody waits for any more does no harm.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import AerotapeError, StorageError

REQUEST_FILE_NAME: Final = "aerotape-compact.request"
ANSWER_FILE_NAME: Final = "aerotape-compact.answer"
_MAX_LENGTH: Final = 64
_POLL_S: Final = 0.02


def request_compaction(archive_dir: Path, timeout_s: float) -> dict[str, Any]:
    """Ask the archive that is using a directory, and wait for its answer.

    Returns:
        What it tells: `answer`'s `facts`.

    Raises:
        StorageError: a file cannot be written.
        AerotapeError: somebody else has asked, the archive does not answer, or could not.
    """
    request, word = archive_dir / REQUEST_FILE_NAME, os.urandom(16).hex()
    try:
        with request.open("x", encoding="ascii") as file:
            file.write(word)
    except FileExistsError:
        raise AerotapeError(
            f"a compaction has been asked for already: {request}; remove it if nobody waits for it"
        ) from None
    except OSError as error:
        raise StorageError(f"cannot write {request}: {error.strerror}", request) from error
    deadline_s = time.monotonic() + timeout_s
    try:
        while (told := _read_answer(archive_dir, word)) is None:
            if time.monotonic() >= deadline_s:
                raise AerotapeError(
                    f"the archive in {archive_dir} has not answered within {timeout_s:g} s"
                )
            time.sleep(_POLL_S)
    finally:
        for path in (request, archive_dir / ANSWER_FILE_NAME):
            with suppress(OSError):
                path.unlink()
    if problem := told.get("problem"):
        raise AerotapeError(str(problem))
    return told


def _read_answer(archive_dir: Path, word: str) -> dict[str, Any] | None:
    import json

    try:
        told = json.loads((archive_dir / ANSWER_FILE_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("word") == word else None


def take_request(archive_dir: Path) -> str | None:
    """Return the word of a request, which is removed; None when there is none (OSError)."""
    path = archive_dir / REQUEST_FILE_NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        word = os.read(descriptor, _MAX_LENGTH)
    finally:
        os.close(descriptor)
    if not word:
        return None  # it is about to be written
    path.unlink()
    return word.decode("ascii", "replace")


def answer(archive_dir: Path, word: str, facts: Mapping[str, Any]) -> None:
    """Answer a request (OSError)."""
    import json

    path = archive_dir / ANSWER_FILE_NAME
    written = path.with_name(path.name + ".new")
    with open(written, "w", encoding="ascii", opener=open_no_follow) as file:
        json.dump({**facts, "word": word}, file)
    written.rename(path)
