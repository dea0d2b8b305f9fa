"""Recordings read from their segment files, without a daemon."""
