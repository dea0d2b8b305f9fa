"""The streaming source: backlog, offsets, read limits."""
