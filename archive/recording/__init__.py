"""Recordings in the daemon: start, extend, stop, truncate; segment files moved and deleted."""
