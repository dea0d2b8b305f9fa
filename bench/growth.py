"""Benchmark: how cost grows with streams, recordings and clients, ours against the Java archive.

    python bench/growth.py [--rounds N] [--parts streams catalog clients]
                                 [--streams 1 10 …] [--recordings 100 …] [--clients 1 …]
                                 [--plots FOLDER] [--json]

`streams`: a Java publisher floods that many recorded streams over IPC with 256 B; the recording
rate and the price. `catalog`: an archive starts with a catalog of that many recordings; seconds
until it is ready, then, for a Python client, a page of 100 recordings from the middle, a listing
for a channel that no recording has, the search for the first recording from the last one on, and
the memory of the process. `clients`: that many control sessions are opened one after the other,
then make a request in turns; then the price of the archive while they only stay connected. The two
archives run alternately; figures are medians. `--plots` writes a plot of each part.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import aerotape
from bench.archives import (
    IPC,
    LOCAL_STREAM_ID,
    BenchedArchive,
    Child,
    idle_cpu_percent,
    media_driver,
)
from bench.listing import make_catalog
from bench.recording import Streams, record_once
from bench.running import (
    NAMES,
    Report,
    compile_package,
    in_turns,
    memory_folder,
    options_parser,
)

MESSAGE_BYTES = 256
Figures = dict[str, float]
# Of each part: what it grows with, and the figures with their titles.
PARTS: dict[str, tuple[str, dict[str, str]]] = {
    "streams": ("streams", {"mb_per_s": "recorded, MB/s", "cpu_s_per_gb": "processor time, s/GB"}),
    "catalog": (
        "recordings",
        {
            "start_s": "start until ready, s",
            "memory_mib": "memory of the process, MiB",
            "page_ms": "page of 100 from the middle, ms",
            "none_ms": "listing that matches none, ms",
            "find_ms": "search for the first, ms",
        },
    ),
    "clients": (
        "clients",
        {
            "connect_ms": "connect, ms a client",
            "request_us": "request, µs",
            "idle_percent": "idle, % of a core",
            "memory_mib": "memory of the process, MiB",
        },
    ),
}
_COLOURS = {"aerotape": "#0072B2", "java": "#D55E00"}
_GREY = "#808080"  # legible on white and on black


def streams(name: str, count: int, folder: Path, volume: int) -> Figures:
    """Record a flood of `volume` bytes in all."""
    measured = record_once(name, "none", Streams(count, False), MESSAGE_BYTES, volume, folder)
    return {"mb_per_s": measured.bytes_per_s / 1e6, "cpu_s_per_gb": measured.cpu_s_per_gb}


def catalog(name: str, count: int, folder: Path) -> Figures:
    """Start an archive on a catalog, which is in `folder` already, and read it."""
    archive_dir, aeron_dir = folder / f"archive-{name}", folder / "aeron"
    archive_dir.mkdir()
    shutil.copy(folder / "archive.catalog", archive_dir)
    archive = BenchedArchive(name, aeron_dir, archive_dir)
    try:
        with media_driver(aeron_dir):
            begun_s = time.perf_counter()
            with archive.start("external", {}) as child:
                start_s = time.perf_counter() - begun_s
                with _connected(aeron_dir) as client:
                    [first] = client.list_recordings(0, 1)
                    middle = partial(client.list_recordings, count // 2, 100)
                    none = partial(client.list_recordings_for_uri, "no such channel", 1)
                    find = partial(
                        client.find_last_matching_recording,
                        0,
                        "endpoint=localhost:40456",
                        first.stream_id,
                        first.session_id,
                    )
                    assert find() == 0
                    return {
                        "start_s": start_s,
                        "page_ms": 1e3 * _median_s(lambda: list(middle())),
                        "none_ms": 1e3 * _median_s(lambda: list(none())),
                        "find_ms": 1e3 * _median_s(find),
                        "memory_mib": _memory_mib(child),
                    }
    finally:
        shutil.rmtree(archive_dir)


def clients(name: str, count: int, folder: Path) -> Figures:
    """Open control sessions of one process, and make requests from each in turns."""
    archive_dir, aeron_dir = folder / f"archive-{name}", folder / "aeron"
    make_catalog(archive_dir, 100)
    archive = BenchedArchive(name, aeron_dir, archive_dir)
    try:
        with (
            media_driver(aeron_dir),
            archive.start("external", {}) as child,
            aerotape.Aeron(str(aeron_dir)) as aeron,
        ):
            begun_s = time.perf_counter()
            connected = [_connected(aeron_dir, aeron) for _ in range(count)]
            connect_s = (time.perf_counter() - begun_s) / count
            requests = [partial(each.recording_position, 7) for each in connected]
            times: list[float] = []
            while len(times) < 2 * max(count, 500):
                times += [_seconds(request) for request in requests]
            figures = {
                "connect_ms": 1e3 * connect_s,
                "request_us": 1e6 * statistics.median(times[len(times) // 2 :]),
                "idle_percent": idle_cpu_percent(child, settle_s=1.0, window_s=4.0),
                "memory_mib": _memory_mib(child),
            }
            for each in connected:
                each.close()
            return figures
    finally:
        shutil.rmtree(archive_dir)


def _connected(aeron_dir: Path, aeron: aerotape.Aeron | None = None) -> aerotape.ArchiveClient:
    given = {"aeron_dir": str(aeron_dir)} if aeron is None else {"aeron": aeron}
    return aerotape.connect(
        control_request_channel=IPC,
        control_request_stream_id=LOCAL_STREAM_ID,
        timeout_ns=60_000_000_000,
        **given,
    )


def _median_s(call: Callable[[], object]) -> float:
    """Return the median of nine calls, or of those within two seconds."""
    times: list[float] = []
    while len(times) < 9 and sum(times) < 2:
        times.append(_seconds(call))
    return statistics.median(times)


def _seconds(call: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    call()
    return time.perf_counter() - begun_s


def _memory_mib(child: Child) -> float:
    """Return the resident memory of a process, mapped files included."""
    lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def measured(part: str, count: int, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the row of a count: each figure's median of both archives."""
    if part == "streams":
        # Long enough for each to have more than its warm-up.
        measure = partial(streams, count=count, folder=folder, volume=options.bytes)
    elif part == "catalog":
        make_catalog(folder / "made", count)
        shutil.move(folder / "made" / "archive.catalog", folder)
        shutil.rmtree(folder / "made")
        measure = partial(catalog, count=count, folder=folder)
    else:
        measure = partial(clients, count=count, folder=folder)
    rounds = in_turns(options.rounds, measure)
    figures = {
        f"{name}_{figure}": statistics.median(each[figure] for each in rounds[name])
        for name in NAMES
        for figure in PARTS[part][1]
    }
    return {"part": part, "count": count, **figures}


def draw(part: str, rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the plot of a part as SVG: a panel for each figure."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "aerotape", "font.size": 9}
    unit, titles = PARTS[part]
    columns = min(len(titles), 3)
    lines = -(-len(titles) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.6 * lines), layout="constrained")
    counts = [row["count"] for row in rows]
    for number, (name, title) in enumerate(titles.items(), 1):
        ax = figure.add_subplot(lines, columns, number)
        for archive in NAMES:
            values = [row[f"{archive}_{name}"] for row in rows]
            ax.plot(counts, values, "o-", ms=3, color=_COLOURS[archive], label=archive)
        ax.set_xscale("log")
        spread = [row[f"{archive}_{name}"] for row in rows for archive in NAMES]
        if max(spread) > 20 * min(spread) > 0:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        ax.set_title(title, color=_GREY, fontsize=9)
        ax.set_xlabel(unit, color=_GREY)
        ax.tick_params(colors=_GREY, which="both")
        for spine in ax.spines.values():
            spine.set_color(_GREY)
        ax.grid(alpha=0.3)
    ax.legend(frameon=False, labelcolor=_GREY)
    path = folder / f"growth-{part}.svg"
    figure.savefig(path, transparent=True, metadata={"Date": None})


def main() -> int:
    """Run the benchmark, print a line for each count, and write the plots."""
    parser = options_parser(__doc__, rounds=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 10, 100, 1_000])
    parser.add_argument(
        "--recordings", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000, 1_000_000]
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 10, 100, 500])
    parser.add_argument("--bytes", type=int, default=512 << 20, help="frames in a flood, bytes")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write plots there")
    options = parser.parse_args()
    if options.plots is not None:
        options.plots.mkdir(parents=True, exist_ok=True)
    compile_package()
    report = Report("growth", "{part:8} {count:8}: {text}", as_json=options.json)
    for part in options.parts:
        rows = []
        for count in getattr(options, "recordings" if part == "catalog" else part):
            with memory_folder() as folder:
                row = measured(part, count, folder, options)
            rows.append(row)
            text = ", ".join(
                f"{title} {row[f'aerotape_{name}']:.4g} / {row[f'java_{name}']:.4g}"
                for name, title in PARTS[part][1].items()
            )
            report.add({**row, "text": text})
        if options.plots is not None:
            draw(part, rows, options.plots)
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
