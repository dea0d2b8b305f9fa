"""Options, a folder in memory, alternating runs and printing for all benchmarks."""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
NAMES = ("aerotape", "java")
_PACKAGE = Path(__file__).resolve().parents[2] / "aerotape"


def options_parser(doc: str | None, rounds: int = 5) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark, whose help is the docstring's line."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", action="store_true")
    return parser


def compile_package() -> None:
    """Write the package's bytecode, as an installation does.

    Otherwise each process would compile what it loads, which takes longer than the measurement.
    """
    compileall.compile_dir(_PACKAGE, quiet=1)
    for folder in _PACKAGE.iterdir():
        if folder.is_symlink():
            compileall.compile_dir(folder.resolve(), quiet=1)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Create a folder, in memory where possible, and remove it at the end."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix=f"aerotape-bench-{os.getpid()}-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def memory_in_use(folder: Path, length: int, out: Path) -> Iterator[None]:
    """Make writes into `out` use memory that is already allocated to this machine.

    A virtual machine may get a page of memory only when it is touched, and lose it soon after it
    was freed: writing a file in memory is then four times as slow. Here a file of `length` bytes
    holds memory, and is truncated by as much as the files in `out` grow, many times a second.
    """
    ballast, done = folder / "ballast", threading.Event()
    with ballast.open("wb") as file:
        for _ in range(length >> 20):
            file.write(bytes(1 << 20))

    def give_way() -> None:
        while not done.wait(0.02):
            os.truncate(ballast, max(0, length - _bytes_below(out)))

    thread = threading.Thread(target=give_way, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        ballast.unlink()


def _bytes_below(folder: Path) -> int:
    taken = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # renamed or removed meanwhile
                taken += Path(parent, name).stat().st_blocks * 512
    return taken


def turns(rounds: int, names: Sequence[str] = NAMES) -> Iterator[str]:
    """Yield each name once per round, in reverse order in every other round."""
    for number in range(rounds):
        yield from names if number % 2 == 0 else names[::-1]


def in_turns(rounds: int, measure: Callable[[str], T]) -> dict[str, list[T]]:
    """Measure both alternately and return the results of the rounds by name."""
    results: dict[str, list[T]] = {name: [] for name in NAMES}
    for name in turns(rounds):
        results[name].append(measure(name))
    return results


def compare_seconds(rounds: int, measure: Callable[[str], float]) -> dict[str, float]:
    """Measure both alternately and return their medians, and the ratio of theirs to ours."""
    times = in_turns(rounds, measure)
    return {
        "ratio": median_ratio(times["java"], times["aerotape"]),
        "aerotape_s": statistics.median(times["aerotape"]),
        "java_s": statistics.median(times["java"]),
    }


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


class Report:
    """Rows that are printed one by one, or all together as JSON."""

    def __init__(self, name: str, line: str, *, as_json: bool) -> None:
        """Set the key of the rows in JSON, and the format of a row's text line."""
        self._name = name
        self._line = line
        self._as_json = as_json
        self._rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Print a row, or store it for JSON."""
        self._rows.append(row)
        self.say(self._line.format(**row))

    def say(self, line: str) -> None:
        """Print a line, unless the output is JSON."""
        if not self._as_json:
            print(line, flush=True)

    def close(self, **more: Any) -> None:
        """Print the JSON with the rows and further values."""
        if self._as_json:
            print(json.dumps({self._name: self._rows, **more}, indent=2))
