"""Segment files: checks, placement of frames, moves between recordings, hard links."""
