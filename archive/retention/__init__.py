"""Retention: deletes recorded data by a policy of age, size and number."""
