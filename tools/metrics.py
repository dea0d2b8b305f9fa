"""Print the metrics of an archive once, in Prometheus' format.

Reads the files of the archive directory and of its media driver. The archive may be ours or the
Java archive, running or not. `aerotape web` serves the same to Prometheus.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.connection import add_driver_option
from aerotape.tools._cli.output import emit, note

if TYPE_CHECKING:
    from aerotape.tools._web.observed import ObservedArchive


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a metric.

    Attributes:
        name: name.
        labels: labels of the metric.
        value: value.
    """

    name: str
    labels: Mapping[str, str]
    value: float


JSON_ROWS: Final = {"": Sample}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the archive directory")
    parser.add_argument(
        "--max-series",
        metavar="N",
        type=count,
        default=1_000,
        help="the most recordings with metrics of their own (default: 1000)",
    )
    add_driver_option(parser)


def run(args: argparse.Namespace) -> None:
    """Print the metrics."""
    try:
        from aerotape.tools._web.metrics.collector import ArchiveMetrics, exposition
    except ImportError:
        raise ConfigurationError(not_installed("prometheus_client", "web"), "DIR") from None
    from aerotape.tools._web.observed import ObservedArchive

    observed = ObservedArchive(args.directory, args.aeron_dir)
    _check(observed)
    snapshot = observed.snapshot(wait_s=None)
    for problem in snapshot.problems:
        note(f"warning: {problem}")
    if args.json:
        metrics = ArchiveMetrics(snapshot, args.max_series).collect()
        samples = (sample for metric in metrics for sample in metric.samples)
        emit((Sample(e.name, e.labels, float(e.value)) for e in samples), args)
    else:
        text, _ = exposition(snapshot, max_series=args.max_series)
        sys.stdout.write(text.decode())


def _check(observed: ObservedArchive) -> None:
    """Refuse a directory that has nothing of an archive (ConfigurationError)."""
    snapshot = observed.snapshot(wait_s=None)
    if snapshot.mark is None and not snapshot.recordings:
        raise ConfigurationError(f"no archive: {snapshot.problems[0]}", "DIR")
