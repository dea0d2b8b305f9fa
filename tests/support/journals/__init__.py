"""Raft journals and recordings of them, built byte by byte."""
