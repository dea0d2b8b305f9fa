"""Benchmark: control requests, ours against the Java archive, in the same run.

    python bench/control.py [--rounds N] [--measure find cycle replay start]
                                  [--driver external|embedded] [--udp]
                                  [--term-length 64m] [--warm-up N] [--json]

The archives run alternately, one at a time, on a C media driver or with an embedded one (C in ours,
Java in theirs), and a busy Java client sends requests. Measured are recordings listed
by id (`find`, calls per second), lifecycles of recordings (`cycle`: new publication, start, one
message recorded, stop, close; per second) and the time from a replay request to its first fragment,
with a subscription that is added afterwards (`replay`) or was there (`start`), each for a second,
after some seconds of warm-up. Ratios are ours to theirs: above 1 for
rates, or below 1 for times, ours is faster.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from argparse import Namespace
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.archives import BenchedArchive, media_driver, run_java_client
from bench.running import NAMES, in_turns, median_ratio, memory_folder, options_parser

RATES = ("find", "cycle")
TIMES = ("replay", "start")


def measure(name: str, folder: Path, options: Namespace) -> dict[str, list[float]]:
    """Start an archive and its client, and return the figures of each measurement."""
    aeron_dir, archive_dir = folder / "aeron", folder / f"archive-{name}"
    archive = BenchedArchive(name, aeron_dir, archive_dir)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, archive_dir, ignore_errors=True)
        if options.driver == "external":
            stack.enter_context(media_driver(aeron_dir))
        stack.enter_context(archive.start(options.driver, {"aeron.threading.mode": "SHARED"}))
        printed = run_java_client(
            "Control",
            options.warm_up,
            ",".join(options.measure),
            options.term_length,
            aeron_dir,
            *archive.control_address("udp" if options.udp else "ipc"),
            timeout_s=60 + 4 * (options.warm_up + 1) * len(options.measure),
        )
    lines = (line.split(" ") for line in printed.splitlines())
    return {what: [float(value) for value in values.split(",")] for what, values in lines}


def percentile(values: list[float], percent: float) -> float:
    """Return the value below which `percent` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def evaluate(measured: str, samples: dict[str, list[list[float]]]) -> dict[str, float]:
    """Return figures of both archives and their ratios: medians over the rounds.

    Args:
        measured: the name of the measurement.
        samples: of each archive, the figures of each round.
    """
    figures: dict[str, float] = {}
    percents = {"": 50.0} if measured in RATES else {"_p50_us": 50.0, "_p99_us": 99.0}
    scale = 1.0 if measured in RATES else 1e-3
    for suffix, percent in percents.items():
        rounds = {
            name: [scale * percentile(values, percent) for values in samples[name]]
            for name in NAMES
        }
        for name in NAMES:
            figures[f"{name}{suffix}"] = statistics.median(rounds[name])
        figures[f"ratio{suffix}"] = median_ratio(rounds["aerotape"], rounds["java"])
    return figures


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--measure", nargs="+", choices=RATES + TIMES, default=RATES + TIMES)
    parser.add_argument("--driver", choices=("external", "embedded"), default="external")
    parser.add_argument("--udp", action="store_true", help="control over UDP instead of IPC")
    parser.add_argument("--term-length", default="64k", help="of recorded streams and replays")
    parser.add_argument("--warm-up", type=int, default=4, help="seconds before each measurement")
    options = parser.parse_args()
    with memory_folder() as folder:
        rounds = in_turns(options.rounds, partial(measure, folder=folder, options=options))
    figures = {
        what: evaluate(what, {name: [each[what] for each in rounds[name]] for name in NAMES})
        for what in options.measure
    }
    if options.json:
        print(json.dumps({"control": figures}, indent=2))
        return 0
    for what, found in figures.items():
        print(f"{what}: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
