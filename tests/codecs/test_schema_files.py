"""Schemas in object storage, read from a real S3-compatible server."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.payload_schema import SCHEMA
from support.spark import object_store

from aerotape.catalog.location import StorageOptions
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import ConfigurationError, SchemaError

pytest.importorskip("pyarrow")
pytest.importorskip("moto")


def test_a_schema_of_several_files(tmp_path: Path) -> None:
    """Included files are read from the bucket too, and messages have their URLs."""
    begin, end = SCHEMA.index("<types>"), SCHEMA.index("</types>") + len("</types>")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="common/types.xml"/>'
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "types.xml").write_text(SCHEMA[begin:end])
    (tmp_path / "garage.xml").write_text(SCHEMA[:begin] + include + SCHEMA[end:])
    with object_store.serve() as store:
        url = store.upload(tmp_path, "schemas")
        options = StorageOptions.of(store.options)
        assert load_schema(f"{url}/garage.xml", options) == load_schema(tmp_path / "garage.xml")
        with pytest.raises(ConfigurationError, match=rf"{url}/none\.xml: no such file"):
            load_schema(f"{url}/none.xml", options)
        store.delete("schemas", "common/types.xml")
        reason = r"include: cannot read 'common/types\.xml': no such file"
        with pytest.raises(SchemaError, match=rf"{url}/garage\.xml:3: {reason}"):
            load_schema(f"{url}/garage.xml", options)
