"""Benchmark: control requests, ours against the Java archive, in the same run.

    python tests/bench/control.py [--rounds N] [--measure find cycle replay]
                                  [--driver external|embedded] [--udp]
                                  [--term-length 64m] [--json]

Both archives run concurrently, on one C media driver or each with an embedded one (C in ours, Java
in theirs). One busy Java client sends requests to them alternately; the first round is a warm-up
and does not count. Measured are recordings listed by id (`find`, calls per second), lifecycles of
recordings (`cycle`: new publication, start, one message recorded, stop, close; per second) and the
time from a replay request to its first fragment (`replay`). Ratios are ours to theirs: above 1 for
rates, or below 1 for times, ours is faster.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.archives import BenchedArchive, media_driver, run_java_client
from bench.running import NAMES, median_ratio, memory_folder, options_parser

RATES = ("find", "cycle")
TIMES = ("replay",)
_LOCAL_STREAM_IDS = {"aerotape": 11, "java": 12}
_NETWORK_STREAM_ID = 10


def run(
    folder: Path, rounds: int, measures: list[str], driver: str, over_udp: bool, term_length: str
) -> dict[str, Any]:
    """Run both archives and the client; return the figures of each measurement."""
    with ExitStack() as stack:
        if driver == "external":
            stack.enter_context(media_driver(folder / "aeron"))
        addresses: list[str] = []
        for number, name in enumerate(NAMES):
            aeron_dir = folder / ("aeron" if driver == "external" else f"aeron-{name}")
            archive = BenchedArchive(name, aeron_dir, folder / name)
            properties = {
                "aeron.archive.id": str(number + 1),
                "aeron.archive.local.control.stream.id": str(_LOCAL_STREAM_IDS[name]),
                "aeron.threading.mode": "SHARED",
            }
            stack.enter_context(archive.start(driver, properties))
            address = (
                (archive.control_channel, _NETWORK_STREAM_ID)
                if over_udp
                else ("aeron:ipc", _LOCAL_STREAM_IDS[name])
            )
            addresses += [name, str(aeron_dir), *map(str, address)]
        printed = run_java_client(
            "Control",
            rounds,
            ",".join(measures),
            term_length,
            *addresses,
            timeout_s=60 + 4 * (rounds + 1) * len(measures),
        )
    return {measure: evaluate(measure, samples) for measure, samples in parse(printed).items()}


def parse(output: str) -> dict[str, dict[str, list[list[float]]]]:
    """Return the samples of each measurement and archive, a list per round, without the first."""
    samples: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for line in output.splitlines():
        measure, name, round_number, values = line.split(" ")
        if int(round_number) > 0:
            samples[measure][name].append([float(value) for value in values.split(",")])
    return samples


def percentile(values: list[float], percent: float) -> float:
    """Return the value below which `percent` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def evaluate(measure: str, samples: dict[str, list[list[float]]]) -> dict[str, float]:
    """Return figures of both archives and their ratios: medians over the rounds."""
    figures: dict[str, float] = {}
    percents = {"": 50.0} if measure in RATES else {"_p50_us": 50.0, "_p99_us": 99.0}
    scale = 1.0 if measure in RATES else 1e-3
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
    options = parser.parse_args()
    with memory_folder() as folder:
        measured = run(
            folder,
            options.rounds,
            list(options.measure),
            options.driver,
            options.udp,
            options.term_length,
        )
    if options.json:
        print(json.dumps({"control": measured}, indent=2))
        return 0
    for measure, figures in measured.items():
        print(f"{measure}: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
