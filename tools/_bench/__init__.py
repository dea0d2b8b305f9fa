"""Measurements of `aerotape bench`; `bench/` measures the same against the Java archive."""
