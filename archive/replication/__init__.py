"""Replication: fetching recordings of another archive, on the conductor's thread."""
