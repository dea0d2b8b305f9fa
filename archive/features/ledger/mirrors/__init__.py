"""Ledgers on several archives: what the leading archive does, and what its mirrors do."""
