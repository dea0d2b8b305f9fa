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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
NAMES = ("aerotape", "java")
_PACKAGE = Path(__file__).resolve().parents[1] / "aerotape"


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
    """Measure both alternately and return the results of the rounds by name.

    A first round of each does not count: memory, caches and JIT compilers are cold then.
    """
    results: dict[str, list[T]] = {name: [] for name in NAMES}
    for name in turns(rounds + 1):
        results[name].append(measure(name))
    return {name: found[1:] for name, found in results.items()}


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


def rates_row(rounds: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, float]:
    """Return the ratio, ours to theirs, and the medians of both archives.

    Args:
        rounds: of each archive, bytes a second and processor seconds for 10^9 bytes.
    """
    rates = {name: [rate for rate, _ in rounds[name]] for name in NAMES}
    row = {"ratio": median_ratio(rates["aerotape"], rates["java"])}
    for name, measured in rounds.items():
        rate, cpu = (statistics.median(each) for each in zip(*measured, strict=True))
        row |= {f"{name}_mb_per_s": rate / 1e6, f"{name}_cpu_s_per_gb": cpu}
    return row


class Machine(NamedTuple):
    """The processor time of the whole machine since the last reading, in cores.

    Attributes:
        busy: all programs and the kernel.
        kernel: the kernel alone.
        stolen: what the host of a virtual machine gave to others while this one wanted to run.
    """

    busy: float
    kernel: float
    stolen: float

    def __str__(self) -> str:
        return f"[{self.busy:.2f} cores busy, kernel {self.kernel:.2f}, stolen {self.stolen:.2f}]"


class _Machine:
    """Reads the processor time of the machine since the last reading."""

    def __init__(self) -> None:
        self._last, self._at = self._read(), time.perf_counter()

    def read(self) -> Machine:
        now, at = self._read(), time.perf_counter()
        used = [(new - old) / (at - self._at) for new, old in zip(now, self._last, strict=True)]
        self._last, self._at = now, at
        return Machine(*used)

    @staticmethod
    def _read() -> tuple[float, float, float]:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
        user, nice, system, _idle, _wait, irq, softirq, steal = (
            int(each) / os.sysconf("SC_CLK_TCK") for each in fields
        )
        kernel = system + irq + softirq
        return user + nice + kernel, kernel, steal


class Report:
    """Rows that are printed one by one, or all together as JSON.

    Beside each is what the whole machine did meanwhile, starts and warm-up included: a figure with
    time stolen from the machine, or with more cores busy than the same row of another run, is not
    comparable.
    """

    def __init__(self, name: str, line: str, *, as_json: bool) -> None:
        """Set the key of the rows in JSON, and the format of a row's text line."""
        self._name = name
        self._line = line
        self._as_json = as_json
        self._rows: list[dict[str, Any]] = []
        self._machine = _Machine()

    def add(self, row: dict[str, Any]) -> None:
        """Print a row, or store it for JSON."""
        machine = self._machine.read()
        self._rows.append({**row, "machine_cores": machine._asdict()})
        self.say(f"{self._line.format(**row)} {machine}")

    def say(self, line: str) -> None:
        """Print a line, unless the output is JSON."""
        if not self._as_json:
            print(line, flush=True)

    def close(self, **more: Any) -> None:
        """Print the JSON with the rows and further values."""
        if self._as_json:
            print(json.dumps({self._name: self._rows, **more}, indent=2))
