"""The classes of Spark's driver in a file, mapped instead of loaded: half the time of its start.

A JVM can leave all classes that it has loaded in a file as it ends, and later ones map that file
(class data sharing, JEP 350). The first job on a machine leaves one, of some 70 MB, after its
result is there; those after it use it. The JVM itself checks that the file fits it and its class
path, and does without when not. What a file depends on is in its name: another Java or PySpark
makes another one, and what has not been used for 30 days is deleted then.

Files are in the folder that AEROTAPE_CACHE_DIR names, else in `aerotape` of the user's cache folder
(XDG_CACHE_HOME or ~/.cache). With AEROTAPE_CACHE_DIR set to nothing there are none.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "AEROTAPE_CACHE_DIR"

_FREE_BYTES: Final = 1 << 30
_SETTLED_S: Final = 2.0
_UNUSED_S: Final = 30 * 86_400
_QUOTING: Final = re.compile(r"[\s\"'\\:,]")
# Else the JVM tells on the user's terminal of each class that it leaves out, and why.
_QUIET: Final = "-Xlog:disable"


def java_options(other_options: str) -> str:
    """Return the JVM options that use the file or, where there is none yet, make it.

    Nothing is said of a file that cannot be made or used: it is a matter of seconds only.

    Args:
        other_options: the JVM's other options, on which what it loads depends.
    """
    try:
        folder = _folder()
        java = _java()
        if folder is None or java is None or _QUOTING.search(str(folder)):
            return ""
        ready = folder / f"spark-{_key(java, other_options)}.jsa"
        new = ready.with_suffix(".new")
        if is_whole(new):
            new.replace(ready)
        if ready.exists():
            with suppress(OSError):  # it is another user's, as root may use it
                os.utime(ready)
            return f"-XX:SharedArchiveFile={ready} {_QUIET}"
        _delete_unused(folder)
        if shutil.disk_usage(folder).free < _FREE_BYTES:
            return ""
        return f"-XX:ArchiveClassesAtExit={new} {_QUIET}"
    except (ImportError, OSError, RuntimeError):  # RuntimeError: there is no home directory
        return ""


def _delete_unused(folder: Path) -> None:
    """Delete the files of Java and PySpark versions that nobody starts any more."""
    for suffix in ("jsa", "new"):
        for path in folder.glob(f"spark-*.{suffix}"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _UNUSED_S:
                    path.unlink()


def _folder() -> Path | None:
    """Return the folder of such files, made when missing; None without one of this user alone."""
    named = os.environ.get(CACHE_VARIABLE)
    if named == "":
        return None
    if named is not None:
        folder = Path(named).absolute()
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        folder = Path(cache).absolute() / "aerotape"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    # What is mapped from here is run.
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return None if others_write or status.st_uid != os.geteuid() else folder


def _java() -> Path | None:
    """Find the JVM that PySpark starts."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return None if found is None else Path(found).resolve(strict=True)


def _key(java: Path, other_options: str) -> str:
    import pyspark

    spark_home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    built = [path.stat().st_mtime_ns for path in (java, spark_home / "jars")]
    parts = (java, spark_home.resolve(), pyspark.__version__, other_options, *built)
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def is_whole(new: Path) -> bool:
    """Whether a JVM has left a file: it writes the beginning last."""
    try:
        with new.open("rb") as file:
            settled = time.time() - os.fstat(file.fileno()).st_mtime >= _SETTLED_S
            return settled and any(file.read(4))
    except FileNotFoundError:
        return False
