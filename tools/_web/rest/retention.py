"""`/api/v1/retention`: what a policy would delete now. Nothing is deleted."""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from aerotape.archive.archive import EXTENSIONS
from aerotape.archive.extensions import first_hold
from aerotape.archive.retention.locked_segments import plan_directory
from aerotape.archive.retention.plan import RetentionPlan
from aerotape.archive.retention.policy import read_policy
from aerotape.archive.retention.survey import Usage
from aerotape.errors import ConfigurationError
from aerotape.tools._web.observed import ObservedArchive


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
        return plan_directory(
            self._observed.directory,
            read_policy(self._policy),
            time.time_ns(),
            partial(first_hold, EXTENSIONS),
            Usage(snapshot.positions(), replayed),
        )


def router(retention: Retention) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/retention", tags=["recordings"])

    @routes.get("", summary="What the policy of --retention would delete now, and what stays")
    def plan() -> dict[str, Any]:
        found = retention.plan()
        return {
            "removals": [
                {
                    "recording_id": each.recording_id,
                    "new_start_position": each.new_start_position,
                    "segments": each.segments,
                    "size_bytes": each.size_bytes,
                    "reasons": each.reasons,
                }
                for each in found.removals
            ],
            "kept": [dataclasses.asdict(each) for each in found.retained],
        }

    return routes
