"""The URL of an entity store: `sqlite:PATH`, `postgresql://…` or `cassandra://…`.

The query sets options: `?namespace=orders&segment_size=10000&segments=10000`. Without a namespace
in the query, Cassandra's keyspace is the path. Parameters of PostgreSQL's own URLs are passed on.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from aerotape.archive.entity.stores.base import EntityStore, StoreOptions
from aerotape.errors import ConfigurationError

_NAMES: Final = tuple(field.name for field in fields(StoreOptions))
_FORMS: Final = "sqlite:PATH, postgresql://HOST/DATABASE or cassandra://HOST:PORT/KEYSPACE"


def open_store(url: str) -> EntityStore:
    """Open the store at a URL, and create its tables if there are none.

    Raises:
        ConfigurationError: the URL is invalid, or a driver is not installed.
        EntityStoreError: the store cannot be reached, or its tables have another version.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in ("sqlite", "postgresql", "cassandra"):
        raise ConfigurationError(f"store {without_password(url)!r}: expected {_FORMS}", "store")
    location, _, query = rest.partition("?")
    given: dict[str, Any] = {}
    others: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _NAMES:
            others.append((name, value))
        elif name == "namespace":
            given[name] = value
        elif value.isascii() and value.isdigit():
            given[name] = int(value)
        else:
            raise ConfigurationError(f"store option {name}={value}: expected a number", "store")
    if scheme == "postgresql":
        from aerotape.archive.entity.stores.postgresql import PostgresqlStore

        own = f"?{urlencode(others)}" if others else ""
        return PostgresqlStore(f"{scheme}:{location}{own}", StoreOptions(**given))
    if others:
        raise ConfigurationError(
            f"store option {others[0][0]!r} is unknown: expected {', '.join(_NAMES)}", "store"
        )
    if scheme == "sqlite":
        from aerotape.archive.entity.stores.sqlite import SqliteStore

        path = location.removeprefix("//") if location.startswith("///") else location
        if not path:
            raise ConfigurationError(f"store {url!r} has no path: expected sqlite:PATH", "store")
        return SqliteStore(path, StoreOptions(**given))
    from aerotape.archive.entity.stores.cassandra import CassandraStore

    parts = urlsplit(f"{scheme}:{location}")
    keyspace = parts.path.strip("/")
    if keyspace:
        given.setdefault("namespace", keyspace)
    hosts = [host for host in parts.netloc.rpartition("@")[2].split(",") if host]
    if not hosts:
        raise ConfigurationError(f"store {without_password(url)!r} has no host", "store")
    return CassandraStore(hosts, StoreOptions(**given), parts.username, parts.password)


def without_password(url: str) -> str:
    """Return a URL without its password, for messages."""
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    if not at:
        return url
    return urlunsplit(parts._replace(netloc=f"{credentials.partition(':')[0]}@{host}"))
