"""SBE's own example, a car in two versions of one schema, as its Java codecs encode it.

The schemas, and the payload that SBE's Java sample has written, come from a checkout of SBE's
repository (github.com/aeron-io/simple-binary-encoding), because no jar contains them.
$AEROTAPE_SBE_REPOSITORY is its path.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.jvm.java_payloads import encode_with_java

from aerotape.codecs.payloads import PayloadSchema


def float32(value: float) -> float:
    """The nearest value that a float can represent."""
    number: float = pa.scalar(value, pa.float32()).as_py()
    return number


def figures(octane: int, *seconds: float) -> dict[str, Any]:
    """An entry of `performanceFigures`."""
    runs = zip((30, 60, 100), seconds, strict=True)
    return {
        "octaneRating": octane,
        "acceleration": [{"mph": mph, "seconds": float32(s)} for mph, s in runs],
    }


SAMPLE: dict[str, Any] = {
    "serialNumber": Decimal(1234), "modelYear": 2013, "available": "T", "code": "A",
    "someNumbers": [1, 2, 3, 4], "vehicleCode": "abcdef",
    "extras": {"sunRoof": False, "sportsPack": True, "cruiseControl": True},
    "discountedModel": "C",
    "engine": {
        "capacity": 2000, "numCylinders": 4, "maxRpm": 9000, "manufacturerCode": "123",
        "fuel": "Petrol", "efficiency": 35, "boosterEnabled": "T",
        "booster": {"BoostType": "NITROUS", "horsePower": 200},
    },
    "fuelFigures": [
        {"speed": 30, "mpg": float32(35.9), "usageDescription": "Urban Cycle"},
        {"speed": 55, "mpg": 49.0, "usageDescription": "Combined Cycle"},
        {"speed": 75, "mpg": 40.0, "usageDescription": "Highway Cycle"},
    ],
    "performanceFigures": [figures(95, 4.0, 7.5, 12.2), figures(99, 3.8, 7.1, 11.8)],
    "manufacturer": "Honda", "model": "Civic VTi", "activationCode": "abcdef",
}  # fmt: skip
NEWER: dict[str, Any] = {
    "serialNumber": Decimal(99), "modelYear": 2020, "available": "F", "code": "B",
    "someNumbers": [0, 1_000_000_000, 2_000_000_000, 3_000_000_000], "vehicleCode": "zz",
    "extras": {"sunRoof": True, "sportsPack": False, "cruiseControl": False},
    "discountedModel": "C",
    "engine": {
        "capacity": 1600, "numCylinders": 3, "maxRpm": 9000, "manufacturerCode": "abc",
        "fuel": "Petrol", "efficiency": 50, "boosterEnabled": "F",
        "booster": {"BoostType": "KERS", "horsePower": 255},
    },
    "fuelFigures": [{"speed": 50, "mpg": 1.5, "usageDescription": "Town"}],
    "performanceFigures": [],
    "manufacturer": "Zoë", "model": "", "activationCode": "x",
}  # fmt: skip


@pytest.fixture
def example() -> Path:
    """The checkout of SBE's repository."""
    if named := os.environ.get("AEROTAPE_SBE_REPOSITORY"):
        return Path(named)
    pytest.skip("AEROTAPE_SBE_REPOSITORY names no checkout of SBE's repository")


def test_both_versions(jars: dict[str, Path], example: Path, tmp_path: Path) -> None:
    """Each payload is decoded with each schema: newer fields are null in the older payload, and are
    skipped by the older schema."""
    schemas = example / "sbe-samples/src/main/resources"
    extension = schemas / "example-extension-schema.xml"
    sample = (example / "rust/car_example_baseline_data.sbe").read_bytes()
    (newer,) = encode_with_java(extension, "ExampleCarWriter", jars["sbe-all"], tmp_path)
    payloads = pa.array([sample, newer])

    older = PayloadSchema.from_xml(
        schemas / "example-schema.xml", "Car", sbe_jar=jars["sbe-all"]
    ).decode_payloads(payloads)
    assert older.to_pylist() == [SAMPLE, NEWER]
    extended = PayloadSchema.from_xml(extension, "Car", sbe_jar=jars["sbe-all"]).decode_payloads(
        payloads
    )
    assert extended.to_pylist() == [
        {**SAMPLE, "uuid": None, "cupHolderCount": None},
        {**NEWER, "uuid": [7, -8], "cupHolderCount": 119},
    ]
