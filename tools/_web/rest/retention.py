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

from aerotape.archive.retention.plan import RetentionPlan
from aerotape.archive.retention.policy import read_policy
from aerotape.archive.retention.survey import Usage
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError, ConfigurationError
from aerotape.tools._cli.output import as_row
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.answers import row_text
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools.retain import plan_now, removal_row, remove, still_planned

_MAX_PLANS: Final = 16
_MAX_S: Final = 10.0
"""After so long no further removal is begun, seconds."""
_REQUESTS: Final = (
    codecs.PurgeRecordingRequest.TEMPLATE_ID,
    codecs.PurgeSegmentsRequest.TEMPLATE_ID,
)


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

    def plan(self) -> RetentionPlan:
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

    def named(self) -> tuple[str, RetentionPlan]:
        """Return a plan with its name, by which it can be carried out; the last 16 are known."""
        plan = self.plan()
        rows = row_text([as_row(removal_row(each)) for each in plan.removals])
        name = hashlib.blake2b(rows.encode(), digest_size=16).hexdigest()
        with self._lock:
            self._plans[name] = plan
            self._plans.move_to_end(name)
            while len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        return name, plan

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
        plan, changed = still_planned(shown, self.plan())
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
                problem = str(error)
            done.append({**as_row(removal_row(removal)), "problem": problem})
        return {"removals": done, "changed": changed, "left": len(plan.removals) - len(done)}


def router(retention: Retention) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/retention", tags=["recordings"])

    @routes.get("", summary="What the policy of --retention would delete now, and what stays")
    def plan() -> dict[str, Any]:
        name, found = retention.named()
        return {
            "plan": name,
            "removals": [as_row(removal_row(each)) for each in found.removals],
            "kept": [dataclasses.asdict(each) for each in found.retained],
        }

    @routes.post("", summary="Delete what is in a plan, as far as it is still planned")
    def carry_out(plan: str, request: Request) -> dict[str, Any]:
        return retention.carry_out(request, plan)

    return routes
