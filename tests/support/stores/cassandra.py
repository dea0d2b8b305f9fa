"""A Cassandra server of one node, from the jars that pom.xml names."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from aerotape.context import Closing
from support.processes import ROOT, HarnessError
from support.stores.ports import free_tcp_port

_JARS: Final = ROOT / ".make" / "cassandra"
_START_TIMEOUT_S: Final = 180
# For Java 17, as Cassandra's own start script opens them.
_PACKAGES: Final = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.ref",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.rmi",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "jdk.management/com.sun.management.internal",
    "jdk.management.jfr/jdk.management.jfr",
    "java.management/com.sun.jmx.remote.security",
)
_CONFIGURATION: Final = """\
cluster_name: aerotape tests
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:{storage_port}"
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: {port}
storage_port: {storage_port}
auto_snapshot: false
commitlog_sync: periodic
commitlog_sync_period: 10000ms
data_file_directories: [{directory}/data]
commitlog_directory: {directory}/commitlog
saved_caches_directory: {directory}/saved_caches
hints_directory: {directory}/hints
cdc_raw_directory: {directory}/cdc
"""


class CassandraServer(Closing):
    """A running node, with its own data directory and ports."""

    def __init__(self) -> None:
        """Start the node and wait until it accepts connections."""
        self.port = free_tcp_port()
        self._directory = Path(tempfile.mkdtemp(prefix="aerotape-cassandra-"))
        configuration = self._directory / "cassandra.yaml"
        configuration.write_text(
            _CONFIGURATION.format(
                port=self.port, storage_port=free_tcp_port(), directory=self._directory
            )
        )
        if not any(_JARS.glob("cassandra-all-*.jar")):
            raise HarnessError(f"there is no Cassandra in {_JARS}: run `make jars`")
        opened = [
            option
            for package in _PACKAGES
            for option in (
                f"--add-opens={package}=ALL-UNNAMED",
                f"--add-exports={package}=ALL-UNNAMED",
            )
        ]
        self._log = self._directory / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    "java",
                    *opened,
                    "-Xmx512m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Djdk.attach.allowAttachSelf=true",
                    f"-Dcassandra.config={configuration.as_uri()}",
                    f"-Dcassandra.storagedir={self._directory}",
                    "-Dcassandra-foreground=yes",
                    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
                    "-Dcassandra.ring_delay_ms=1",
                    # A change of the schema is not forced to storage: nothing outlives the node.
                    "-Dcassandra.unsafesystem=true",
                    "-cp",
                    f"{_JARS}/*",
                    "org.apache.cassandra.service.CassandraDaemon",
                ],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            )
        try:
            self._await_start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The URL of the node, without a keyspace."""
        return f"cassandra://127.0.0.1:{self.port}"

    def drop(self, keyspaces: Iterable[str]) -> None:
        """Drop keyspaces, as far as they exist."""
        for keyspace in keyspaces:
            self._session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)

    @cached_property
    def _session(self) -> Any:
        """A session for all calls: to connect takes longer than to drop a keyspace."""
        from cassandra.cluster import Cluster

        return Cluster(
            ["127.0.0.1"],
            port=self.port,
            connect_timeout=60,
            control_connection_timeout=60,
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
        ).connect()

    def _await_start(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while "Starting listening for CQL clients" not in self._log.read_text(errors="replace"):
            if self._process.poll() is not None or time.monotonic() >= deadline:
                raise HarnessError(f"Cassandra does not start:\n{self._log.read_text()[-5000:]}")
            time.sleep(0.1)

    def close(self) -> None:
        """End the node and delete its data."""
        if "_session" in vars(self):
            self._session.cluster.shutdown()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
