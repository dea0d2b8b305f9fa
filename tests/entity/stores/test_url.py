"""URLs of stores: parameters of PostgreSQL, and texts without passwords."""

from __future__ import annotations

import psycopg
import pytest
from support.stores.postgresql import PostgresqlServer

from aerotape.entity.stores import cassandra
from aerotape.entity.stores.url import open_store, without_password
from aerotape.errors import AerotapeError, ConfigurationError


def test_options_with_spaces(postgresql_server: PostgresqlServer) -> None:
    """Spaces and plus signs of parameters arrive at the server."""
    options = "options=-c%20work_mem=1234kB%20-c%20application_name=a+b"
    url = f"{postgresql_server.url}?namespace=spaces&{options}"
    with open_store(url, writable=True), psycopg.connect(postgresql_server.url) as connection:
        rows = connection.execute("SELECT count(*) FROM pg_stat_activity"
                                  " WHERE application_name = 'a+b'").fetchall()  # fmt: skip
        assert rows == [(2,)]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://u:secret@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x"),
        ("postgresql://u:secret@[::1/x", "postgresql://u@[::1/x"),
        ("postgresql://u:sec/re@t%zz@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x"),
        ("postgresql://u:sec@ret%zz@h:1/x", "postgresql://u@h:1/x"),
        ("postgresql://u@127.0.0.1:1/x?password=secret%zz", "password=…"),
        ("postgresql://127.0.0.1:1/x?user=u&password=secret&namespace=n", "user=u&password=…"),
        ("postgresql://u:secret@127.0.0.1:1/x?nonsense=1", "postgresql://u@127.0.0.1:1/x"),
        ("cassandra://u:secret@127.0.0.1:port/x", "cassandra://u@127.0.0.1:port/x"),
        ("cassandra://u:secret@[::1/x", "cassandra://u@[::1/x"),
        ("mysql://u:secret@h/x", "mysql://u@h/x"),
        ("postgresql://u:secret@127.0.0.1:1/x?segments=a", "expected a number"),
        ("postgresql://u:secret@127.0.0.1:1/x?namespace=A", "namespace 'A'"),
    ],
)
def test_no_password_in_errors(url: str, text: str) -> None:
    """An error names the store, never its password."""
    with pytest.raises(AerotapeError) as caught:
        open_store(url)
    assert text in str(caught.value)
    assert "sec" not in str(caught.value)


def test_without_password() -> None:
    """Only passwords are left out."""
    for url in ("sqlite:/a/b@c.db", "postgresql://u@h:5432/x", "cassandra://h1:9,h2/x?a=b"):
        assert without_password(url) == url


def test_numbers_have_limits() -> None:
    """A number that the tables cannot have is refused."""
    for option in ("segments", "segment_size", "lease_ms"):
        with pytest.raises(ConfigurationError, match=f"{option} must be at most 2147483647"):
            open_store(f"sqlite:x.db?{option}=2147483648")


def test_credentials_of_cassandra(monkeypatch: pytest.MonkeyPatch) -> None:
    """User and password are decoded."""
    given = []
    monkeypatch.setattr(
        cassandra, "CassandraStore", lambda hosts, options, *rest, **_: given.append((hosts, rest))
    )
    open_store("cassandra://a%40b:c%2Fd@h1:1,h2/x")
    open_store("cassandra://h1/x")
    assert given == [(["h1:1", "h2"], ("a@b", "c/d")), (["h1"], (None, None))]
