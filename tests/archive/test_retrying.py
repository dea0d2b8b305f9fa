"""Requests that the driver refuses temporarily are repeated."""

from __future__ import annotations

from typing import Any

import pytest

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.archive.retrying import Retrying
from aerotape.errors import AeronError

BUSY = AeronError("in use", RESOURCE_TEMPORARILY_UNAVAILABLE)


class Driver:
    """Responds to requests with the given objects, one a poll."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests = self.cancelled = 0

    def begin(self) -> Any:
        self.requests += 1
        return self

    def poll(self) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.mark.parametrize("deadline_ns", [None, 1 << 62], ids=["without", "with a deadline"])
def test_a_temporary_refusal_is_retried(deadline_ns: int | None) -> None:
    """It is repeated at each poll until the driver accepts it; the added resource is not
    cancelled."""
    driver = Driver(BUSY, None, BUSY, BUSY, "added")
    retrying: Retrying[str] = Retrying(driver.begin, deadline_ns)
    assert [retrying.poll() for _ in range(5)] == [None, None, None, None, "added"]
    assert driver.requests == 4
    retrying.cancel()
    assert driver.cancelled == 0


@pytest.mark.parametrize(
    ("error", "deadline_ns"), [(AeronError("invalid channel", -1), None), (BUSY, 0)]
)
def test_a_permanent_refusal_is_raised(error: AeronError, deadline_ns: int | None) -> None:
    """Any other error is raised at once, a temporary refusal at the deadline."""
    driver = Driver(error)
    retrying: Retrying[str] = Retrying(driver.begin, deadline_ns)
    with pytest.raises(AeronError, match=str(error)):
        retrying.poll()
    assert driver.requests == 1


def test_a_request_is_cancelled_once() -> None:
    """Between a refusal and the next request there is nothing to cancel."""
    driver = Driver(None, BUSY)
    for answered, cancelled in ((1, 1), (1, 1)):
        retrying: Retrying[str] = Retrying(driver.begin)
        for _ in range(answered):
            retrying.poll()
        retrying.cancel()
        retrying.cancel()
        assert driver.cancelled == cancelled
