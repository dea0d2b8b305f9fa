"""Archives that run on damaged directories, with all requests that a command can send."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from support.daemon.served import check_served, connect, launch
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import (
    HIDDEN,
    BuiltDirectory,
    copy_directory,
    recording_of,
    surviving,
)
from support.damage.damages import DAMAGES, Hit
from support.damage.tool_commands import COMMANDS, POLICY, Done, check_tidy, run

_TERM = 65_536
_KINDS = (
    "none",
    "cut-short",
    "flipped-headers",
    "zeroed-pages",
    "garbage-pages",
    "duplicated",
    "garbage-behind",
    "torn-entry",
    "garbage-length",
    "duplicate-id",
    "negative-position",
    "other-position",
    "garbage-state",
)
# Requests for a damaged recording that cannot do harm.
_READS = (
    "list",
    "list --id ID",
    "find aeron 1001 1",
    "position ID",
    "replay ID --no-follow",
    "subscriptions",
    "ping",
)
_READS_OF_A_DIRECTORY = ("describe-all", "dump", "verify-dry", "stats", "pid", "retain-dry")
_WRITES = (
    "update-channel ID aeron:ipc?alias=other",
    "extend ID aeron:ipc 4711",
    "stop aeron:ipc 4711",
    "segments detach ID POSITION",
    "segments attach ID",
    "segments purge ID POSITION --yes",
    "segments delete ID --yes",
    "segments migrate ID OTHER",
    "segments migrate OTHER ID",
    "truncate ID POSITION --yes",
    "purge ID --yes",
)


@pytest.mark.parametrize("kind", _KINDS)
def test_commands_to_an_archive_on_a_damaged_directory(
    built: BuiltDirectory, tmp_path: Path, driver_dir: Path, kind: str
) -> None:
    """After any request, also for a damaged recording, all others stay whole and are served."""
    directory = copy_directory(built.path, tmp_path / "archive")
    hit = Hit("nothing", frozenset())
    if kind != "none":
        hit = DAMAGES[kind](built, directory, random.Random(f"{kind} 1"))
    (tmp_path / "policy.toml").write_text(POLICY)
    source = copy_directory(directory, tmp_path / "damaged")
    frames = surviving(built, directory)
    target = min(hit.recordings - {HIDDEN}, default=0)
    other, purged = [each for each in (5, 4, 0) if each not in {*hit.recordings, target}][:2]
    options = [f"--aeron-dir={driver_dir}", "--control-channel=aeron:ipc"]
    options += ["--response-channel=aeron:ipc", "--timeout=60s"]
    words = {"ID": str(target), "OTHER": str(other)}
    words["POSITION"] = str(built.originals[target].stream.segment_base(3 * _TERM))

    def ask(command: str) -> Done:
        done = run(*(words.get(word, word) for word in command.split()), *options)
        check_tidy(command, done)
        return done

    with launch(directory, driver_dir), connect(driver_dir) as client:
        for command in _READS:
            ask(command)
        for name in _READS_OF_A_DIRECTORY:
            check_tidy(name, run(*COMMANDS[name].arguments(directory, tmp_path)))
        check_served(client, built, source, hit)
        assert not frames - surviving(built, directory)
        assert ask(f"purge {purged} --yes").code == 0
        await_gone(directory, purged)
        touched = frozenset({target, purged})
        now = Hit(hit.what, hit.recordings | touched, hit.entries | touched)
        check_served(client, built, source, now)
        for command in _WRITES:
            ask(command)
        check_served(client, built, source, now)
    lost = {recording_of(key) for key in frames - surviving(built, directory)}
    assert lost <= touched
    check_untouched(built, directory, now)
    with launch(directory, driver_dir), connect(driver_dir) as client:
        check_served(client, built, source, now)


def await_gone(directory: Path, recording_id: int) -> None:
    deadline_s = time.monotonic() + 60
    while any(directory.glob(f"{recording_id}-*")):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
