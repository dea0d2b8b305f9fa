"""Offline operations on an archive directory, one module for each `aerotape tool` command."""
