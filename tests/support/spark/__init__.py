"""Spark clusters, streaming queries and object stores for tests."""
