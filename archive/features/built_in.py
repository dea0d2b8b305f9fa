"""The features of an archive that Aeron Archive does not have.

Whoever asks what they allow or protect imports this module, and not the archive that runs them.
"""

from __future__ import annotations

from typing import Any, Final

from aerotape.archive.control.feature import Feature
from aerotape.archive.features.entity import EntityFeature
from aerotape.archive.features.ledger.feature import LedgerFeature
from aerotape.archive.features.scopes import ScopesFeature

FEATURES: Final[tuple[type[Feature], ...]] = (LedgerFeature, ScopesFeature, EntityFeature)
"""In the order in which an archive creates them."""
SECTIONS: Final[tuple[type[Any], ...]] = tuple(
    each.properties for each in FEATURES if each.properties is not None
)
"""The dataclasses of their properties."""
