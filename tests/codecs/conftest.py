"""Fixtures of the codec tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.jvm.java_codecs import JavaCodecs


@pytest.fixture(scope="session")
def java_codecs() -> Iterator[JavaCodecs]:
    """Aeron's own codecs, from the aeron-all jar (archive schema version 13)."""
    with JavaCodecs() as codecs:
        yield codecs
