"""Recordings of two Java archives, both with recording 0, in the store of a third archive."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.scoped_store import do_import, payloads, tree
from support.daemon.archives import ARCHIVES
from support.daemon.command_line import aerotape as command
from support.jvm.java import archive_tool
from support.model.messages import messages
from support.processes import ArchiveProcess

import aerotape
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.jvm

StartArchive = Callable[..., ArchiveProcess]
COUNT = 200
MAX_LENGTH = 3_000
CHANNEL = "aeron:ipc?term-length=64k"
# The second one is negative in int64 fields.
SCOPES = {1: 1, 2: (1 << 64) - 9}
PROPERTIES = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}


@pytest.fixture
def start_archive(aeron_dir: Path) -> StartArchive:
    """A function that creates an archive with a new embedded driver."""

    def start(kind: str, **options: Any) -> ArchiveProcess:
        shutil.rmtree(aeron_dir, ignore_errors=True)
        return ARCHIVES[kind](aeron_dir=aeron_dir, **options)

    return start


def sent(seed: int) -> list[bytes]:
    return list(messages(seed, COUNT, max_length=MAX_LENGTH))


def connect(archive: ArchiveProcess) -> aerotape.ArchiveClient:
    return aerotape.connect(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    )


def record(start_archive: StartArchive, kind: str, directory: Path, id: int, seed: int) -> None:
    """Record messages as recording 0 of an archive with an id, and stop it."""
    settings = {"aeron.archive.id": str(id), **PROPERTIES}
    with (
        start_archive(kind, archive_dir=directory, properties=settings) as archive,
        connect(archive) as client,
    ):
        publication = client.add_recorded_exclusive_publication(CHANNEL, 10)
        for payload in sent(seed):
            publication.send(payload)
        deadline = time.monotonic() + 60
        while client.recording_position(0) < publication.position:
            assert time.monotonic() < deadline
        end = publication.position
        publication.close()
        while client.stop_position(0) != end:
            assert time.monotonic() < deadline


def replayed(client: aerotape.ArchiveClient, scope_id: int | None) -> list[bytes]:
    with client.replay(0, scope_id=scope_id) as replay:
        return [bytes(message.payload) for message in replay]


@pytest.mark.spark
def test_two_java_archives_are_imported_into_one_store(
    start_archive: StartArchive, tmp_path: Path, spark: SparkSession
) -> None:
    """Listing, replay and Spark show both by scope; ArchiveTool verifies each directory; a Java
    archive reads it; nothing of the sources changes."""
    store = tmp_path / "store"
    sources = {seed: tmp_path / f"java-{seed}" for seed in SCOPES}
    for seed, source in sources.items():
        signed = SCOPES[seed] - (1 << 64) if SCOPES[seed] >> 63 else SCOPES[seed]
        record(start_archive, "java", source, signed, seed)
    record(start_archive, "aerotape", store, 77, 3)
    before = {seed: tree(source) for seed, source in sources.items()}
    own = tree(store)

    settings = {"aeron.archive.id": "77", **PROPERTIES}
    with (
        start_archive("aerotape", archive_dir=store, properties=settings) as archive,
        connect(archive) as client,
    ):
        # While the archive of the store runs. The scope is the archive id of the source.
        for source in sources.values():
            done = command("ledger", "import-archive", source, "--archive-dir", store, "--json")
            assert json.loads(done.out)["result"] == "imported"
        for seed, scope_id in (*SCOPES.items(), (3, None)):
            assert [each.recording_id for each in client.list_recordings(scope_id=scope_id)] == [0]
            assert replayed(client, scope_id) == sent(seed)
        options = ("--aeron-dir", archive.aeron_dir, "--control-channel", archive.control_channel)
        scoped = ("--ledger-scope-id", SCOPES[2], *options)
        [row] = json.loads(command("list", "--json", *scoped).out)
        assert (row["recording_id"], row["stream_id"]) == (0, 10)
        summary = json.loads(command("replay", 0, "--json", *scoped).out)
        assert summary["messages"] == COUNT
        ledger = json.loads(command("ledger", "list", "--json", *scoped).out)
        assert (ledger["type"], ledger["qualified_name"]) == (
            "RECORDING",
            "f" * 15 + "7" + "0" * 16,
        )
        first = ("--ledger-id", 0, "--last", 1, "--json", *scoped)
        texts = command("ledger", "read", *first).out.splitlines()
        assert [json.loads(each)["entry_id"] for each in texts] == [0, 1]
    assert {seed: tree(source) for seed, source in sources.items()} == before
    flat = {name: data for name, data in tree(store).items() if "/" not in name}
    unchanged = own.keys() - {"archive-mark.dat"}  # the time of the last start
    assert {name: flat[name] for name in unchanged} == {name: own[name] for name in unchanged}

    directory = open_directory(store)
    assert directory.scopes() == [1, 77, SCOPES[2]]
    for seed, scope_id in SCOPES.items():
        [recording] = directory.scope(scope_id).recordings()
        assert payloads(recording) == sent(seed)
        folder = recording.archive_dir
        verify = ("verify", "-a", "-checksum", "io.aeron.archive.checksum.Crc32c")
        verified = archive_tool(folder, *verify, answers="y\n")
        assert verified.returncode == 0, verified.stderr
        assert "(recordingId=0) OK" in verified.stdout
    described = archive_tool(folder, "describe")
    assert described.returncode == 0, described.stderr
    assert f"stopPosition={recording.descriptor.stop_position}" in described.stdout

    rows = (
        spark.read.format("aerotape")
        .option("scopeIds", "all")
        .load(str(store))
        .select("scope_id", "recording_id", "qualified_name", "position", "payload")
        .orderBy("qualified_name", "position")
        .collect()
    )
    for seed, scope_id in (*SCOPES.items(), (3, 77)):
        id = QualifiedId(scope_id, 0)
        found = [row for row in rows if row.qualified_name == str(id)]
        assert {(row.scope_id, row.recording_id) for row in found} == {id.signed}
        assert [bytes(row.payload) for row in found] == sent(seed)
    assert len(rows) == 3 * COUNT

    # A Java archive on a copy, because it writes its mark file.
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with start_archive("java", archive_dir=copy) as archive, connect(archive) as client:
        [descriptor] = client.list_recordings()
        assert descriptor == recording.descriptor
        assert replayed(client, None) == sent(2)


def test_imports_are_equal_bytes(tmp_path: Path, start_archive: StartArchive) -> None:
    """An imported segment file is that of the Java archive, byte for byte, and a second import of
    the same archive changes nothing."""
    store, source = tmp_path / "store", tmp_path / "java"
    record(start_archive, "java", source, 4, 1)
    record(start_archive, "aerotape", store, 5, 2)
    [outcome] = do_import(store, source, 4)
    before = tree(store)
    for path in source.glob("0-*.rec"):
        assert (outcome.directory / path.name).read_bytes() == path.read_bytes()
    outcomes: list[Any] = do_import(store, source, 4)
    assert [each.result for each in outcomes] == ["present"]
    assert tree(store) == before
