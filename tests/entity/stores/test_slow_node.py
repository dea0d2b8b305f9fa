"""A Cassandra node that takes seconds for a request while a store is opened."""

from __future__ import annotations

import pytest
from support.slow_query import SlowQueryProxy
from support.stores.cassandra import CassandraServer

from aerotape.entity.stores.url import open_store


@pytest.mark.jvm
@pytest.mark.slow
def test_a_slow_answer_is_awaited(cassandra_server: CassandraServer) -> None:
    """The driver alone would give up after two seconds."""
    with SlowQueryProxy(cassandra_server.port, b"system.local", 2.5) as proxy:
        url = f"cassandra://127.0.0.1:{proxy.port}?namespace=slow_node"
        with open_store(url, writable=True) as store:
            assert store.topics() == []
        assert proxy.held == 1
    cassandra_server.drop(["slow_node"])
