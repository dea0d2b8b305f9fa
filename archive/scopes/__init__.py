"""Scopes: recordings of other archives in the directory of this one."""
