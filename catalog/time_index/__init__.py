"""The time index of a recording: wall-clock times by position."""
