"""BookKeeper's own entry codec in a Java process that encodes and checks on request."""

from __future__ import annotations

import os

from aerotape.context import Closing
from support.processes import ROOT, ChildProcess, HarnessError

PROGRAM = ROOT / "tests" / "codecs" / "java" / "EntryBridge.java"
JARS = ROOT / ".make" / "bookkeeper-jars"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_TIMEOUT_S = 60.0


class BookKeeperError(Exception):
    """An exception of BookKeeper's library."""


class BookKeeperEntries(Closing):
    """A running `EntryBridge`; its process ends with `close` and when our side of stdin ends."""

    def __init__(self) -> None:
        if not (JARS / ".complete").is_file():
            raise HarnessError(f"BookKeeper's jars are not in {JARS}: run `make jars`")
        classpath = os.pathsep.join(str(jar) for jar in sorted(JARS.glob("*.jar")))
        self._process = ChildProcess(["java", *_OPTIONS, "-cp", classpath, str(PROGRAM)])

    def close(self) -> None:
        """End the process."""
        self._process.stop()

    def encode(
        self,
        ledger_id: int,
        digest_type: str,
        password: bytes,
        *,
        entry_id: int,
        last_add_confirmed: int,
        length: int,
        payload: bytes,
    ) -> bytes:
        """Return the entry that BookKeeper would store."""
        numbers = (str(entry_id), str(last_add_confirmed), str(length))
        request = ("encode", str(ledger_id), digest_type, _hex(password), *numbers, _hex(payload))
        return bytes.fromhex(self._ask(*request))

    def check(
        self, ledger_id: int, digest_type: str, password: bytes, entry_id: int, data: bytes
    ) -> bytes:
        """Return the payload of an entry; BookKeeperError when its digest or ids are wrong."""
        request = ("check", str(ledger_id), digest_type, _hex(password), str(entry_id), _hex(data))
        return bytes.fromhex(self._ask(*request))

    def confirmed(
        self, ledger_id: int, digest_type: str, password: bytes, data: bytes
    ) -> tuple[int, int]:
        """Return the last add confirmed and the length in an entry."""
        last, length = self._ask(
            "confirmed", str(ledger_id), digest_type, _hex(password), _hex(data)
        ).split()
        return int(last), int(length)

    def master_key(self, password: bytes) -> bytes:
        return bytes.fromhex(self._ask("master", _hex(password)))

    def _ask(self, *parts: str) -> str:
        self._process.send(" ".join(parts))
        answer = self._process.receive(_TIMEOUT_S)
        if answer.startswith("!"):
            raise BookKeeperError(f"{parts[:3]}: {answer}")
        return answer


def _hex(data: bytes) -> str:
    return data.hex() or "-"
