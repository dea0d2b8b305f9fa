"""Names of the archive's threads."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from support.daemon.recording import start_recording, stop
from support.processes import free_port

import aerotape


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED"])
@pytest.mark.parametrize(
    ("naming", "expected", "prefix"),
    [
        ("classic", {"conductor": "conductor", "worker": "worker"}, "archive-"),
        ("new", {"conductor": "cnd", "worker": "shd"}, "aeron-ar-"),
    ],
)
def test_threads_have_names(
    tmp_path: Path, aeron_dir: Path, naming: str, expected: dict[str, str], prefix: str, mode: str
) -> None:
    """The archive's threads have names for the operating system, as `aeron.thread.naming` says."""
    properties = {
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
        "aeron.archive.file.sync.level": "1",
        "aeron.archive.catalog.file.sync.level": "1",
        "aeron.archive.low.storage.space.threshold": "1m",
        "aeron.archive.threading.mode": mode,
        "aeron.thread.naming": naming,
    }
    before = _threads()
    with (
        aerotape.Archive.launch(
            dir=tmp_path / "archive", aeron_dir=aeron_dir, properties=properties
        ),
        aerotape.connect(aeron_dir=aeron_dir) as client,
    ):
        made = start_recording(client, count=1)
        # Other tests may have left threads of the same names.
        names = {name for _, name in _threads() - before}
        stop(client, made)
    native = ["worker"] if mode == "SHARED" else ["recorder", "replayer"]
    roles = {"recorder": "rec", "replayer": "rep"} if naming == "new" else {}
    wanted = [expected["conductor"]]
    wanted += [expected.get(role, roles.get(role, role)) for role in native]
    wanted += ["probe", "mark", *(f"sync{number}" for number in range(16))]
    assert {f"{prefix}{each}"[:15] for each in wanted} <= names
    own = {each for each in names if each.startswith(("archive-", "aeron-ar-"))}
    assert {each for each in own if not each.startswith(prefix)} == set()


def test_an_unknown_thread_naming_is_refused(tmp_path: Path, aeron_dir: Path) -> None:
    """The error has the property, the value and what is expected."""
    with pytest.raises(aerotape.ConfigurationError, match=r"aeron\.thread\.naming='old': must be"):
        aerotape.Archive.launch(
            tmp_path / "archive", aeron_dir, "external", {"aeron.thread.naming": "old"}
        )


def _threads() -> set[tuple[str, str]]:
    """Return the id and the name of each thread of this process."""
    threads = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            threads.add((task.name, (task / "comm").read_text().strip()))
    return threads
