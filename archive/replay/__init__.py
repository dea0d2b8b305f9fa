"""Replay sessions of the archive daemon."""
