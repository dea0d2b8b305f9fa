"""Journals of entities: a model, and a store in memory."""
