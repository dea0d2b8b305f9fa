"""The URL of an entity store: `sqlite:PATH`, `postgresql://…` or `cassandra://…`.

The query sets options: `?namespace=orders&segment_size=10000&segments=10000`. Without a namespace
in the query, Cassandra's keyspace is the path. Parameters of PostgreSQL's own URLs are passed on.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from aerotape.entity.stores.base import EntityStore, StoreOptions
from aerotape.errors import ConfigurationError

_NAMES: Final = tuple(field.name for field in fields(StoreOptions))
_FORMS: Final = "sqlite:PATH, postgresql://HOST/DATABASE or cassandra://HOST:PORT/KEYSPACE"


def open_store(url: str, *, writable: bool = False) -> EntityStore:
    """Open the store at a URL.

    Args:
        url: see this module.
        writable: for a replicator: create the store's tables if there are none. A store that is not
            writable is never created or changed.

    Raises:
        ConfigurationError: the URL is invalid, or a driver is not installed.
        EntityStoreError: the store cannot be reached, has no tables to read, or its tables have
            another version.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in ("sqlite", "postgresql", "cassandra"):
        raise ConfigurationError(f"store {without_password(url)!r}: expected {_FORMS}", "store")
    location, _, query = rest.partition("?")
    given: dict[str, Any] = {}
    others: list[tuple[str, str]] = []
    for name, value in _parameters(query):
        if name not in _NAMES:
            others.append((name, value))
        elif name == "namespace":
            given[name] = value
        elif value.isascii() and value.isdigit():
            given[name] = int(value)
        else:
            raise ConfigurationError(f"store option {name}={value}: expected a number", "store")
    if scheme == "postgresql":
        from aerotape.entity.stores.postgresql import PostgresqlStore

        own = f"?{urlencode(others, quote_via=quote)}" if others else ""
        options = StoreOptions(**given)
        return PostgresqlStore(f"{scheme}:{location}{own}", options, writable=writable)
    if others:
        raise ConfigurationError(
            f"store option {others[0][0]!r} is unknown: expected {', '.join(_NAMES)}", "store"
        )
    if scheme == "sqlite":
        from aerotape.entity.stores.sqlite import SqliteStore

        path = sqlite_path(url)
        if not path:
            raise ConfigurationError(f"store {url!r} has no path: expected sqlite:PATH", "store")
        return SqliteStore(path, StoreOptions(**given), writable=writable)
    from aerotape.entity.stores.cassandra import CassandraStore

    try:
        parts = urlsplit(f"{scheme}:{location}")
        keyspace = parts.path.strip("/")
        if keyspace:
            given.setdefault("namespace", keyspace)
        credentials, _, addresses = parts.netloc.rpartition("@")
        hosts = [host for host in addresses.split(",") if host]
        for host in hosts:
            int(host.partition(":")[2] or 0)
    except ValueError:
        hosts = []
    if not hosts:
        raise ConfigurationError(
            f"store {without_password(url)!r} has no valid host: expected {_FORMS}", "store"
        )
    user, colon, password = credentials.partition(":")
    return CassandraStore(
        hosts,
        StoreOptions(**given),
        unquote(user) or None,
        unquote(password) if colon else None,
        writable=writable,
    )


def _parameters(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query. As in libpq's URLs, a plus is not a space."""
    pairs = (each.partition("=") for each in query.split("&") if each)
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def sqlite_path(url: str) -> str:
    """Return the path in the URL of an SQLite store, perhaps empty."""
    location = url.partition(":")[2].partition("?")[0]
    return location.removeprefix("//") if location.startswith("///") else location


def without_password(url: str) -> str:
    """Return a URL without its passwords, for messages; whatever follows a user up to an @."""
    url = re.sub(r"(//[^:/?@]*):.*@", r"\1@", url, flags=re.DOTALL)
    return re.sub(r"([?&][a-z]*password)=[^&]*", r"\1=…", url, flags=re.IGNORECASE)
