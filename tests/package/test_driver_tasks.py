"""Tasks that wait for the media driver."""

from __future__ import annotations

import pytest

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.driver_tasks import add
from aerotape.errors import AeronError, AeronTimeoutError
from aerotape.waiting import Running, run


class Driver:
    """Respond to adds in order: raise an error; None is pending; the last response repeats."""

    def __init__(self, *responses: Exception | str | None) -> None:
        self.responses = list(responses)
        self.adds = 0
        self.cancels = 0

    def begin(self) -> Driver:
        self.adds += 1
        return self

    def poll(self) -> str | None:
        response = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(response, Exception):
            raise response
        return response

    def cancel(self) -> None:
        self.cancels += 1


def unavailable() -> AeronError:
    """A refusal that a retry may overcome."""
    return AeronError("address in use", RESOURCE_TEMPORARILY_UNAVAILABLE)


def test_a_temporarily_unavailable_resource_is_added_again() -> None:
    """The result is that of the attempt that succeeds."""
    driver = Driver(None, unavailable(), unavailable(), None, "added")
    assert run(add(driver.begin, "a stream", 5_000_000_000)) == "added"
    assert (driver.adds, driver.cancels) == (3, 0)


def test_all_attempts_share_the_timeout() -> None:
    """The error contains the driver's last reason."""
    with pytest.raises(AeronTimeoutError, match=r"not added a stream within 0.03 s: address in"):
        run(add(Driver(unavailable()).begin, "a stream", 30_000_000))


def test_a_cancelled_add_is_cancelled_at_the_driver() -> None:
    """The add timed out, or its task was closed."""
    driver = Driver(None)
    with pytest.raises(AeronTimeoutError, match=r"not added a stream within 0 s"):
        run(add(driver.begin, "a stream", 0))
    running = Running(add(driver.begin, "a stream", 5_000_000_000))
    assert running.advance()
    assert not running.is_done
    running.close()
    assert (driver.adds, driver.cancels) == (2, 2)
