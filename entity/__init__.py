"""Journals of entities over recordings: append, read, delete and purge by key."""
