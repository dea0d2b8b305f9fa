"""Connecting to an archive, at once or with --wait; the options and settings for it."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path

import pytest
from support.daemon.archives import EMBEDDED_DRIVER
from support.daemon.command_line import CommandLine

import aerotape
from aerotape import _native
from aerotape.errors import AeronError
from aerotape.tools._cli.main import main


@pytest.mark.parametrize("command", [("list",), ("replay", "0")], ids=" ".join)
def test_without_a_driver_commands_fail_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """The error names the options that a shell user can set."""
    begin_s = time.monotonic()
    assert main([*command, "--aeron-dir", str(tmp_path)]) == 1
    assert time.monotonic() - begin_s < 5  # the default timeout is 10 s
    [line] = capsys.readouterr().err.splitlines()
    assert f"no media driver in {tmp_path}: start one, wait for it with --wait, or" in line
    assert "(--aeron-dir, $AERON_DIR)" in line


def test_messages_in_python_name_arguments(tmp_path: Path) -> None:
    """An error in Python does not name command options."""
    with pytest.raises(AeronError) as caught:
        aerotape.connect(aeron_dir=tmp_path, start_timeout_ns=0)
    assert "(aeron_dir, $AERON_DIR)" in str(caught.value)
    assert "--" not in str(caught.value)


def test_commands_wait_for_a_driver_and_its_archive(
    tmp_path: Path, aeron_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --wait, processes that start later are found, even after a driver that was killed."""
    driver = _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), **EMBEDDED_DRIVER})
    left = bytearray((aeron_dir / "cnc.dat").read_bytes())
    driver.close()
    heartbeat_at = int.from_bytes(left[4:8], "little")
    left[heartbeat_at : heartbeat_at + 8] = (1_000).to_bytes(8, "little")
    aeron_dir.mkdir(exist_ok=True)
    (aeron_dir / "cnc.dat").write_bytes(left)
    codes: list[int] = []

    def wait_and_list() -> None:
        arguments = ["list", "--aeron-dir", str(aeron_dir), "--timeout", "200ms", "--json"]
        codes.append(main([*arguments, "--wait"]))

    waiting = threading.Thread(target=wait_and_list)
    waiting.start()
    time.sleep(0.5)
    with (
        aerotape.MediaDriver.launch(aeron_dir, EMBEDDED_DRIVER),
        # Not at once: a driver runs without an archive.
        contextlib.ExitStack() as stack,
    ):
        time.sleep(0.5)
        stack.enter_context(
            aerotape.Archive.launch(
                dir=tmp_path / "archive",
                aeron_dir=aeron_dir,
                driver="external",
                properties={"aeron.archive.control.channel.enabled": False},
            )
        )
        waiting.join(60)
    assert codes == [0]
    assert capsys.readouterr().out == "[]\n"


def test_without_an_archive_the_error_names_the_options(
    aeron_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The timeout applies only where a driver runs."""
    with aerotape.MediaDriver.launch(aeron_dir, EMBEDDED_DRIVER):
        assert main(["list", "--aeron-dir", str(aeron_dir), "--timeout", "200ms"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "no archive listens on aeron:ipc" in line
    assert "(--control-channel, --control-stream-id)" in line
    assert main(["list", "--control-channel", "aeron:udp?endpoint=192.0.2.1:8010"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "(--response-channel)" in line


def test_an_empty_list_is_reported_on_a_terminal(
    tmp_path: Path,
    aeron_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On standard error, and only on a terminal."""
    where = ("--aeron-dir", str(aeron_dir))
    with aerotape.Archive.launch(
        dir=tmp_path / "archive",
        aeron_dir=aeron_dir,
        properties={**EMBEDDED_DRIVER, "aeron.archive.control.channel.enabled": False},
    ):
        assert main(["list", *where]) == 0
        shown = capsys.readouterr()
        assert (shown.out, shown.err) == ("", "")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        for command, note in [
            (("list",), "no recordings"),
            (("list", "--stream-id", "5"), "no recordings match"),
            (("subscriptions",), "no recording subscriptions"),
        ]:
            assert main([*command, *where]) == 0
            shown = capsys.readouterr()
            assert (shown.out, shown.err) == ("", f"{note}\n")
        assert main(["list", *where, "--json"]) == 0
        shown = capsys.readouterr()
        assert (shown.out, shown.err) == ("[]\n", "")


def test_precedence_of_options_and_properties(cli: CommandLine) -> None:
    """An option overrides -D, which overrides the environment; each alone finds the archive."""
    bare = {name: value for name, value in cli.environment.items() if not name.startswith("AERON_")}
    aeron_dir, channel = cli.archive.aeron_dir, cli.archive.control_channel
    by_options = ("--aeron-dir", aeron_dir, "--control-channel", channel)
    by_properties = (f"-Daeron.dir={aeron_dir}", f"-Daeron.archive.control.channel={channel}")
    wrong = ("-Daeron.dir=/nowhere", "-Daeron.archive.control.channel=aeron:udp?endpoint=a:1")
    cli.run("list", *by_options, env=bare)
    cli.run("list", *by_properties, env=bare)
    cli.run("list", *wrong, *by_options)
    # Without a control channel IPC is used, which also finds a local archive.
    cli.run("list", "--aeron-dir", aeron_dir, env=bare)
    assert "response channel" in cli.error("list", *wrong, code=2)
    assert "/nowhere" in cli.error("list", wrong[0], "--timeout", "1s")


def test_ping(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """The archive id and the round-trip times."""
    answer = cli.json("ping", "--count", 3)
    assert (answer["archive_id"], answer["round_trips"]) == (client.archive_id, 3)
    assert answer["protocol_version"] == client.archive_version
    assert 0 < answer["min_us"] <= answer["median_us"] <= answer["max_us"]
