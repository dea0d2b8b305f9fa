"""Simulated power cuts and kills at each change to a file."""
