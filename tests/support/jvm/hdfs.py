"""A small HDFS on loopback, with Hadoop's classes, which ends with the test run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from support.jvm.java import HADOOP, HADOOP_MINICLUSTER, find_jar
from support.processes import ChildProcess

_SOURCE = Path(__file__).resolve().parent / "hdfs" / "SmallHdfs.java"
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_S = 300.0


class SmallHdfs(NamedTuple):
    """A running HDFS: the ports of its name node."""

    rpc_port: int
    http_port: int


def class_path() -> str:
    """Return the class path of Hadoop; raise HarnessError or FileNotFoundError if incomplete."""
    jars = Path(pyspark.__file__).parent / "jars"
    others = [f"hadoop-client-api-{HADOOP}", f"hadoop-client-runtime-{HADOOP}"]
    found = [find_jar(HADOOP_MINICLUSTER), *(jars / f"{name}.jar" for name in others)]
    for jar in found:
        jar.stat()
    return ":".join(map(str, [*found, *jars.glob("*slf4j*.jar"), *jars.glob("log4j-[ac]*.jar")]))


@contextmanager
def serve(folder: Path) -> Iterator[SmallHdfs]:
    """Run an HDFS with its files in a folder."""
    process = ChildProcess(["java", *_QUICK, "-cp", class_path(), str(_SOURCE), str(folder)])
    try:
        rpc_port, http_port = process.receive(_START_S).split()
        yield SmallHdfs(int(rpc_port), int(http_port))
    finally:
        process.stop()
