"""The Java archive, a Java client and ArchiveTool as child processes of the tests.

Both Java programs end when their stdin ends, so they cannot outlive the test run even when it is
killed. The jars are searched in $AEROTAPE_JARS, in `.make/jars` (see `make jars`) and in the local
Maven repository.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aerotape.context import Closing
from support.processes import FAST_ARCHIVE as FAST_ARCHIVE
from support.processes import FAST_DRIVER as FAST_DRIVER
from support.processes import ROOT as ROOT
from support.processes import ArchiveProcess, ChildProcess
from support.processes import HarnessError as HarnessError
from support.processes import free_port as free_port

JAVA_SOURCES = Path(__file__).resolve().parent / "harness"
AERON_ALL = "aeron-all-1.51.0.jar"
SBE_ALL = "sbe-all-1.38.1.jar"
PARQUET_AVRO = "parquet-avro-1.17.0.jar"
HADOOP = "3.5.0"
HADOOP_MINICLUSTER = f"hadoop-client-minicluster-{HADOOP}.jar"
DELTA = "4.4.0"
DELTA_SPARK = f"delta-spark_4.2_2.13-{DELTA}.jar"
DELTA_STORAGE = f"delta-storage-{DELTA}.jar"
_IN_MAVEN_REPOSITORY = {
    AERON_ALL: "io/aeron/aeron-all/1.51.0",
    SBE_ALL: "uk/co/real-logic/sbe-all/1.38.1",
    PARQUET_AVRO: "org/apache/parquet/parquet-avro/1.17.0",
    HADOOP_MINICLUSTER: f"org/apache/hadoop/hadoop-client-minicluster/{HADOOP}",
    DELTA_SPARK: f"io/delta/delta-spark_4.2_2.13/{DELTA}",
    DELTA_STORAGE: f"io/delta/delta-storage/{DELTA}",
}
JAVA_OPENS = (
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/java.util.zip=ALL-UNNAMED",  # Aeron's checksums
)
# The time that a Java client waits for a response; the machine may be busy.
_MESSAGE_TIMEOUT_NS = 30_000_000_000
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# A variable with options for all JVMs of a process and its children; each prints a line about it to
# its standard error.
QUICK_JVMS = {"JDK_JAVA_OPTIONS": " ".join(QUICK)}
_JVM_OPTIONS = (*JAVA_OPENS, *QUICK)


class JavaArchiveException(Exception):
    """An exception that a call has thrown in the Java client."""

    def __init__(self, message: str, error_code: int | None, exception: str) -> None:
        super().__init__(f"{exception}: {message}")
        self.message = message
        self.error_code = error_code
        self.exception = exception


def find_jar(name: str) -> Path:
    """Return the path of one of the jars that pom.xml names."""
    folders = [ROOT / ".make" / "jars"]
    if "AEROTAPE_JARS" in os.environ:
        folders.insert(0, Path(os.environ["AEROTAPE_JARS"]))
    folders.append(Path.home() / ".m2" / "repository" / _IN_MAVEN_REPOSITORY[name])
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    looked = ", ".join(map(str, folders))
    raise HarnessError(f"{name} is in none of {looked}: run `make jars`, or set AEROTAPE_JARS")


@functools.cache
def compiled_classes() -> Path:
    """Compile the harness, unless the same sources have been compiled before."""
    return compile_sources(sorted(JAVA_SOURCES.glob("*.java")), str(find_jar(AERON_ALL)))


def compile_sources(sources: Sequence[Path], class_path: str) -> Path:
    """Compile Java sources, unless the same have been compiled before; return the classes' folder.

    Args:
        sources: the files.
        class_path: the jars that they need.
    """
    key = hashlib.sha256()
    for source in sources:
        key.update(source.name.encode() + source.read_bytes())
    key.update(class_path.encode())
    cache = ROOT / ".make" / "java"
    classes = cache / key.hexdigest()[:16]
    if not classes.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="compiling-", dir=cache))
        command = ["javac", "-nowarn", "-cp", class_path, "-d", str(fresh)]
        done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(fresh)
            raise HarnessError(f"javac failed:\n{done.stderr}")
        try:
            fresh.rename(classes)
        except OSError:  # another test run has created it first
            shutil.rmtree(fresh)
    return classes


def java_command(
    main: str,
    *args: str,
    properties: Mapping[str, str] | None = None,
    options: Sequence[str] = _JVM_OPTIONS,
) -> list[str]:
    """Return the command that runs a class of aeron-all or of the harness, or a source file.

    Args:
        properties: system properties.
        options: of the JVM. Default: those for a quick start.
    """
    classpath = os.pathsep.join([str(find_jar(AERON_ALL)), str(compiled_classes())])
    defines = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    return ["java", *options, *defines, "-cp", classpath, main, *args]


class JavaArchive(ArchiveProcess):
    """The Java archive; it deletes the directory of its embedded driver when it is stopped."""

    def _launch(self) -> ChildProcess:
        properties = {
            **FAST_DRIVER,
            "aeron.dir": str(self.aeron_dir),
            "aeron.archive.dir": str(self.archive_dir),
            "aeron.dir.delete.on.shutdown": "true" if self.driver == "embedded" else "false",
            **self._properties,
        }
        return ChildProcess(
            java_command("harness.ArchiveProcess", self.driver, properties=properties)
        )

    def _is_ready(self, line: str) -> bool:
        return line == "READY"

    def stop(self) -> int:
        """Stop the archive cleanly and return its exit code. Idempotent."""
        code = self.process.stop()
        if self.driver == "embedded":
            shutil.rmtree(self.aeron_dir, ignore_errors=True)
        return code


class JavaClient(Closing):
    """A Java process with an Aeron client and, after `connect`, an AeronArchive client.

    `call(name, ...)` runs any public method of AeronArchive or Streams.java by its name:
    numbers and strings stand for longs, ints and enums, `{"handle": n}` for a publication or
    subscription, another dict for ReplayParams; methods with a descriptor consumer return its rows.
    Frequent calls have methods here.
    """

    def __init__(self, aeron_dir: Path | str, timeout_s: float = 60.0) -> None:
        self.timeout_s = timeout_s
        self._process = ChildProcess(java_command("harness.ClientProcess", str(aeron_dir)))
        try:
            self._answer()
        except BaseException:
            self._process.kill()
            self._process.stop()
            raise

    @property
    def process(self) -> ChildProcess:
        return self._process

    def call(self, method: str, *args: Any) -> Any:
        """Call a method; raise its exception as JavaArchiveException."""
        self._process.send(json.dumps({"method": method, "args": list(args)}))
        return self._answer()

    def _answer(self) -> Any:
        answer = json.loads(self._process.receive(self.timeout_s))
        if "error" in answer:
            raise JavaArchiveException(answer["error"], answer["errorCode"], answer["exception"])
        return answer["result"]

    def connect(
        self,
        control_channel: str,
        *,
        control_stream_id: int = 10,
        response_channel: str = "aeron:udp?endpoint=localhost:0",
        response_stream_id: int = 20,
        **context: Any,
    ) -> dict[str, int]:
        """Connect to an archive; `context` sets more of AeronArchive.Context (`clientName=…`).

        Returns controlSessionId and archiveId.
        """
        properties = {
            "controlRequestChannel": control_channel,
            "controlRequestStreamId": control_stream_id,
            "controlResponseChannel": response_channel,
            "controlResponseStreamId": response_stream_id,
            "messageTimeoutNs": _MESSAGE_TIMEOUT_NS,
            **context,
        }
        result: dict[str, int] = self.call("connect", properties)
        return result

    def add_publication(self, channel: str, stream_id: int) -> dict[str, Any]:
        """Return handle, sessionId, initialTermId, termBufferLength, position, …"""
        return dict(self.call("addPublication", channel, stream_id))

    def add_exclusive_publication(self, channel: str, stream_id: int) -> dict[str, Any]:
        return dict(self.call("addExclusivePublication", channel, stream_id))

    def add_subscription(self, channel: str, stream_id: int) -> dict[str, Any]:
        """Return handle, channel, streamId, registrationId."""
        return dict(self.call("addSubscription", channel, stream_id))

    def offer(
        self,
        publication: Mapping[str, Any],
        *,
        seed: int,
        count: int,
        first_index: int = 0,
        min_length: int = 32,
        max_length: int = 2048,
        timeout_ms: int = 30_000,
    ) -> dict[str, Any]:
        """Offer messages of support.model.messages and wait until all are accepted.

        Returns count, position and digest; HarnessError when not all could be offered in time.
        """
        handle = publication["handle"]
        offered = dict(
            self.call("offer", handle, seed, first_index, count, min_length, max_length, timeout_ms)
        )
        if offered["failure"] is not None:
            raise HarnessError(f"after {offered['count']} messages: {offered['failure']}")
        return offered

    def poll(
        self,
        subscription: Mapping[str, Any],
        count: int,
        *,
        timeout_ms: int = 30_000,
        details: bool = False,
    ) -> dict[str, Any]:
        """Poll up to `count` messages; stop early at the end of the stream.

        Returns count, bytes, digest, ended, firstPosition, lastPosition (ends of messages) and,
        with details, messages.
        """
        return dict(self.call("poll", subscription["handle"], count, timeout_ms, details))

    def close_resource(self, resource: Mapping[str, Any]) -> None:
        self.call("closeResource", resource["handle"])

    def recording_counter(self, session_id: int, timeout_ms: int = 30_000) -> dict[str, Any]:
        """Wait for the recording-position counter of a stream as RecordingPos finds it.

        Returns counterId, recordingId, sourceIdentity, isActive, label, position.
        """
        found = self.call("awaitRecordingCounter", session_id, timeout_ms)
        if found is None:
            raise HarnessError(f"no recording-position counter for session {session_id}")
        return dict(found)

    def await_counter(self, counter_id: int, value: int, timeout_ms: int = 30_000) -> int:
        """Wait for a counter to reach `value`; return its last value."""
        return int(self.call("awaitCounter", counter_id, value, timeout_ms))

    def close(self) -> None:
        """Close the client and end the process. Idempotent."""
        self._process.stop()


def archive_tool(
    archive_dir: Path | str, *args: str, answers: str = "", timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run the Java ArchiveTool on a directory; `answers` is its standard input."""
    command = java_command("io.aeron.archive.ArchiveTool", str(archive_dir), *args)
    return subprocess.run(command, input=answers, capture_output=True, text=True, timeout=timeout_s)
