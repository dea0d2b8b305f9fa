"""Segment files of recordings: their locks, deletions, and moves between recordings."""
