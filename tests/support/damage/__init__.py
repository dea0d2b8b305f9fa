"""Damage to archive directories and to the storage below them."""
