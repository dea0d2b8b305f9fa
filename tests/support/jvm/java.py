"""The Java archive, a Java client and ArchiveTool as child processes of the tests.

Both Java programs end when their stdin ends, so they cannot outlive the test run even when it is
killed. The jars are looked for in $AEROTAPE_JARS, in `.make/jars` (which `make jars` fills) and in
the local Maven repository.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import json
import os
import queue
import random
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from aerotape.context import Closing

# Not Python's own generator, which hypothesis seeds alike each time.
_PORTS = random.SystemRandom()
ROOT = Path(__file__).resolve().parents[3]
JAVA_SOURCES = Path(__file__).resolve().parent / "harness"
AERON_ALL = "aeron-all-1.51.0.jar"
SBE_ALL = "sbe-all-1.38.1.jar"
PARQUET_AVRO = "parquet-avro-1.17.0.jar"
HADOOP = "3.5.0"
HADOOP_MINICLUSTER = f"hadoop-client-minicluster-{HADOOP}.jar"
_IN_MAVEN_REPOSITORY = {
    AERON_ALL: "io/aeron/aeron-all/1.51.0",
    SBE_ALL: "uk/co/real-logic/sbe-all/1.38.1",
    PARQUET_AVRO: "org/apache/parquet/parquet-avro/1.17.0",
    HADOOP_MINICLUSTER: f"org/apache/hadoop/hadoop-client-minicluster/{HADOOP}",
}
JAVA_OPENS = (
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/java.util.zip=ALL-UNNAMED",  # Aeron's checksums
)
# How long a Java client waits for an answer; the machine may be busy.
_MESSAGE_TIMEOUT_NS = 30_000_000_000
_JVM_OPTIONS = (*JAVA_OPENS, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# Small and quiet: one driver thread, sparse files, short timeouts.
FAST_DRIVER = {
    "aeron.threading.mode": "SHARED",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.term.buffer.length": "65536",
    "aeron.ipc.term.buffer.length": "65536",
    "aeron.dir.delete.on.start": "true",
    "aeron.shared.idle.strategy": "org.agrona.concurrent.BackoffIdleStrategy",
}
FAST_ARCHIVE = {
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "65536",
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
    "aeron.archive.recording.events.enabled": "false",
}


class JavaArchiveException(Exception):
    """What a call threw inside the Java client."""

    def __init__(self, message: str, error_code: int | None, exception: str) -> None:
        super().__init__(f"{exception}: {message}")
        self.message = message
        self.error_code = error_code
        self.exception = exception


class HarnessError(Exception):
    """The harness itself failed: a process did not start, died or did not answer in time."""


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
    """Compile the Java sources, unless this very text has been compiled before."""
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    key = hashlib.sha256()
    for source in sources:
        key.update(source.name.encode() + source.read_bytes())
    cache = ROOT / ".make" / "java"
    classes = cache / key.hexdigest()[:16]
    if not classes.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="compiling-", dir=cache))
        command = ["javac", "-nowarn", "-cp", str(find_jar(AERON_ALL)), "-d", str(fresh)]
        done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(fresh)
            raise HarnessError(f"javac failed:\n{done.stderr}")
        try:
            fresh.rename(classes)
        except OSError:  # another test run was quicker
            shutil.rmtree(fresh)
    return classes


def java_command(main: str, *args: str, properties: Mapping[str, str] | None = None) -> list[str]:
    """Return the command that runs a class of aeron-all or of the harness."""
    classpath = os.pathsep.join([str(find_jar(AERON_ALL)), str(compiled_classes())])
    defines = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    return ["java", *_JVM_OPTIONS, *defines, "-cp", classpath, main, *args]


def free_port() -> int:
    """Return a UDP port of the loopback interface that nobody holds at the moment.

    Not one of those that the system gives out for port 0: such a one might be given to somebody
    before it is used.
    """
    while True:
        port = _PORTS.randrange(10_000, _first_ephemeral_port())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@functools.cache
def _first_ephemeral_port() -> int:
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(first)


class JavaProcess:
    """A child that speaks in lines on stdout, ends at the end of its stdin, and logs stderr."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            bufsize=1,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._log: collections.deque[str] = collections.deque(maxlen=500)
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._read_log)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._process.wait()
        self._readers[1].join(timeout=5.0)
        self._lines.put(None)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
        except (BrokenPipeError, ValueError) as error:
            raise HarnessError(f"the Java process has ended:\n{self.log()}") from error

    def receive(self, timeout_s: float) -> str:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise HarnessError(f"no answer within {timeout_s} s:\n{self.log()}") from None
        if line is None:
            self._lines.put(None)
            raise HarnessError(f"the Java process has ended:\n{self.log()}")
        return line

    def log(self) -> str:
        """Return the last lines that the process has written to stderr."""
        return "".join(self._log.copy())

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self, timeout_s: float = 15.0) -> int:
        """Let it end by itself; kill it if it does not. Return its exit code."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        return self._process.returncode


class JavaArchive(Closing):
    """A running Java archive, with an embedded driver or (`driver="external"`) on a running one.

    `properties` are further system properties. The media driver's directory is the caller's to
    choose and is deleted when an archive with its own driver stops.
    """

    def __init__(
        self,
        archive_dir: Path,
        aeron_dir: Path,
        *,
        driver: str = "embedded",
        control_port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.archive_dir = archive_dir
        self.aeron_dir = aeron_dir
        self.driver = driver
        self.control_channel = f"aeron:udp?endpoint=localhost:{control_port or free_port()}"
        self.control_stream_id = 10
        self.response_channel = "aeron:udp?endpoint=localhost:0"
        self._properties = {
            **FAST_DRIVER,
            **FAST_ARCHIVE,
            "aeron.dir": str(aeron_dir),
            "aeron.archive.dir": str(archive_dir),
            "aeron.archive.control.channel": self.control_channel,
            "aeron.archive.control.stream.id": str(self.control_stream_id),
            "aeron.dir.delete.on.shutdown": "true" if driver == "embedded" else "false",
            **(properties or {}),
        }
        self._process: JavaProcess | None = None

    @property
    def process(self) -> JavaProcess:
        if self._process is None:
            raise HarnessError("the Java archive has not been started")
        return self._process

    def start(self, timeout_s: float = 120.0) -> Self:
        """Start it and wait until it serves; HarnessError with its log when it does not."""
        self._process = JavaProcess(
            java_command("harness.ArchiveProcess", self.driver, properties=self._properties)
        )
        try:
            answer = self._process.receive(timeout_s)
        except HarnessError:
            self._process.kill()
            self._process.stop()
            raise
        if answer != "READY":
            self._process.stop()
            raise HarnessError(f"the Java archive did not start: {answer}\n{self._process.log()}")
        return self

    def kill(self) -> None:
        """End it as a crash would; its own driver goes with it, leaving the directories."""
        self.process.kill()

    def stop(self) -> None:
        """Stop it cleanly. Idempotent."""
        if self._process is not None:
            self._process.stop()
            if self.driver == "embedded":
                shutil.rmtree(self.aeron_dir, ignore_errors=True)

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def close(self) -> None:
        """Stop it cleanly. Idempotent."""
        self.stop()


class JavaClient(Closing):
    """A Java process with an Aeron client and, after `connect`, an AeronArchive client.

    `call(name, ...)` runs any public method of AeronArchive by its own name, or of Streams.java:
    numbers and strings stand for longs, ints and enums, `{"handle": n}` for a publication or
    subscription, another dict for ReplayParams; methods that take a descriptor consumer return the
    rows it was given. The commonest have a method here.
    """

    def __init__(self, aeron_dir: Path | str, timeout_s: float = 60.0) -> None:
        self.timeout_s = timeout_s
        self._process = JavaProcess(java_command("harness.ClientProcess", str(aeron_dir)))
        try:
            self._answer()
        except BaseException:
            self._process.kill()
            self._process.stop()
            raise

    @property
    def process(self) -> JavaProcess:
        return self._process

    def call(self, method: str, *args: Any) -> Any:
        """Call a method; raise JavaArchiveException with what it threw."""
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
        """Offer messages of support.model.messages and wait until all are in.

        Returns count, position and digest; HarnessError when not all could be offered in time.
        """
        handle = publication["handle"]
        offered = dict(
            self.call("offer", handle, seed, first_index, count, min_length, max_length, timeout_ms)
        )
        if offered["failure"] is not None:
            raise HarnessError(f"after {offered['count']} messages: {offered['failure']}")
        return offered

    def start_offering(
        self,
        publication: Mapping[str, Any],
        *,
        seed: int,
        count: int,
        first_index: int = 0,
        min_length: int = 32,
        max_length: int = 2048,
        timeout_ms: int = 60_000,
    ) -> int:
        """As `offer`, in the background; return a handle for `offering`."""
        handle = publication["handle"]
        return int(
            self.call(
                "startOffering",
                handle,
                seed,
                first_index,
                count,
                min_length,
                max_length,
                timeout_ms,
            )
        )

    def offering(self, handle: int) -> dict[str, Any]:
        """Return isDone, count, position, digest (when done), failure of a background offer."""
        return dict(self.call("offering", handle))

    def offer_bytes(
        self, publication: Mapping[str, Any], data: bytes, timeout_ms: int = 5_000
    ) -> int:
        """Offer bytes as they are (a bad control message, say); return the last try's result."""
        return int(self.call("offerBytes", publication["handle"], data.hex(), timeout_ms))

    def poll(
        self,
        subscription: Mapping[str, Any],
        count: int,
        *,
        timeout_ms: int = 30_000,
        details: bool = False,
    ) -> dict[str, Any]:
        """Take up to `count` messages; stop early at the end of the stream.

        Returns count, bytes, digest, ended, firstPosition, lastPosition (ends of messages), first
        and last (hex) and, with details, messages.
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
        """Wait for a counter to reach `value`; return what it was in the end."""
        return int(self.call("awaitCounter", counter_id, value, timeout_ms))

    def close(self) -> None:
        """Close the client and end the process. Idempotent."""
        self._process.stop()


def archive_tool(
    archive_dir: Path | str, *args: str, answers: str = "", timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run the Java ArchiveTool on a directory; `answers` is what it reads if it asks."""
    command = java_command("io.aeron.archive.ArchiveTool", str(archive_dir), *args)
    return subprocess.run(command, input=answers, capture_output=True, text=True, timeout=timeout_s)
