"""`/api/v1/retention`: what a policy would delete now, and its deletion once it was confirmed."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections import OrderedDict
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request

from aerotape.archive.retention.plan import Removal, Retained, RetentionPlan
from aerotape.archive.retention.policy import read_policy
from aerotape.archive.retention.survey import Usage
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError, ConfigurationError, StorageError
from aerotape.tools._cli.output import as_row
from aerotape.tools._web.latest import Latest
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.answers import row_text
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools.retain import plan_now, removal_row, remove, still_planned

_MAX_PLANS: Final = 16
MAX_PLANNED: Final = 1_000
"""The most removals of a plan that is shown and carried out."""
_FRESH_S: Final = 0.5
_MAX_S: Final = 10.0
"""After so long no further removal is begun, seconds."""
_REQUESTS: Final = (
    codecs.PurgeRecordingRequest.TEMPLATE_ID,
    codecs.PurgeSegmentsRequest.TEMPLATE_ID,
)


@dataclasses.dataclass(frozen=True, slots=True)
class NamedPlan:
    """The begin of a plan.

    Attributes:
        name: by which it can be carried out.
        removals: what it deletes, by recording id; at most 1,000.
        left: the number of removals that are not in it.
        kept: the recordings that stay although a limit requires their deletion; at most 1,000.
        kept_left: the number of those that are not in it.
    """

    name: str
    removals: list[Removal]
    left: int
    kept: list[Retained]
    kept_left: int


class Retention:
    """Plans what a policy deletes from the directory of an archive, and has it deleted."""

    def __init__(self, observed: ObservedArchive, changes: Changes, policy: Path | None) -> None:
        """Create it; nothing is read.

        Args:
            observed: the archive.
            changes: requests the deletions.
            policy: the policy, a TOML file; None: there is none.
        """
        self._observed = observed
        self._changes = changes
        self.policy = policy
        self._plans: OrderedDict[str, RetentionPlan] = OrderedDict()
        self._lock = Lock()
        # Making a plan reads all descriptors and the times of all segment files.
        self._latest = Latest(self._named, _FRESH_S, 0, "retention-plan")

    def _plan(self) -> RetentionPlan:
        """Return the plan for now (ConfigurationError, CatalogError, StorageError)."""
        if self.policy is None:
            raise ConfigurationError(
                "there is no retention policy: start the service with --retention", "--retention"
            )
        snapshot = self._observed.snapshot()
        replayed: dict[int, int] = {}
        for each in snapshot.replays:
            least = min(each.position, replayed.get(each.recording_id, each.position))
            replayed[each.recording_id] = least
        usage = Usage(snapshot.positions(), replayed)
        return plan_now(self._observed.directory, read_policy(self.policy), usage)

    def named(self) -> NamedPlan:
        """Return the begin of the plan for now, at most half a second old; the last 16 are known.

        Raises:
            ConfigurationError: there is no policy, or it is not valid.
            CatalogError: the catalog cannot be used.
            StorageError: the files cannot be read, or not within 10 s.
        """
        try:
            return self._latest.get(_MAX_S)
        except TimeoutError:
            raise StorageError(
                f"planning what to delete takes longer than {_MAX_S:g} s", self._observed.directory
            ) from None

    def _named(self) -> NamedPlan:
        whole = self._plan()
        plan = RetentionPlan(
            whole.removals[:MAX_PLANNED], whole.retained[:MAX_PLANNED], whole.size_bytes
        )
        rows = row_text([as_row(removal_row(each)) for each in plan.removals])
        name = hashlib.blake2b(rows.encode(), digest_size=16).hexdigest()
        with self._lock:
            self._plans[name] = plan
            self._plans.move_to_end(name)
            while len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        return NamedPlan(
            name,
            plan.removals,
            len(whole.removals) - len(plan.removals),
            plan.retained,
            len(whole.retained) - len(plan.retained),
        )

    def refusal(self, request: Request) -> str:
        """Return why the deletions would be refused; "" if they would not."""
        return next(filter(None, (self._changes.refusal(request, each) for each in _REQUESTS)), "")

    def carry_out(self, request: Request, name: str) -> dict[str, Any]:
        """Delete what is in a plan that was shown, and still planned; at most for 10 s.

        Returns:
            The removals, each with the problem that it had, "" if none; the ids of recordings that
            have `changed` since, so that nothing of them was deleted; the number `left` for later.

        Raises:
            HTTPException: 403, nothing may be changed, or not by this user; 409, the plan is not
                known.
        """
        for each in _REQUESTS:
            self._changes.check(request, each)
        with self._lock:
            shown = self._plans.get(name)
        if shown is None:
            raise HTTPException(
                HTTPStatus.CONFLICT, "this plan is not known any more: read it again and confirm it"
            )
        self._observed.renew()
        plan, changed = still_planned(shown, self._plan())
        deadline_s = time.monotonic() + _MAX_S
        done: list[dict[str, Any]] = []
        for removal in plan.removals:
            if done and time.monotonic() >= deadline_s:
                break
            try:
                problem = self._changes.request(
                    request, _REQUESTS[0], lambda client: remove(client, removal)  # noqa: B023
                )
            except ArchiveError as error:
                problem = self._observed.error_text(error)
            done.append({**as_row(removal_row(removal)), "problem": problem})
        self._latest.renew()
        return {"removals": done, "changed": changed, "left": len(plan.removals) - len(done)}


def router(retention: Retention) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/retention", tags=["recordings"])

    @routes.get("", summary="What the policy of --retention would delete now, and what stays")
    def plan() -> dict[str, Any]:
        found = retention.named()
        return {
            "plan": found.name,
            "removals": [as_row(removal_row(each)) for each in found.removals],
            "left": found.left,
            "kept": [dataclasses.asdict(each) for each in found.kept],
            "kept_left": found.kept_left,
        }

    @routes.post("", summary="Delete what is in a plan, as far as it is still planned")
    def carry_out(plan: str, request: Request) -> dict[str, Any]:
        return retention.carry_out(request, plan)

    return routes
