"""Owners of locks: which processes are known to have ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from aerotape.entity.stores.owner import is_dead, new_owner

IS_DEAD = (
    "import sys; from aerotape.entity.stores.owner import *; print(is_dead(sys.argv[1]))"
)
NEW_OWNER = "from aerotape.entity.stores.owner import *; print(new_owner())"


def python(code: str, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
    command = [*prefix, sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_process_that_has_ended() -> None:
    """A process of this namespace is dead when it has ended, not before."""
    assert is_dead(python(NEW_OWNER))
    assert not is_dead(new_owner())
    assert python(IS_DEAD, new_owner()) == "False"
    assert not is_dead(new_owner().replace(f"/{os.getpid()}/", "/1/"))


def test_owners_of_unknown_processes() -> None:
    """Owners of earlier versions, other hosts, boots and other texts are never found dead."""
    gone = (1 << 22) - 1
    host, boot, space, _, random = new_owner().split("/")
    for owner in (
        f"{host}/{gone}/{random}",
        f"{host}/{gone}",
        f"{host}/{boot}/{space}",
        f"another/{boot}/{space}/{gone}/{random}",
        f"{host}/another/{space}/{gone}/{random}",
        f"{host}/{boot}/1{space}/{gone}/{random}",
        f"{host}/{boot}/{space}/x/{random}",
        f"{host}/{boot}/{space}/{1 << 70}/{random}",
        "",
    ):
        assert not is_dead(owner), owner
    assert is_dead(f"{host}/{boot}/{space}/{gone}/{random}")
    assert host == socket.gethostname()


@pytest.mark.root
def test_another_pid_namespace() -> None:
    """A live process is not dead for one in another PID namespace, where its id does not exist."""
    unshare = ("unshare", "--pid", "--fork")
    assert python(IS_DEAD, new_owner(), prefix=unshare) == "False"
    ended = python(NEW_OWNER, prefix=unshare)
    assert not is_dead(ended)
    assert ended.split("/")[:2] == new_owner().split("/")[:2]
