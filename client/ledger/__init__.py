"""Ledgers for clients of an archive: creating, writing and reading them."""
