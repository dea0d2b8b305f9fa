"""`/api/v1/retention`: what a policy would delete now. Nothing is deleted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from aerotape.archive.retention.plan import RetentionPlan
from aerotape.archive.retention.policy import read_policy
from aerotape.archive.retention.survey import Usage
from aerotape.errors import ConfigurationError
from aerotape.tools._cli.output import as_row
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools.retain import plan_now, removal_row


class Retention:
    """Plans what a policy deletes from the directory of an archive."""

    def __init__(self, observed: ObservedArchive, policy: Path | None) -> None:
        """Create it; nothing is read.

        Args:
            observed: the archive.
            policy: the policy, a TOML file; None: there is none.
        """
        self._observed = observed
        self._policy = policy

    def plan(self) -> RetentionPlan:
        """Return the plan for now (ConfigurationError, CatalogError, StorageError)."""
        if self._policy is None:
            raise ConfigurationError(
                "there is no retention policy: start the service with --retention", "--retention"
            )
        snapshot = self._observed.snapshot()
        replayed: dict[int, int] = {}
        for each in snapshot.replays:
            least = min(each.position, replayed.get(each.recording_id, each.position))
            replayed[each.recording_id] = least
        usage = Usage(snapshot.positions(), replayed)
        return plan_now(self._observed.directory, read_policy(self._policy), usage)


def router(retention: Retention) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/retention", tags=["recordings"])

    @routes.get("", summary="What the policy of --retention would delete now, and what stays")
    def plan() -> dict[str, Any]:
        found = retention.plan()
        return {
            "removals": [as_row(removal_row(each)) for each in found.removals],
            "kept": [dataclasses.asdict(each) for each in found.retained],
        }

    return routes
