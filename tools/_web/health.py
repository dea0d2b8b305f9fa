"""Whether an archive is fit for work: what `/readyz` and alerts ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from aerotape.counter_keys import CounterType
from aerotape.formatting import bytes_text
from aerotape.tools._cli.times import time_text
from aerotape.tools._web.observed import Snapshot
from aerotape.tools._web.verification import Verification

_SHOWN_IDS: Final = 10


class Check(NamedTuple):
    """A check and its outcome.

    Attributes:
        name: of the check.
        is_ok: whether it passed.
        found: what was found, a sentence.
    """

    name: str
    is_ok: bool
    found: str

    @property
    def row(self) -> dict[str, Any]:
        """It as JSON."""
        return {"check": self.name, "ok": self.is_ok, "found": self.found}


def checks(snapshot: Snapshot) -> list[Check]:
    """Return the checks of an archive, in the order in which a failure explains later ones."""
    found = [_archive(snapshot), _driver(snapshot), _storage(snapshot), _files(snapshot)]
    return found if snapshot.verification is None else [*found, _verified(snapshot.verification)]


def _archive(snapshot: Snapshot) -> Check:
    if snapshot.mark is None:
        return Check("archive", False, "the mark file cannot be read")
    age_s = (snapshot.taken_ms - snapshot.mark.header.activity_timestamp_ms) / 1e3
    if snapshot.mark.header.activity_timestamp_ms < 0:
        return Check("archive", False, "the archive was stopped")
    said = f"the archive (pid {snapshot.mark.header.pid}) gave a sign of life {age_s:.1f} s ago"
    return Check("archive", snapshot.is_active, said)


def _driver(snapshot: Snapshot) -> Check:
    if snapshot.driver is None:
        return Check("driver", False, "the media driver's counters cannot be read")
    name = f"the media driver in {Path(snapshot.driver.aeron_dir).name} (pid {snapshot.driver.pid})"
    state = "gives signs of life" if snapshot.driver.is_active else "gives no sign of life"
    return Check("driver", snapshot.driver.is_active, f"{name} {state}")


def _storage(snapshot: Snapshot) -> Check:
    free, total = bytes_text(snapshot.free_bytes), bytes_text(snapshot.total_bytes)
    said = f"{free} of {total} are free"
    if snapshot.value(CounterType.LOW_STORAGE):
        return Check("storage", False, f"{said}: too few to begin a recording")
    return Check("storage", snapshot.free_bytes > 0, said)


def _files(snapshot: Snapshot) -> Check:
    if snapshot.problems:
        return Check("files", False, "; ".join(snapshot.problems))
    if snapshot.suspect:
        ids = ", ".join(map(str, sorted(snapshot.suspect)[:_SHOWN_IDS]))
        said = (
            f"recordings that are marked as suspect: {ids}; `aerotape tool DIR accept-damage ID` "
            "accepts damage that was repaired"
        )
        return Check("files", False, said)
    return Check("files", True, f"{len(snapshot.recordings)} recordings")


def _verified(found: Verification) -> Check:
    when = time_text(found.timestamp_ms)
    if found.failed:
        ids = ", ".join(map(str, sorted(found.failed)[:_SHOWN_IDS]))
        return Check("verification", False, f"of {when}: recordings with problems: {ids}")
    return Check("verification", True, f"of {when}: {found.recordings} recordings without problems")
