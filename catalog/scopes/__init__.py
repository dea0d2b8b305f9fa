"""Recordings of other archives in a store: their scopes, directories and import."""
