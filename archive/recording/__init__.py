"""Recordings in the daemon: started, extended, stopped; their segments moved, cut back, deleted."""
