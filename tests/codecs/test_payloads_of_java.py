"""Payloads that the Java codecs of sbe-tool have encoded, decoded into columns field by field."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.builders.payload_schema import BIG_ENDIAN_SCHEMA, SCHEMA
from support.jvm.java_payloads import encode_with_java

from aerotape.codecs.payloads import PayloadSchema

LARGEST = (1 << 63) - 1

ENGINE_OF_ZEROS = {
    "capacity": 0, "cylinders": 0, "maxRpm": 9000, "maker": "", "fuel": "Petrol", "wear": None,
    "booster": {"boost": 0, "gears": "0"},
    "extras": {"sunRoof": False, "sportsPack": False, "cruiseControl": False},
}  # fmt: skip
FULL = {
    "serial": Decimal((1 << 64) - 2), "year": 2013, "fuel": "PETROL", "gears": "AUTOMATIC",
    "defaultFuel": "ELECTRIC", "laps": [1, 4_000_000_000, 3], "plate": "ab-12",
    "extras": {"sunRoof": True, "sportsPack": False, "cruiseControl": True},
    "wide": {"low": False, "high": True},
    "engine": {
        "capacity": 2000, "cylinders": 200, "maxRpm": 9000, "maker": "BMW", "fuel": "Petrol",
        "wear": -5, "booster": {"boost": -300, "gears": "MANUAL"},
        "extras": {"sunRoof": False, "sportsPack": True, "cruiseControl": False},
    },
    "note": "café", "key": bytes((250, 251, 252, 253)), "share": 0.25, "count": 8,
    "weight": 1234.5, "letter": "z", "small": -128, "reach": LARGEST, "maybeLaps": [-1, None],
    "spare": {
        **ENGINE_OF_ZEROS, "capacity": 1, "cylinders": 2, "maker": "VW",
        "booster": {"boost": 4, "gears": None},
    },
    "offsetting": -77,
    "fuelFigures": [
        {"speed": 30, "usage": pytest.approx(35.9), "gears": "MANUAL", "usageText": "Urbän"},
        {"speed": 65_000, "usage": 49.0, "gears": None, "usageText": ""},
    ],
    "performanceFigures": [
        {
            "octane": 95,
            "acceleration": [
                {
                    "mph": 30,
                    "extras": {"sunRoof": True, "sportsPack": False, "cruiseControl": False},
                },
                {
                    "mph": 60,
                    "extras": {"sunRoof": False, "sportsPack": False, "cruiseControl": False},
                },
            ],
        },
        {"octane": 99, "acceleration": []},
        {
            "octane": 200,
            "acceleration": [
                {
                    "mph": 4_000_000_000,
                    "extras": {"sunRoof": False, "sportsPack": True, "cruiseControl": True},
                },
            ],
        },
    ],
    "owners": [{"owner": "Zoë"}, {"owner": ""}], "marks": [{"mark": -9}],
    "maker": "Hond€", "manual": b"\0\xff\7", "remark": "£",
}  # fmt: skip
SPARSE = {
    "serial": Decimal(0), "year": 0, "fuel": None, "gears": None, "defaultFuel": "ELECTRIC",
    "laps": [0, 0, 0], "plate": "",
    "extras": {"sunRoof": False, "sportsPack": False, "cruiseControl": False},
    "wide": {"low": False, "high": False}, "engine": ENGINE_OF_ZEROS,
    "note": None, "key": bytes(4), "share": None, "count": None, "weight": 0.0, "letter": "",
    "small": 0, "reach": None, "maybeLaps": [0, 0], "spare": {**ENGINE_OF_ZEROS, "wear": 0},
    "offsetting": 0, "fuelFigures": [], "performanceFigures": [], "owners": [], "marks": [],
    "maker": "", "manual": b"", "remark": "",
}  # fmt: skip


@pytest.mark.parametrize("text", [SCHEMA, BIG_ENDIAN_SCHEMA], ids=["little", "big"])
def test_every_field(text: str, jars: dict[str, Path], tmp_path: Path) -> None:
    """The columns have the values that Java wrote, of each type, null or not, in both byte
    orders."""
    schema_file = tmp_path / "garage.xml"
    schema_file.write_text(text)
    encoded = encode_with_java(schema_file, "CarWriter", jars["sbe-all"], tmp_path / "stubs")
    payloads = [*encoded, None]

    schema = PayloadSchema.from_file(schema_file, "Car")
    batch = schema.decode_payloads(pa.array(payloads, pa.binary()))
    batch.validate(full=True)
    nothing = dict.fromkeys(FULL)
    assert batch.to_pylist() == [FULL, SPARSE, nothing, nothing, nothing]

    schema = PayloadSchema.from_file(schema_file)
    batch = schema.decode_payloads(pa.array(payloads, pa.binary()))
    batch.validate(full=True)
    tick = {"at": -1_234_567_890_123, "fuel": "ELECTRIC"}
    assert batch.to_pylist() == [
        {"template": "Car", "Car": FULL, "Tick": None},
        {"template": "Car", "Car": SPARSE, "Tick": None},
        {"template": "Tick", "Car": None, "Tick": tick},
        {"template": "Empty", "Car": None, "Tick": None},
        {"template": None, "Car": None, "Tick": None},
    ]
