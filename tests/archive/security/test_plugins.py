"""Plug-ins by name: they are loaded, or refused with the reason."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.daemon.authenticator import Actions, Guard

import aerotape
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.security.authentication import AllowAll, SessionProxy
from aerotape.archive.security.authorisation import (
    AllowAllActions,
    DenyAllActions,
    GuardedAuthorisation,
)
from aerotape.archive.security.plugins import load_authenticator, load_authorisation_service
from aerotape.errors import ConfigurationError


def fails() -> Any:
    """A factory with a fault."""
    raise OSError("no directory server")


class Asynchronous(Guard):
    """An authenticator with a coroutine that would never be awaited."""

    async def on_connected_session(self, session_proxy: object, now_ms: int) -> None:  # type: ignore[override]
        """Unused."""


class Curious(Guard):
    """An authenticator that stores the sources of clients."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: set[str] = set()

    def on_connected_session(self, session_proxy: SessionProxy, now_ms: int) -> None:
        """Unused."""
        self.sources.add(session_proxy.source_identity)
        super().on_connected_session(session_proxy, now_ms)


class Counting:
    """A counter of errors."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, delta: int) -> int:
        self.count += delta
        return self.count


def test_names_of_the_reference_have_the_same_meaning() -> None:
    """The default authenticator's Java class, ALLOW_ALL, DENY_ALL and an empty value are
    accepted."""
    java_default = load_authenticator("io.aeron.security.DefaultAuthenticatorSupplier")
    assert isinstance(java_default, AllowAll)
    assert isinstance(load_authorisation_service(""), AllowAllActions)
    assert isinstance(load_authorisation_service("ALLOW_ALL"), AllowAllActions)
    assert isinstance(load_authorisation_service("DENY_ALL"), DenyAllActions)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("com.example.Guard", "Java classes cannot be loaded"),
        ("io.aeron.security.SimpleAuthenticator", "Java classes cannot be loaded"),
        ("", "Java classes cannot be loaded"),
        ("ALLOW_ALL", "Java classes cannot be loaded"),
        ("support.daemon.authenticator", "package.module:factory"),
        ("no.such.module:make", "cannot be loaded: ModuleNotFoundError: No module named 'no'"),
        ("support.daemon.authenticator:Missing", "has no attribute 'Missing'"),
        ("support.daemon.authenticator:READS", "cannot be loaded: TypeError"),
        ("support.daemon.authenticator:Actions", "Actions is not an authenticator: it has no"),
        (f"{__name__}:fails", "OSError: no directory server"),
        (f"{__name__}:Asynchronous", "on_connected_session is asynchronous"),
    ],
)
def test_an_invalid_authenticator_is_an_error(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is one line with the property, the value and the alternative."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[fails.__module__])
    with pytest.raises(ConfigurationError, match=why) as caught:
        load_authenticator(name)
    assert str(caught.value).startswith(f"aeron.archive.authenticator.supplier={name}: ")
    assert "\n" not in str(caught.value)
    assert caught.value.name == "aeron.archive.authenticator.supplier"


def test_a_java_authorisation_service_is_an_error(tmp_path: Path) -> None:
    """It is refused before a driver, a directory or a thread is created."""
    properties = {"aeron.archive.authorisation.service.supplier": "com.example.Rules"}
    with pytest.raises(ConfigurationError, match="Java classes cannot be loaded"):
        aerotape.Archive.launch(dir=tmp_path / "archive", properties=properties)
    assert not (tmp_path / "archive" / "archive-mark.dat").exists()
    with pytest.raises(ConfigurationError, match="authenticator: dict is not an authenticator"):
        aerotape.Archive.launch(dir=tmp_path / "archive", authenticator={})  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, 1, "yes", [True]])
def test_only_true_allows(answer: object) -> None:
    """Any other value, even a truthy one such as a coroutine, refuses the request."""

    class Odd:
        def is_authorised(self, *_: object) -> Any:
            return answer

    counter: Any = Counting()
    guarded = GuardedAuthorisation(Odd(), ErrorLog(counter))
    assert guarded.is_authorised(101, 4, b"alice") is False
    assert counter.count == 1


def test_objects_may_be_given_to_launch(tmp_path: Path, aeron_dir: Path) -> None:
    """Python arguments take precedence over properties."""
    guard = Curious()
    with aerotape.Archive.launch(
        dir=tmp_path / "archive",
        aeron_dir=aeron_dir,
        authenticator=guard,
        authorisation_service=Actions(),
        properties={
            "aeron.archive.control.channel.enabled": "false",
            "aeron.archive.authenticator.supplier": "support.daemon.authenticator:Missing",
        },
    ):
        with pytest.raises(aerotape.ArchiveError, match="AUTHENTICATION_REJECTED"):
            aerotape.connect(aeron_dir=aeron_dir, credentials=b"open sesame")
        with aerotape.connect(aeron_dir=aeron_dir, credentials=b"open:reader") as client:
            assert list(client.list_recordings()) == []
            with pytest.raises(aerotape.ArchiveError, match="UNAUTHORISED_ACTION"):
                client.start_recording("aeron:ipc", 5)
    assert guard.sources == {"aeron:ipc"}
