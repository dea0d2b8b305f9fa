"""Names of properties that several modules use, and names of properties without a field.

The other properties are named where they are defined, in `archive_config.py` or by a feature.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

ARCHIVE_PREFIX = "aeron.archive."
# Properties of this package.
OWN_PREFIX = "aerotape."
USERS_FILE = "aerotape.users.file"
RETENTION_FILE = "aerotape.retention.file"
# Media driver properties that the archive uses too.
AERON_DIR = "aeron.dir"
DRIVER_TIMEOUT = "aeron.driver.timeout"
THREAD_NAMING = "aeron.thread.naming"
# The value of the property that names the authenticator, for the one that admits all.
DEFAULT_AUTHENTICATOR = "io.aeron.security.DefaultAuthenticatorSupplier"


_CLIENT_ONLY = "it is a setting of archive clients"
WITHOUT_EFFECT: Mapping[str, str] = {
    ARCHIVE_PREFIX + name: reason
    for name, reason in (
        ("message.retry.attempts", _CLIENT_ONLY),
        ("client.name", _CLIENT_ONLY),
        ("max.catalog.entries", "the catalog grows; see aeron.archive.catalog.capacity"),
    )
}

# Properties of commands that are clients; a properties file may be shared with them.
CLIENT_PROPERTIES = frozenset(
    {"aerotape.user", "aerotape.secret.file", "aerotape.credentials.file"}
)


def variable(name: str) -> str:
    """Return the environment variable of a property: upper case, _ for dots."""
    return name.upper().replace(".", "_")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.8) -> str:
    """Return ``: did you mean …?`` with the most similar known name, or an empty text."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f": did you mean {found[0]}?" if found else ""
