"""Measurements of `aerotape bench`; `tests/bench` measures the same against the Java archive."""
