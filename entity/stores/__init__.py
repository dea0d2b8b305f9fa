"""Stores of replicated journals. `store.py` has the interface."""
